//! Tests of costs over time: pods go where they postpone the end of nodes least, and nodes retire whose end newcomers would
//! postpone.

use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::RankedOffering;
use poolwright_core::plan::{Plan, Target};
use poolwright_core::*;
use poolwright_terms::keys::RESERVED_TAINT;

use crate::kit::*;

fn c() -> ClaimName {
    ClaimName("c".into())
}

/// A pod that says how long it runs.
fn lasting(pod: Pod, hours: i64) -> Pod {
    let expected = Some(SignedDuration::from_hours(hours));
    Pod { duration: PodDuration { expected, ..pod.duration }, ..pod }
}

/// A node with four GPUs for 5.672 $/h, with one pod that runs for this long. Free room is for three pods with a GPU.
fn scene(hours: i64, reserved: bool) -> Snapshot {
    let big = RankedOffering {
        offering: id("g5.12xlarge", "a"),
        price: Some(usd("5.672")),
        allocatable: capacity(48, 192, 4),
    };
    let claim = Claim { offerings: vec![big.clone()], ..claim() };
    let claim = true_since(launched(claim), poolwright_terms::ConditionType::Initialized, 30);
    let claim = Claim { node_name: Some("n".into()), planned_pods: vec![], ..claim };
    let taints = if reserved { vec![taint(RESERVED_TAINT, "c")] } else { vec![] };
    let node = Node { allocatable: big.allocatable, taints, ..claimed_node() };
    let there = bound(lasting(pod("there", requests(4, 16, 1)), hours), "n");
    let there = Pod { duration: PodDuration { started: Some(at(0)), ..there.duration }, ..there };
    let mut snapshot = with(with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]), [there]);
    snapshot.lives = Arc::new(Lives::prior());
    snapshot
}

fn newcomer(hours: i64) -> Pod {
    lasting(pod("new", requests(2, 8, 1)), hours)
}

/// Returns whether the newcomer goes to the node that is there.
fn joins(plan: &Plan) -> bool {
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    assert_eq!(plan.claims.len() + plan.placements.len(), 1, "{plan:?}");
    plan.placements.first().is_some_and(|placement| placement.target == Target::Claim(c()))
}

#[test]
fn a_pod_that_ends_before_the_others_joins_them() {
    assert!(joins(&planned_at(&with(scene(100, true), [newcomer(1)]), 60)));
}

#[test]
fn a_pod_that_would_keep_an_expensive_node_for_itself_gets_its_own() {
    let plan = planned_at(&with(scene(1, true), [newcomer(100)]), 60);
    assert!(!joins(&plan));
    assert_eq!(bought(&plan), ["g5.xlarge: new"]);
}

#[test]
fn room_that_the_scheduler_fills_anyway_is_used_first() {
    assert!(joins(&planned_at(&with(scene(1, false), [newcomer(100)]), 60)), "buying would pay twice");
}

#[test]
fn without_any_knowledge_of_lives_free_room_costs_nothing() {
    let mut snapshot = with(scene(1, true), [newcomer(100)]);
    snapshot.lives = Arc::default();
    let plan = planned_at(&snapshot, 60);
    assert!(joins(&plan));
    assert!(plan.retirements.claims.is_empty() && plan.over_time.is_none());
}

#[test]
fn a_pod_that_nothing_on_sale_fits_joins_however_long_it_keeps_the_node() {
    let mut snapshot = with(scene(1, true), [newcomer(100)]);
    let no_money = Pool {
        limits: PoolLimits { usd_per_hour: Some(usd("5.7")), ..PoolLimits::default() },
        ..pool("gpu")
    };
    snapshot.pools.insert(PoolName("gpu".into()), Arc::new(no_money));
    assert!(joins(&planned_at(&snapshot, 60)), "a closed node is never the reason that a pod waits");
}

#[test]
fn a_node_retires_if_recent_pods_would_run_cheaper_elsewhere() {
    let plan = planned_at(&with(scene(1, false), [bound(newcomer(100), "other")]), 60);
    let retirement = plan.retirements.claims.get(&c()).expect("it retires");
    assert_eq!(retirement.newcomer, key("new"));
    assert!(retirement.here > retirement.elsewhere, "{retirement:?}");
}

#[test]
fn a_node_is_open_if_its_pods_outlive_newcomers() {
    let plan = planned_at(&with(scene(500, false), [bound(newcomer(1), "other")]), 60);
    assert!(plan.retirements.claims.is_empty(), "{:?}", plan.retirements);
}

#[test]
fn nodes_that_are_kept_anyway_and_those_of_a_pool_that_says_so_never_retire() {
    for kept in [
        Pool { replicas: Some(1), ..pool("gpu") },
        Pool { scale_to_zero: ScaleToZero::Never, ..pool("gpu") },
        Pool { disruption: Disruption { retires: false, ..Disruption::default() }, ..pool("gpu") },
    ] {
        let mut snapshot = with(scene(1, false), [bound(newcomer(100), "other")]);
        snapshot.pools.insert(kept.name.clone(), Arc::new(kept));
        assert!(planned_at(&snapshot, 60).retirements.claims.is_empty());
    }
}

#[test]
fn pods_that_live_equally_long_are_planned_by_the_price_of_the_moment() {
    let pods = || (0..9).map(|number| pod(&format!("p{number}"), requests(2, 8, 1)));
    let unknown = with(cluster(aws(), [pool("gpu")]), pods());
    let mut known = unknown.clone();
    known.lives = Arc::new(Lives::prior());
    let (unknown, known) = (planned_at(&unknown, 60), planned_at(&known, 60));
    assert_eq!((known.claims, known.cost, known.bound), (unknown.claims, unknown.cost, unknown.bound));
}

#[test]
fn the_cost_over_time_has_a_bound_of_its_own() {
    let plan = planned_at(&with(scene(1, true), [newcomer(100)]), 60);
    let over_time = plan.over_time.expect("the plan weighs time");
    assert!(
        over_time.bound <= over_time.cost && over_time.cost > poolwright_catalog::Usd(0),
        "{over_time:?}"
    );
    assert!(plan.gap() < 0.01, "{}", plan.gap());
}
