//! Tests of demand: the pods for which nodes are bought.

use poolwright_core::plan::{PlanOptions, UnplacedReason, plan};
use poolwright_core::{Pod, PodPhase, PodRole, UnmodelledRule};
use poolwright_solver::NeverStop;

use crate::kit::*;

fn reason_of(pod: Pod) -> Option<(UnplacedReason, String)> {
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [pod]));
    assert!(plan.claims.is_empty(), "it buys nothing");
    plan.unplaced.into_iter().next().map(|left| (left.reason, left.message))
}

fn small() -> Pod {
    pod("a", requests(1, 1, 1))
}

#[test]
fn a_pod_with_a_rule_that_is_not_modelled_waits_and_is_told_which() {
    let mut spreads = small();
    spreads.spec.unmodelled = vec![UnmodelledRule {
        field: "spec.topologySpreadConstraints".into(),
        rule: "topology spread".into(),
    }];
    let (reason, message) = reason_of(spreads).unwrap();
    assert_eq!(reason, UnplacedReason::UnmodelledRule);
    assert_eq!(
        message,
        "uses topology spread (`spec.topologySpreadConstraints`), which Poolwright does not model, so it buys no node for the pod; correct or remove the rule, or add a node by hand"
    );
}

#[test]
fn pods_that_wait_for_somebody_else_buy_nothing() {
    let reason = |pod: Pod| reason_of(pod).map(|(reason, _)| reason);
    assert_eq!(reason(Pod { phase: PodPhase::Gated, ..small() }), Some(UnplacedReason::SchedulingGated));
    assert_eq!(reason(Pod { phase: PodPhase::Waiting, ..small() }), Some(UnplacedReason::NotYetTried));
    assert_eq!(reason(Pod { scheduler: "volcano".into(), ..small() }), Some(UnplacedReason::OtherScheduler));
}

#[test]
fn pods_that_need_no_node_are_not_even_mentioned() {
    assert_eq!(reason_of(Pod { deleting_since: Some(at(1)), ..small() }), None);
    assert_eq!(reason_of(Pod { role: PodRole::DaemonSet, ..small() }), None);
    assert_eq!(reason_of(Pod { role: PodRole::Mirror, ..small() }), None);
    assert_eq!(reason_of(Pod { phase: PodPhase::Finished, ..small() }), None);
    assert_eq!(reason_of(bound(small(), "n")), None);
}

#[test]
fn from_files_pods_count_that_no_scheduler_has_tried() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [Pod { phase: PodPhase::Waiting, ..small() }]);
    let options = PlanOptions { include_waiting: true, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(0), &options, &mut NeverStop);
    assert_eq!(bought(&plan), ["g5.xlarge: a"]);
}

#[test]
fn a_pod_that_preempts_others_buys_nothing_and_keeps_its_place() {
    let mut preempting = pod("high", requests(3, 1, 0));
    preempting.nominated_node = Some("n".into());
    let snapshot = with(cluster(aws(), [pool("gpu")]), [preempting, pod("low", requests(3, 1, 0))]);
    let snapshot = with(snapshot, [node("n", capacity(4, 16, 0))]);
    let plan = planned(&snapshot);
    assert_eq!(bought(&plan), ["c7.xlarge: low"], "the room on n is spoken for");
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::PreemptionInProgress);
    assert_eq!(plan.unplaced[0].message, "the scheduler makes room for it on node `n` by preemption");
}

#[test]
fn a_nomination_to_a_node_that_is_gone_is_no_reason_to_wait() {
    let nominated = Pod { nominated_node: Some("gone".into()), ..small() };
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [nominated]));
    assert_eq!(bought(&plan), ["g5.xlarge: a"]);
}
