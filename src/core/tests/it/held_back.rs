//! Tests of what unplaced pods are told while offerings that would hold them are held back after a stock-out.

use poolwright_core::plan::{Plan, UnplacedReason};
use poolwright_core::{Pool, PoolLimits, Snapshot};
use poolwright_terms::labels::INSTANCE_TYPE;

use crate::kit::*;

const UNTIL: &str = "the first is tried again at 2027-01-15T08:01:00Z";

fn costing(most: &str) -> PoolLimits {
    PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() }
}

/// Returns a pod with one GPU, and a pool of a small type in two zones and a large one. The small type is held back.
fn waiting(limits: PoolLimits) -> Snapshot {
    let requirements = vec![is_in(INSTANCE_TYPE, &["g5.xlarge", "g5.12xlarge"])];
    let gpu = Pool { limits, requirements, ..pool("gpu") };
    let mut snapshot = with(cluster(aws(), [gpu]), [pod("p", requests(1, 1, 1))]);
    for zone in ["a", "b"] {
        snapshot.held_back.insert((node_class(), id("g5.xlarge", zone)), at(60));
    }
    snapshot
}

fn told(plan: &Plan) -> (UnplacedReason, &str) {
    (plan.unplaced[0].reason, plan.unplaced[0].message.as_str())
}

#[test]
fn a_stock_out_within_the_limits_comes_before_the_limit_that_keeps_dearer_offerings_away() {
    let snapshot = waiting(costing("2"));
    let plan = planned(&snapshot);
    let small = "failed recently (g5.xlarge/a/on-demand, g5.xlarge/b/on-demand)";
    let wait = format!(
        "the offerings of pool `gpu` that fit it and are within the limits {small}; {UNTIL}; besides, limit usdPerHour = 2.00 of pool \
         `gpu` is below the $5.68/h that the smallest other node which fits it uses; raise spec.limits"
    );
    assert_eq!(told(&plan), (UnplacedReason::OfferingsHeldBack, wait.as_str()));
    let of_pool = format!(
        "the offerings of pool `gpu` that fit a waiting pod and are within the limits {small}; {UNTIL}; besides, limit usdPerHour = \
         2.00 of pool `gpu` is too low for other offerings that fit; raise spec.limits"
    );
    assert_eq!(plan.pools[&pool("gpu").name].limit_reached.as_ref(), Some(&of_pool));
    assert_eq!(bought(&planned(&Snapshot { held_back: [].into(), ..snapshot })), ["g5.xlarge: p"]);
}

#[test]
fn a_limit_below_every_offering_is_told_with_what_the_smallest_uses_although_it_is_held_back() {
    let plan = planned(&waiting(costing("0.50")));
    let (reason, said) = told(&plan);
    assert_eq!(reason, UnplacedReason::LimitReached);
    let limit = "limit usdPerHour = 0.50 of pool `gpu` is below the $1.01/h that the smallest node which fits it uses; raise spec.limits";
    let besides =
        "; besides, some offerings of pool `gpu` that fit it failed recently (g5.xlarge/a/on-demand, ";
    assert!(said.starts_with(&format!("{limit}{besides}")) && said.ends_with(UNTIL), "{said}");
}

#[test]
fn the_offerings_that_must_be_waited_for_are_those_of_the_pool_whose_limit_is_told() {
    let buying = |name: &str, types: &[&str]| Pool {
        limits: costing("0.50"),
        requirements: vec![is_in(INSTANCE_TYPE, types)],
        ..pool(name)
    };
    let pools = [buying("cheap", &["g5.xlarge", "g5.12xlarge"]), buying("dear", &["g6.xlarge"])];
    let mut snapshot = with(cluster(aws(), pools), [pod("p", requests(1, 1, 1))]);
    // Those of the other pool are tried again first.
    for (kind, zone, until) in [("g5.xlarge", "a", 90), ("g5.xlarge", "b", 90), ("g6.xlarge", "a", 60)] {
        snapshot.held_back.insert((node_class(), id(kind, zone)), at(until));
    }
    let plan = planned(&snapshot);
    let said = told(&plan).1;
    assert!(said.starts_with("limit usdPerHour = 0.50 of pool `cheap` is below the $1.01/h"), "{said}");
    assert!(said.contains("; besides, some offerings of pool `cheap` that fit it failed recently"), "{said}");
    assert!(!said.contains("`dear`"), "{said}");
}

#[test]
fn a_limit_that_keeps_everything_away_is_told_besides_a_stock_out_of_everything() {
    let mut snapshot = waiting(PoolLimits { nodes: Some(0), ..PoolLimits::default() });
    snapshot.held_back.insert((node_class(), id("g5.12xlarge", "a")), at(60));
    let plan = planned(&snapshot);
    let (reason, said) = told(&plan);
    assert_eq!(reason, UnplacedReason::OfferingsHeldBack);
    let limit = "besides, limit nodes = 0 of pool `gpu` is below the 1 that the smallest node which fits it uses; raise spec.limits";
    assert!(
        said.starts_with("the offerings of pool `gpu` that fit it failed recently (g5.12xlarge/a"),
        "{said}"
    );
    assert!(said.ends_with(&format!("{UNTIL}; {limit}")), "{said}");
}

#[test]
fn a_stock_out_that_leaves_too_little_choice_comes_before_min_values() {
    let of = |least: u32| {
        let choice = Pool { min_values: [(INSTANCE_TYPE.to_owned(), least)].into(), ..pool("gpu") };
        let mut snapshot = with(cluster(aws(), [choice]), [pod("p", requests(1, 1, 1))]);
        snapshot.held_back.insert((node_class(), id("g6.xlarge", "a")), at(60));
        planned(&snapshot)
    };
    let plan = of(3);
    let (reason, said) = told(&plan);
    assert_eq!(reason, UnplacedReason::OfferingsHeldBack);
    let failed = "some offerings of pool `gpu` that fit it failed recently (g6.xlarge/a/on-demand); ";
    let besides = "; besides, pool `gpu` asks for 3 values of `node.kubernetes.io/instance-type` to choose from (minValues)";
    assert!(said.starts_with(failed) && said.contains(besides), "{said}");
    let never = of(4);
    let (reason, said) = told(&never);
    assert_eq!(reason, UnplacedReason::NoOfferingFits, "waiting does not help");
    assert!(said.contains("offerings with only 3 values can hold it"), "{said}");
}

#[test]
fn a_limit_that_allows_what_is_held_back_is_not_told_besides_a_rule() {
    let mut snapshot = waiting(costing("2"));
    let tainted = Pool {
        taints: vec![taint("dedicated", "")],
        limits: costing("2"),
        requirements: vec![is_in(INSTANCE_TYPE, &["g5.xlarge", "g5.12xlarge"])],
        ..pool("gpu")
    };
    snapshot.pools.insert(tainted.name.clone(), tainted.into());
    assert_eq!(
        told(&planned(&snapshot)),
        (
            UnplacedReason::NoOfferingFits,
            "does not tolerate taint `dedicated:NoSchedule` of pool `gpu`; add a toleration, or a pool without the taint"
        )
    );
}
