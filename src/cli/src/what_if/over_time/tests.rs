//! Tests of the comparison of two replays of a small trace.

use clap::Parser;
use poolwright_catalog::UsdPerHour;

use super::answer::Answer;
use super::{answered, print, rows};
use crate::args::{Cli, Command, WhatIfFlags, WhatIfFormat};
use crate::exit::Failure;
use crate::replay::chart::Marks;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Reads these arguments after those of a replay of three hours.
fn flags(more: &[&str]) -> WhatIfFlags {
    let (trace, pools) =
        (format!("{ROOT}/fixtures/traces/two-hours.csv"), format!("{ROOT}/fixtures/manifests/pool.yaml"));
    let fixed = ["poolwright", "what-if", "--trace", &trace, "--base", &pools, "--for", "3h"];
    let Command::WhatIf(flags) = Cli::try_parse_from(fixed.iter().chain(more)).expect("flags").command else {
        panic!("it is what-if")
    };
    *flags
}

fn answer(more: &[&str]) -> Result<Answer, Failure> {
    let flags = flags(more);
    let trace = flags.trace.clone().expect("a trace");
    answered(&flags, &trace)
}

fn found(more: &[&str]) -> Answer {
    answer(more).unwrap_or_else(|failure| panic!("{more:?}: {failure:?}"))
}

fn refused(more: &[&str]) -> String {
    match answer(more) {
        Err(Failure::BadInput(told)) => told,
        other => panic!("{more:?}: {other:?}"),
    }
}

fn printed(answer: &Answer, format: WhatIfFormat) -> String {
    let mut out = Vec::new();
    print::print(answer, format, &mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

#[test]
fn a_rise_of_prices_raises_the_cost_and_every_form_tells_it() {
    let dearer = found(&["--price", "*=+10%"]);
    assert!(dearer.differs && dearer.after.cost > dearer.before.cost, "{}", dearer.verdict);
    assert_eq!(dearer.changes, ["--price: *=+10%"]);
    assert_eq!(dearer.before.node_starts, 8, "as `simulate` plays it");
    let json: serde_json::Value = serde_json::from_str(&printed(&dearer, WhatIfFormat::Json)).expect("JSON");
    assert_eq!(json["kind"], "WhatIfReplay");
    assert_eq!(json["playedSeconds"], 10_800.0);
    assert_eq!(json["series"].as_array().map(Vec::len), Some(3), "a curve by the hour");
    let csv = printed(&dearer, WhatIfFormat::Csv);
    assert_eq!(csv.lines().count(), 4);
    assert!(csv.starts_with("from_seconds,usd_per_hour_before,pods_waiting_before,"), "{csv}");
    let table = printed(&dearer, WhatIfFormat::Table);
    assert!(
        table.contains("\nCost per hour from 0 to 3h, up to ") && table.contains("  before  │"),
        "{table}"
    );
    assert!(printed(&dearer, WhatIfFormat::Markdown).starts_with("<!-- poolwright what-if -->\n**+"));
    assert!(printed(&dearer, WhatIfFormat::Yaml).contains("kind: WhatIfReplay"));
}

#[test]
fn the_curves_add_up_to_the_figures() {
    let double = found(&["--load", "2"]);
    let starts = |of: fn(&super::answer::Line) -> u64| double.series.iter().map(of).sum::<u64>();
    assert_eq!(starts(|line| line.before.node_starts), double.before.node_starts);
    assert_eq!(starts(|line| line.after.node_starts), double.after.node_starts);
    assert!(double.after.cost > double.before.cost, "{}", double.verdict);
    let costs = double.series.iter().map(|line| line.before.usd_per_hour).sum::<UsdPerHour>();
    // Each hour is rounded down, and each node up.
    assert!(u128::from(costs.micros()).abs_diff(double.before.cost.0) < 100, "{costs}");
    assert!(
        rows::plots(&double, Marks::UNICODE)
            .iter()
            .all(|(_, curves)| { curves.iter().all(|curve| curve.chars().count() <= 60) })
    );
}

#[test]
fn pods_that_ask_for_another_model_run_on_it() {
    let other = found(&["--gpu", "t4=a10g"]);
    assert!(other.changes[0].starts_with("--gpu: a10g instead of t4 for "), "{:?}", other.changes);
    assert_eq!(other.after.pods_waiting, 0, "{}", other.verdict);
    assert!(refused(&["--gpu", "h100=a10g"]).contains("no pod asks for h100"));
}

#[test]
fn a_change_that_cannot_be_replayed_says_so() {
    for (change, why) in [
        (&["-f", "x.yaml"][..], "-f: cannot be replayed with --trace, because the work is that of the trace"),
        (&["--outage", "zone=us-east-1a"], "--outage: cannot be replayed with --trace"),
        (&["--commitments", "c.yaml"], "`poolwright what-if commitment --trace` finds which ones pay"),
        (&["--sharing", "mps"], "the controller gives each pod whole GPUs"),
        (&["--no-spot", "--gap", "0"], "searches as it always does"),
        (&["--no-spot"], "--no-spot: matches nothing"),
        (&["--without", "none.*"], "--without none.*: matches nothing"),
        (&[], "there is no change to compare"),
    ] {
        let told = refused(change);
        assert!(told.contains(why), "{change:?}: {told}");
    }
}

#[test]
fn hours_of_the_trace_without_a_pod_are_said() {
    let notes = found(&["--price", "*=+10%"]).notes;
    assert!(
        notes[0].starts_with("the trace has gaps: in 1 of 3 hours no pod exists, the first after 2h"),
        "{notes:?}"
    );
}
