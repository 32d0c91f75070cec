//! Tests of the comparison of two replays of a small trace.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use poolwright_catalog::UsdPerHour;
use poolwright_terms::labels;
use serde_json::{Value, json};

use super::answer::{Answer, Side, verdict};
use super::{answered, print, rows};
use crate::args::{Cli, Command, Factor, ReplayFlags, Span, Threshold, WhatIfFlags, WhatIfFormat};
use crate::exit::Failure;
use crate::replay::chart::Marks;
use crate::{replay, source};

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
    let unpriced = Side { nodes_with_unknown_price: 2, ..dearer.after.clone() };
    let said = verdict(&dearer.before, &unpriced, dearer.played);
    assert!(said.contains("; 2 nodes of unknown price not counted; "), "{said}");
    let mut judged = dearer.clone();
    judged.after = unpriced;
    judged.judge(&[Threshold::Percent(50_000_000)]);
    let said = &judged.exceeded;
    assert!(said.len() == 1 && said[0].contains("adds 2 nodes of unknown price"), "{said:?}");
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
    let html = printed(&dearer, WhatIfFormat::Html);
    let (verdict, table) = (html.find("<p class=\"verdict\">+"), html.find("<table id=\"figures\">"));
    assert!(verdict.is_some() && verdict < table, "{html}");
    for plot in ["cost-over-time", "waiting-over-time", "starts-over-time"] {
        assert!(html.contains(&format!("<table id=\"{plot}\">")), "{plot}: {html}");
    }
    assert!(html.contains("<th scope=\"col\" class=\"number\">before</th>"), "{html}");
    assert!(!html.contains("interruptions-over-time"), "there are none");
}

#[test]
fn replays_side_by_side_come_to_what_each_comes_to_alone() {
    let flags = flags(&[]);
    let whole = flags.replay(flags.trace.clone().expect("a trace"));
    let play = ReplayFlags { length: Span(Duration::from_mins(45)), ..whole };
    let sources = source::manifests(&flags.base).expect("pools");
    let stop = AtomicBool::new(false);
    let prepared = |times: &str| {
        let times: Factor = times.parse().expect("a factor");
        let more = |world: &mut replay::World| {
            world.work.multiply(times);
            Ok(())
        };
        replay::prepared_with(&play, &sources, more).expect("it can be played")
    };
    let [one, two] = replay::played_both([prepared("1"), prepared("2")], &play, &stop).expect("both");
    let [two_again, one_again] =
        replay::played_both([prepared("2"), prepared("1")], &play, &stop).expect("both");
    assert_eq!((one.history, two.history), (one_again.history, two_again.history));
    stop.store(true, Ordering::Relaxed);
    let stopped = replay::played_both([prepared("1"), prepared("1")], &play, &stop).expect("both");
    assert!(stopped.iter().all(|played| played.interrupted().is_some()));
}

#[test]
fn spot_is_allowed_in_an_object_without_a_change_of_its_other_rules() {
    let rules = |capacity: Value| {
        let mut pool = json!({"spec": {"template": {"spec": {"requirements": [
            {"key": "team", "operator": "Exists", "values": []}, capacity]}}}});
        super::changes::with_spot(&mut pool);
        pool["spec"]["template"]["spec"]["requirements"].clone()
    };
    let team = json!({"key": "team", "operator": "Exists", "values": []});
    let of = |operator: &str, values: Value| json!({"key": labels::CAPACITY_TYPE, "operator": operator, "values": values});
    assert_eq!(rules(of("NotIn", json!(["spot"]))), json!([team]));
    assert_eq!(rules(of("In", json!(["on-demand"]))), json!([team, of("In", json!(["on-demand", "spot"]))]));
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
            .all(|(_, curves)| { curves.iter().all(|curve| curve.chars().count() <= 62) })
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
