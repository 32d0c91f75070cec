//! Tests that the figures of one plan are the same in every output.

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::Parser;
use jiff::Timestamp;
use poolwright_catalog::{Usd, UsdPerHour};
use poolwright_core::Snapshot;
use poolwright_core::plan::{OverTime, plan};
use poolwright_intake::{claim_object, node_claim};
use poolwright_report::plan::{DocumentContext, Purchase, document};
use poolwright_report::{PoolSums, Times};
use poolwright_solver::{NeverStop, Proof};

use super::prepare;
use crate::args::{Cli, Command, OutputFormat};
use crate::print;

#[test]
fn a_plan_costs_the_same_in_its_document_its_table_and_the_status_of_its_pools() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests/standing.yaml");
    let cli = Cli::try_parse_from(["poolwright", "plan", "-f", file]).expect("flags");
    let Command::Plan(flags) = cli.command else { panic!("it is plan") };
    let (input, options) =
        prepare(&flags.input, None, &flags.search).unwrap_or_else(|failure| panic!("{failure:?}"));
    let plan = plan(&input.snapshot, Timestamp::UNIX_EPOCH, &options, &mut NeverStop);

    // The status of pools counts the claims that the controller creates for the plan.
    let claims = plan.claims.iter().map(|planned| node_claim(&claim_object(planned)).expect("a claim"));
    let created = Snapshot {
        claims: claims.map(|claim| (claim.name.clone(), Arc::new(claim))).collect(),
        ..Snapshot::default()
    };
    let pools: BTreeSet<_> = plan.claims.iter().map(|claim| claim.pool.clone()).collect();
    assert_eq!(pools.len(), 2, "a static pool and one that keeps room free");
    let sums: Vec<_> = pools.iter().map(|pool| PoolSums::of(pool, &created)).collect();

    let asked = DocumentContext {
        snapshot: &input.snapshot,
        catalogue: input.catalogue,
        unread: input.unread,
        on_unknown_nodes: input.on_unknown_nodes,
        refused: Vec::new(),
        notes: input.notes,
        names: input.names,
        counts_risk: options.spot_risk.is_some(),
    };
    let document = document(plan, asked, Times::default()).expect("a plan that holds");
    let cost = document.cost_usd_per_hour;
    assert!(cost.micros() > 0, "it buys nodes");
    assert_eq!(sums.iter().map(|sums| sums.cost.usd_per_hour).sum::<UsdPerHour>(), cost);
    assert_eq!(sums.iter().map(|sums| sums.planned.usd_per_hour).sum::<UsdPerHour>(), cost);
    assert_eq!(sums.iter().map(|sums| sums.nodes).sum::<i64>(), document.nodes.len() as i64);

    let bought = Purchase::sum(&document.purchases());
    assert_eq!((bought.cost.usd_per_hour, bought.nodes), (cost, document.nodes.len()));
    let mut table = Vec::new();
    print::plan(&document, OutputFormat::Table, &mut table).expect("it is printed");
    let table = String::from_utf8(table).expect("text");
    let total = table.lines().find(|line| line.contains("in all")).expect("a line with the sums");
    assert!(total.split_whitespace().any(|cell| cell == print::money(cost)), "{cost}: {table}");
    let mut json = Vec::new();
    print::plan(&document, OutputFormat::Json, &mut json).expect("it is printed");
    let json: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(json["costUsdPerHour"].as_f64(), Some(cost.as_f64()));
}

#[test]
fn a_plan_that_was_chosen_by_its_cost_over_time_shows_it_beside_the_cost_of_the_moment() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/manifests/zones.yaml");
    let cli = Cli::try_parse_from(["poolwright", "plan", "-f", file]).expect("flags");
    let Command::Plan(flags) = cli.command else { panic!("it is plan") };
    let (input, options) =
        prepare(&flags.input, None, &flags.search).unwrap_or_else(|failure| panic!("{failure:?}"));
    let mut plan = plan(&input.snapshot, Timestamp::UNIX_EPOCH, &options, &mut NeverStop);
    let cost = plan.cost;
    (plan.over_time, plan.bound) =
        (Some(OverTime { cost: Usd(12_340_000), bound: Usd(12_000_000) }), UsdPerHour::ZERO);
    plan.proof = Proof::Complete;
    let asked = DocumentContext {
        snapshot: &input.snapshot,
        catalogue: input.catalogue,
        unread: input.unread,
        on_unknown_nodes: input.on_unknown_nodes,
        refused: Vec::new(),
        notes: input.notes,
        names: input.names,
        counts_risk: options.spot_risk.is_some(),
    };
    let mut document = document(plan, asked, Times::default()).expect("a plan that holds");
    let mut table = Vec::new();
    print::plan(&document, OutputFormat::Table, &mut table).expect("it is printed");
    let table = String::from_utf8(table).expect("text");
    assert!(
        table.contains("\nCost over time    $12.34 expected: new nodes until they are empty, old ones\n"),
        "{table}"
    );
    assert!(
        table.contains("\nLower bound       $12.00, no plan can cost less; gap 2.83 %, proof complete\n"),
        "{table}"
    );
    assert!(!table.contains("Lower bound       0"), "{table}");
    assert!(table.contains(&format!("for {}", cost.with_month())), "{table}");
    let json = serde_json::to_value(&document).expect("JSON");
    assert_eq!(json["overTime"], serde_json::json!({"usd": 12.34, "lowerBoundUsd": 12.0}));
    assert_eq!(json.get("lowerBoundUsdPerHour"), None);
    document.over_time.as_mut().expect("the costs").lower_bound_usd = Usd::default();
    document.baselines.one_pod_per_node.ignores_namespace_limits = true;
    document.pods.expected = 2;
    let mut table = Vec::new();
    print::plan(&document, OutputFormat::Table, &mut table).expect("it is printed");
    let table = String::from_utf8(table).expect("text");
    assert!(
        table.contains("\nLower bound       none is known, so another plan could cost less\n"),
        "{table}"
    );
    assert!(
        table.contains("\nOne pod per node  not compared: it may exceed a limit of a namespace"),
        "{table}"
    );
    assert!(!table.contains("both with the same prices"), "{table}");
    let headline = table.lines().next().expect("a headline");
    assert!(headline.contains(" waiting and 2 pods that are still to come: buy"), "{headline}");
    let json = serde_json::to_value(&document).expect("JSON");
    assert_eq!(json["baselines"].get("onePodPerNodeUsdPerHour"), None);
    assert!(json["baselines"].get("firstFitUsdPerHour").is_some());
    assert_eq!(json["pods"]["expected"], 2);
}
