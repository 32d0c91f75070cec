//! Tests of empty nodes and scale to zero.

use poolwright_core::lifecycle::Decision;
use poolwright_core::*;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn empty_since(seconds: i64) -> Claim {
    true_since(initialized(), ConditionType::Empty, seconds)
}

fn disrupting_since(seconds: i64) -> Claim {
    true_since(empty_since(100), ConditionType::Disrupting, seconds)
}

fn closed() -> Node {
    Node { taints: vec![taint(DISRUPTED_TAINT, "")], ..claimed_node() }
}

fn with_node(claim: Claim, node: Node) -> Snapshot {
    with(with(cluster(aws(), [pool("gpu")]), [claim]), [node])
}

fn set(kind: ConditionType, status: ConditionStatus, reason: Reason, message: &str) -> Action {
    let message = message.into();
    Action::SetConditions {
        subject: Subject::Claim(ClaimName("c".into())),
        conditions: vec![ConditionUpdate { kind, status, reason, message }],
    }
}

#[test]
fn an_empty_node_is_noticed_and_the_record_is_the_timer() {
    let decision = decide(&with_node(initialized(), claimed_node()), at(100));
    let message = "no workload pod is on node n or planned for it";
    assert_eq!(
        decision.actions,
        [set(ConditionType::Empty, ConditionStatus::True, Reason::NoWorkload, message)]
    );
    let decision = decide(&with_node(empty_since(100), claimed_node()), at(399));
    assert_eq!(decision, Decision { actions: vec![], wake_at: Some(at(400)) });
}

#[test]
fn after_its_time_it_is_closed_first() {
    let decision = decide(&with_node(empty_since(100), claimed_node()), at(400));
    let message = "no work for 5 min: its node is closed, and terminated unless a pod was bound to it before";
    assert_eq!(
        decision.actions,
        [
            Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] },
            set(ConditionType::Disrupting, ConditionStatus::True, Reason::Empty, message),
        ]
    );
    assert_eq!(decision.wake_at, Some(at(405)));
}

#[test]
fn when_nothing_got_in_meanwhile_it_is_given_back() {
    let snapshot = with_node(disrupting_since(400), closed());
    assert_eq!(decide(&snapshot, at(404)), Decision { actions: vec![], wake_at: Some(at(405)) });
    assert_eq!(
        decide(&snapshot, at(405)).actions,
        [
            Action::RecordEvent(Event {
                subject: Subject::Claim(ClaimName("c".into())),
                kind: EventType::Normal,
                reason: Reason::ScaledDown,
                message: "node n had no work for 5 min, so it is terminated".into(),
            }),
            Action::DeleteClaim {
                claim: ClaimName("c".into()),
                uid: Uid("uid-c".into()),
                only_if_empty: true
            },
        ]
    );
    // The disruption is recorded, but the node lacks the taint. The claim is not deleted before the node is closed.
    let open = with_node(disrupting_since(400), claimed_node());
    assert_eq!(
        decide(&open, at(500)).actions,
        [Action::SetTaints { node: "n".into(), taints: vec![taint(DISRUPTED_TAINT, "")] }]
    );
}

#[test]
fn a_pod_that_got_in_at_the_last_moment_saves_the_node() {
    let snapshot =
        with(with_node(disrupting_since(400), closed()), [bound(pod("x", requests(1, 1, 0)), "n")]);
    assert_eq!(
        decide(&snapshot, at(405)).actions,
        [
            Action::SetTaints { node: "n".into(), taints: vec![] },
            set(
                ConditionType::Disrupting,
                ConditionStatus::False,
                Reason::HasPods,
                "the node stays: node n runs 1 pod (default/x)"
            ),
            set(
                ConditionType::Empty,
                ConditionStatus::False,
                Reason::HasPods,
                "node n runs 1 pod (default/x)"
            ),
        ]
    );
}

#[test]
fn daemons_mirrors_and_finished_pods_do_not_keep_a_node() {
    let on_node = |name: &str| bound(pod(name, requests(1, 1, 0)), "n");
    let snapshot = with(
        with_node(initialized(), claimed_node()),
        [
            Pod { role: PodRole::DaemonSet, ..on_node("d") },
            Pod { role: PodRole::Mirror, ..on_node("m") },
            Pod { phase: PodPhase::Finished, ..on_node("f") },
        ],
    );
    assert!(matches!(&decide(&snapshot, at(100)).actions[..], [Action::SetConditions { conditions, .. }]
        if conditions[0].kind == ConditionType::Empty && conditions[0].status == ConditionStatus::True));
}

#[test]
fn a_node_that_pods_are_planned_for_is_not_empty() {
    let snapshot = with(with_node(empty_since(100), claimed_node()), [pod("p", requests(1, 1, 1))]);
    let actions = decide(&snapshot, at(120)).actions;
    assert!(actions.contains(&set(
        ConditionType::Empty,
        ConditionStatus::False,
        Reason::PodsExpected,
        "node n is kept for 1 pod (default/p)"
    )));
}

#[test]
fn a_pod_that_began_to_wait_a_moment_ago_is_planned_before_a_node_is_closed() {
    let mut newcomer = pod("new", requests(1, 1, 1));
    newcomer.phase = PodPhase::Unschedulable { since: at(395), message: String::new() };
    let snapshot = with(with_node(empty_since(100), claimed_node()), [newcomer]);
    assert_eq!(decide(&snapshot, at(400)), Decision { actions: vec![], wake_at: Some(at(410)) });
    assert!(!decide(&snapshot, at(410)).actions.is_empty());
}

#[test]
fn a_pool_may_keep_its_nodes_for_ever() {
    let keeping = Pool { scale_to_zero_after: None, ..pool("gpu") };
    let snapshot = with(with(cluster(aws(), [keeping]), [empty_since(100)]), [claimed_node()]);
    assert_eq!(decide(&snapshot, at(1_000_000)), Decision::default());
}

#[test]
fn a_node_that_somebody_deleted_ends_its_claim_unless_work_is_bound_to_it() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [initialized()]);
    let actions = decide(&snapshot, at(50)).actions;
    assert!(matches!(&actions[0], Action::RecordEvent(event) if event.reason == "NodeGone"));
    assert!(matches!(&actions[1], Action::DeleteClaim { only_if_empty: true, .. }));
}
