//! `make bench`: the solver's figures, case by case, each in its own process, as medians of several runs.
//!
//! `bench [CASE...] [--runs N] [--json FILE]` runs the named cases, or all. Time is wall clock in the process, after the
//! input is read. A gap refers to the certified bound of the same run. Missed goals are reported, but never fail the run.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

mod arrivals;
mod cancel;
mod cases;
mod clock;
mod report;

#[path = "../../tests/common/mod.rs"]
mod common;

use std::process::Command;

use report::Row;

fn main() {
    let mut names: Vec<String> = Vec::new();
    let mut runs = 5;
    let mut json = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--runs" => runs = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(runs),
            "--json" => json = arguments.next(),
            // Runs one case once, for the parent process.
            "--once" => {
                let name = arguments.next().unwrap_or_default();
                let Some(case) = cases::all().into_iter().find(|case| case.name == name) else {
                    eprintln!("no case {name}");
                    std::process::exit(2);
                };
                let mut row = (case.run)();
                row.case.clone_from(&name);
                row.peak_mib = report::peak_mib();
                println!("{}", serde_json::to_string(&row).expect("a row is plain data"));
                return;
            }
            name => names.push(name.to_owned()),
        }
    }
    let known: Vec<&str> = cases::all().iter().map(|case| case.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        eprintln!("no case {unknown}; there are {}", known.join(", "));
        std::process::exit(2);
    }
    let mut all = Vec::new();
    for case in cases::all() {
        if !names.is_empty() && !names.iter().any(|name| name == case.name) {
            continue;
        }
        let rows: Vec<Row> = (0..runs).filter_map(|_| once(case.name)).collect();
        if rows.is_empty() {
            println!("{:<12} FAILED: no run ended", case.name);
            continue;
        }
        let row = report::median(&rows);
        report::print(&case, &row, rows.len());
        all.push(row);
    }
    report::summary(&cases::all(), &all);
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&all).expect("rows are plain data");
        if let Err(error) = std::fs::write(&path, text) {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    }
}

fn once(case: &str) -> Option<Row> {
    let this = std::env::current_exe().ok()?;
    let output = Command::new(this).args(["--once", case]).output().ok()?;
    if !output.status.success() {
        eprintln!("{case}: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    serde_json::from_slice(&output.stdout).ok()
}
