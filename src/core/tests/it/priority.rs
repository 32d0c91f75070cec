//! Tests of priority and preemption.

use poolwright_core::plan::{PlanOptions, UnplacedReason, plan};
use poolwright_core::*;
use poolwright_solver::NeverStop;

use crate::kit::*;

#[test]
fn a_pod_below_the_cut_off_buys_nothing_and_is_told_why() {
    let low = Pod { priority: -11, ..pod("low", requests(1, 1, 0)) };
    let edge = Pod { priority: -10, ..pod("edge", requests(1, 1, 0)) };
    let snapshot = with(cluster(aws(), [pool("gpu")]), [low, edge]);
    let options = PlanOptions { min_priority: Some(-10), ..PlanOptions::default() };
    let cut = plan(&snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(bought(&cut), ["c7.xlarge: edge"]);
    assert_eq!(cut.unplaced[0].reason, UnplacedReason::LowPriority);
    assert_eq!(
        cut.unplaced[0].message,
        "its priority -11 is below -10, the lowest for which Poolwright buys nodes (--min-priority); it runs where room is left"
    );
    assert_eq!(bought(&planned(&snapshot)), ["c7.xlarge: edge low"]);
}

/// Returns a cluster with a pod that the scheduler nominated to a node, unschedulable since 0 s.
fn preempting() -> Snapshot {
    let high = Pod { nominated_node: Some("n".into()), priority: 9, ..pod("high", requests(3, 1, 0)) };
    with(with(cluster(aws(), [pool("gpu")]), [high]), [node("n", capacity(4, 16, 0))])
}

fn leaving(until: i64) -> Pod {
    Pod { deleting_since: Some(at(until)), ..bound(pod("victim", requests(3, 1, 0)), "n") }
}

#[test]
fn a_preemption_that_places_nothing_is_given_up_at_a_time_that_the_cluster_records() {
    let snapshot = preempting();
    let waits = planned_at(&snapshot, 59);
    assert_eq!((bought(&waits), waits.again_at), (vec![], Some(at(60))));
    let given_up = planned_at(&snapshot, 60);
    assert_eq!(given_up.claims.len() + given_up.placements.len(), 1);
    assert_eq!(given_up.again_at, None);
}

#[test]
fn a_pod_waits_as_long_as_those_it_preempts_may_take_to_leave() {
    let snapshot = with(preempting(), [leaving(3600)]);
    let waits = planned_at(&snapshot, 3600);
    assert_eq!((bought(&waits), waits.again_at), (vec![], Some(at(3660))));
    assert_eq!(waits.unplaced[0].reason, UnplacedReason::PreemptionInProgress);
    assert_eq!(bought(&planned_at(&snapshot, 3660)), ["c7.xlarge: high"], "the victim does not go");
}

#[test]
fn those_that_were_preempted_want_nodes_when_they_are_there_again() {
    let anew = pod("victim-2", requests(3, 1, 0));
    let plan = planned(&with(with(preempting(), [leaving(30)]), [anew]));
    assert_eq!(bought(&plan), ["c7.xlarge: victim-2"]);
}
