//! Rows of figures, their medians, and their output.

use serde::{Deserialize, Serialize};

use crate::cases::Case;

/// The figures of one run, or medians of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The name of the case.
    pub case: String,
    /// The cost in $/h.
    pub cost: f64,
    /// The certified bound in $/h.
    pub bound: f64,
    /// `(cost - bound) / bound` at the end.
    pub gap: f64,
    /// The seconds until the first plan.
    pub first: f64,
    /// The seconds of the whole solve.
    pub seconds: f64,
    /// (gap, seconds until it was proven); `None` if it never was.
    pub until: Vec<(f64, Option<f64>)>,
    /// The gap at the times of the goals: (seconds, gap).
    pub at: Vec<(f64, f64)>,
    /// The number of bought nodes.
    pub nodes: f64,
    /// The number of pod classes after merging.
    pub classes: f64,
    /// The number of candidates after dominance.
    pub candidates: f64,
    /// The number of pricing rounds.
    pub rounds: f64,
    /// The millions of work units.
    pub work: f64,
    /// The longest time between two polls, in seconds.
    pub silence: f64,
    /// The same in processor time of its thread.
    pub busy: f64,
    /// The process's peak memory.
    pub peak_mib: f64,
    /// The cost of simpler methods: name and $/h.
    pub others: Vec<(String, f64)>,
    /// Other figures of the case: name and value.
    pub extra: Vec<(String, f64)>,
    /// The frontier of one run: moved pods, and the cost in $/h then.
    pub frontier: Vec<(u64, f64)>,
}

impl Row {
    /// Returns one of the extra figures.
    pub fn extra(&self, name: &str) -> f64 {
        self.extra.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// Returns the cost of a simpler method.
    pub fn other(&self, name: &str) -> f64 {
        self.others.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value)
    }

    /// Returns the gap that was proven `seconds` after the start.
    pub fn gap_at(&self, seconds: f64) -> f64 {
        self.at.iter().find(|(at, _)| (at - seconds).abs() < 1e-9).map_or(f64::NAN, |(_, gap)| *gap)
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the median of each figure.
pub fn median(rows: &[Row]) -> Row {
    let of = |get: &dyn Fn(&Row) -> f64| middle(rows.iter().map(get).collect());
    let first = &rows[0];
    let pairs = |get: &dyn Fn(&Row) -> &Vec<(String, f64)>| {
        (0..get(first).len())
            .map(|at| {
                (get(first)[at].0.clone(), of(&|row: &Row| get(row).get(at).map_or(f64::NAN, |pair| pair.1)))
            })
            .collect()
    };
    Row {
        case: first.case.clone(),
        cost: of(&|row| row.cost),
        bound: of(&|row| row.bound),
        gap: of(&|row| row.gap),
        first: of(&|row| row.first),
        seconds: of(&|row| row.seconds),
        until: (0..first.until.len())
            .map(|at| {
                // A run that never reached the gap counts as infinite.
                let seconds = of(&|row: &Row| row.until[at].1.unwrap_or(f64::INFINITY));
                (first.until[at].0, seconds.is_finite().then_some(seconds))
            })
            .collect(),
        at: (0..first.at.len()).map(|at| (first.at[at].0, of(&|row: &Row| row.at[at].1))).collect(),
        nodes: of(&|row| row.nodes),
        classes: of(&|row| row.classes),
        candidates: of(&|row| row.candidates),
        rounds: of(&|row| row.rounds),
        work: of(&|row| row.work),
        silence: of(&|row| row.silence),
        busy: of(&|row| row.busy),
        peak_mib: rows.iter().map(|row| row.peak_mib).fold(0.0, f64::max),
        others: pairs(&|row| &row.others),
        extra: pairs(&|row| &row.extra),
        frontier: first.frontier.clone(),
    }
}

/// Prints one case, in a few lines.
pub fn print(case: &Case, row: &Row, runs: usize) {
    println!("\n{} - {} (median of {runs})", case.name, case.what);
    if row.bound > 0.0 {
        println!(
            "  cost {:.2} $/h  bound {:.2}  gap {:.3} %  nodes {:.0}  in {:.2} s",
            row.cost,
            row.bound,
            row.gap * 100.0,
            row.nodes,
            row.seconds
        );
    }
    if row.classes > 0.0 {
        println!(
            "  first plan {:.3} s  K {:.0}  T {:.0}  rounds {:.0}  work {:.2} M  peak {:.0} MiB  longest silence {:.3} s, {:.3} s of its processor",
            row.first, row.classes, row.candidates, row.rounds, row.work, row.peak_mib, row.silence, row.busy
        );
    }
    if !row.until.is_empty() {
        let text: Vec<String> = row
            .until
            .iter()
            .map(|(gap, seconds)| match seconds {
                Some(seconds) => format!("{} %: {seconds:.2} s", gap * 100.0),
                None => format!("{} %: -", gap * 100.0),
            })
            .collect();
        println!("  proven within  {}", text.join("  "));
    }
    if !row.others.is_empty() {
        let text: Vec<String> = row
            .others
            .iter()
            .map(|(name, cost)| format!("{name} {cost:.2} ({:+.1} %)", (cost / row.bound - 1.0) * 100.0))
            .collect();
        println!("  others, against the bound:  {}", text.join("  "));
    }
    if !row.extra.is_empty() {
        let text: Vec<String> = row.extra.iter().map(|(name, value)| format!("{name} {value:.4}")).collect();
        println!("  {}", text.join("  "));
    }
    if !row.frontier.is_empty() {
        println!("  evictions and $/h, all {} points of the frontier:", row.frontier.len());
        for points in row.frontier.chunks(8) {
            let text: Vec<String> =
                points.iter().map(|(evictions, cost)| format!("{evictions:>5} {cost:>9.2}")).collect();
            println!("    {}", text.join("  "));
        }
    }
    for goal in &case.goals {
        println!("  {}", goal.line(row));
    }
}

/// Prints the reached and the missed goals.
pub fn summary(cases: &[Case], rows: &[Row]) {
    let (mut reached, mut missed) = (0, Vec::new());
    for row in rows {
        for goal in cases.iter().filter(|case| case.name == row.case).flat_map(|case| &case.goals) {
            if goal.reached(row) {
                reached += 1;
            } else {
                missed.push(format!("{}: {}", row.case, goal.line(row)));
            }
        }
    }
    println!("\n{reached} goals reached, {} missed", missed.len());
    for line in missed {
        println!("  {line}");
    }
}

/// Returns the peak resident memory of this process in MiB, as Linux counts it.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok())
        .map_or(f64::NAN, |kib| kib / 1024.0)
}
