//! Recomputes the figures of replays from their record alone.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::support::{micros, path, poolwright};

const ARGS: [&str; 7] = [
    "simulate",
    "--trace",
    "fixtures/traces/two-hours.csv",
    "--pools",
    "fixtures/manifests/pool.yaml",
    "--for",
    "3h",
];

/// Runs a replay, and returns its standard output and its record.
fn replay(name: &str, more: &[&str]) -> (String, String) {
    let record = std::env::temp_dir().join(format!("poolwright-replay-{}-{name}.jsonl", std::process::id()));
    let path = record.to_str().expect("a path");
    let args: Vec<&str> = ARGS.iter().chain(more).copied().chain(["--record", path]).collect();
    let output = poolwright(&args, "");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let events = fs::read_to_string(&record).expect("a record");
    fs::remove_file(&record).expect("it is ours");
    (String::from_utf8(output.stdout).expect("text"), events)
}

/// Parses a decimal number such as `1.006` into micro-dollars.
fn price(text: &str) -> u128 {
    let (whole, decimals) = text.split_once('.').expect("a decimal number");
    format!("{whole}{decimals:0<6}").parse().expect("digits")
}

#[test]
fn the_cost_of_a_replay_can_be_recomputed_from_its_record() {
    let (report, record) = replay("cost", &["-o", "json"]);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let mut running: BTreeMap<String, (u128, u128)> = BTreeMap::new();
    let mut cost = 0;
    let mut last = 0;
    for line in record.lines() {
        let event: Value = serde_json::from_str(line).expect("JSON");
        let at = u128::from(event["atMillis"].as_u64().expect("a time"));
        assert!(at >= last, "{line} comes after a later one");
        last = at;
        let machine = || event["machine"].as_str().expect("a machine").to_owned();
        match event["event"].as_str().expect("an event") {
            "MachineLaunched" => {
                let price = price(event["usdPerHour"].as_str().expect("a price"));
                assert!(running.insert(machine(), (at, price)).is_none(), "{line} is told twice");
            }
            "MachineGone" | "MachineStillThere" => {
                let (since, price) = running.remove(&machine()).expect("it was launched");
                cost += ((at - since) * price).div_ceil(3_600_000);
            }
            _ => {}
        }
    }
    assert!(running.is_empty() && cost > 0);
    assert_eq!(u128::from(micros(&report["costUsd"])), cost);
    let by_pool: u64 =
        report["bought"].as_array().expect("a list").iter().map(|line| micros(&line["costUsd"])).sum();
    assert_eq!(u128::from(by_pool), cost);
    assert!(micros(&report["lowerLimitUsd"]) <= micros(&report["costUsd"]));
    for point in report["series"].as_array().expect("a list") {
        let (cost, limit) = (&point["costUsdPerHour"], &point["lowerLimitUsdPerHour"]);
        assert!(micros(cost) >= micros(limit), "{point}");
    }
}

#[test]
fn the_same_command_prints_and_records_the_same_byte_for_byte() {
    for format in ["text", "csv", "json"] {
        let play = |name: &str| replay(&format!("{format}-{name}"), &["-o", format]);
        assert_eq!(play("one"), play("two"));
    }
}

#[test]
fn a_node_class_that_the_files_lack_counts_in_a_replay_as_in_a_plan() {
    let pool = fs::read_to_string(path("fixtures/manifests/pool.yaml")).expect("the fixture");
    let documents = pool.split("\n---\n").filter(|document| document.contains("kind: NodePool"));
    let alone = documents.collect::<Vec<_>>().join("\n---\n").replace("KwokNodeClass", "EC2NodeClass");
    let file = std::env::temp_dir().join(format!("poolwright-no-class-{}.yaml", std::process::id()));
    fs::write(&file, alone).expect("a temporary file");
    let file_name = file.to_str().expect("UTF-8");
    let args: Vec<&str> =
        ARGS.into_iter().map(|arg| if arg.ends_with("pool.yaml") { file_name } else { arg }).collect();
    let simulated = poolwright(&args, "");
    let planned = poolwright(&["plan", "-f", file_name], "");
    fs::remove_file(&file).expect("it is ours");
    let text = String::from_utf8_lossy(&simulated.stdout);
    assert!(simulated.status.success(), "{}", String::from_utf8_lossy(&simulated.stderr));
    assert!(text.contains("8 finished"), "{text}");
    let note = "is not in the files; its pools may buy everything that";
    assert!(text.contains(note), "{text}");
    let plan = String::from_utf8_lossy(&planned.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plan.contains(note), "{plan}");
}
