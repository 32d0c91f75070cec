//! Tests of retiring nodes: they admit only planned pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::Usd;
use poolwright_core::lifecycle::{self, PlacementMode};
use poolwright_core::*;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::kit::*;

fn c() -> ClaimName {
    ClaimName("c".into())
}

fn reserved() -> Node {
    Node { taints: vec![taint(RESERVED_TAINT, "c")], ..claimed_node() }
}

fn retirement() -> Retirement {
    Retirement {
        newcomer: key("small"),
        extension: SignedDuration::from_mins(186),
        here: Usd(97_000_000),
        displaced: Usd(0),
        elsewhere: Usd(4_200_000),
        ends_in: SignedDuration::from_mins(40),
    }
}

/// A node with one pod that has been open for long. At `decided`, a plan decided that it retires.
fn scene(claim: Claim, node: Node, decided: Option<i64>) -> Snapshot {
    let there = bound(pod("p", requests(1, 1, 1)), "n");
    let mut snapshot = with(with(with(cluster(aws(), [pool("gpu")]), [claim]), [node]), [there]);
    let claims = BTreeMap::from([(c(), retirement())]);
    let retirements =
        decided.map(|decided| Retirements { decided: Some(at(decided)), claims, ..Retirements::default() });
    snapshot.retirements = Arc::new(retirements.unwrap_or_default());
    snapshot
}

fn retiring() -> Claim {
    true_since(initialized(), ConditionType::Retiring, 500)
}

/// Returns the taints that a decision gives to the node, by key.
fn taints(snapshot: &Snapshot, now: i64) -> Option<Vec<String>> {
    let taints = |action| match action {
        Action::SetTaints { taints, .. } => Some(taints.into_iter().map(|taint| taint.key).collect()),
        _ => None,
    };
    decide(snapshot, at(now)).actions.into_iter().find_map(taints)
}

/// Returns the change of the condition `Retiring`.
fn recorded(snapshot: &Snapshot, now: i64) -> Option<(ConditionStatus, Reason, String)> {
    let actions = decide(snapshot, at(now)).actions;
    let conditions = actions.into_iter().filter_map(|action| match action {
        Action::SetConditions { conditions, .. } => Some(conditions),
        _ => None,
    });
    let mut of_kind = conditions.flatten().filter(|update| update.kind == ConditionType::Retiring);
    of_kind.next().map(|update| (update.status, update.reason, update.message))
}

/// Returns the events of a decision: object, reason and message.
fn told(snapshot: &Snapshot, now: i64) -> Vec<(Subject, Reason, String)> {
    let event = |action| match action {
        Action::RecordEvent(event) => Some((event.subject, event.reason, event.message)),
        _ => None,
    };
    decide(snapshot, at(now)).actions.into_iter().filter_map(event).collect()
}

#[test]
fn claim_and_node_tell_when_the_node_begins_and_ceases_to_retire_and_never_in_between() {
    for (snapshot, now, reason) in [
        (scene(initialized(), claimed_node(), Some(500)), 501, Reason::CheaperElsewhere),
        (scene(retiring(), reserved(), Some(4000)), 4301, Reason::RoomIsCheap),
    ] {
        let message = recorded(&snapshot, now).unwrap().2;
        let about = [Subject::Claim(c()), Subject::Node("n".into())];
        assert_eq!(told(&snapshot, now), about.map(|subject| (subject, reason, message.clone())));
    }
    assert_eq!(told(&scene(retiring(), reserved(), Some(4000)), 4060), []);
    assert_eq!(told(&scene(initialized(), claimed_node(), None), 501), []);
}

#[test]
fn an_open_node_that_retires_closes_to_newcomers_and_says_why() {
    let snapshot = scene(initialized(), claimed_node(), Some(500));
    assert_eq!(taints(&snapshot, 501), Some(vec![RESERVED_TAINT.to_owned()]));
    let (status, reason, message) = recorded(&snapshot, 501).unwrap();
    assert_eq!((status, reason), (ConditionStatus::True, Reason::CheaperElsewhere));
    assert_eq!(
        message,
        "admits only planned pods, because a pod like default/small would keep this node 3.1 h longer, for $97.00, and costs $4.20 on a node of its own; its last pod is expected to end in 40 min"
    );
}

#[test]
fn a_retiring_node_stays_closed_while_plans_renew_the_decision() {
    let snapshot = scene(retiring(), reserved(), Some(4000));
    assert_eq!((taints(&snapshot, 4060), recorded(&snapshot, 4060)), (None, None));
}

#[test]
fn a_decision_that_nobody_renews_is_void_after_five_minutes() {
    let snapshot = scene(retiring(), reserved(), Some(4000));
    assert_eq!(taints(&snapshot, 4300), None);
    assert_eq!(taints(&snapshot, 4301), Some(Vec::new()));
    assert_eq!(recorded(&snapshot, 4301).unwrap().0, ConditionStatus::False);
}

#[test]
fn a_decision_after_which_the_clock_was_set_back_is_void() {
    assert_eq!(taints(&scene(retiring(), reserved(), Some(4000)), 3000), Some(Vec::new()));
}

#[test]
fn a_new_leader_keeps_closed_nodes_closed_until_its_first_plan_but_not_for_ever() {
    let mut snapshot = scene(retiring(), reserved(), None);
    let inherited = Retirements { decided: Some(at(4000)), inherited: true, ..Retirements::default() };
    snapshot.retirements = Arc::new(inherited);
    assert_eq!(taints(&snapshot, 4100), None);
    assert_eq!(taints(&snapshot, 4301), Some(Vec::new()));
    let own = Retirements { decided: Some(at(4100)), ..Retirements::default() };
    snapshot.retirements = Arc::new(own);
    assert_eq!(taints(&snapshot, 4101), Some(Vec::new()), "its own plan wants the node open");
}

#[test]
fn a_pod_that_a_plan_wants_on_a_retiring_node_is_let_in_and_nobody_else() {
    let mut snapshot = scene(retiring(), reserved(), Some(4000));
    snapshot = with(snapshot, [pod("wanted", requests(1, 1, 0)), pod("other", requests(1, 1, 0))]);
    snapshot.nominations.insert(key("wanted"), (Uid("pod-wanted".into()), "c".into()));
    let actions = decide(&snapshot, at(4001)).actions;
    let let_in = |action| match action {
        Action::Tolerate { pod, claim, .. } => Some((pod.name, claim)),
        _ => None,
    };
    assert_eq!(actions.into_iter().filter_map(let_in).collect::<Vec<_>>(), [("wanted".to_owned(), c())]);
}

#[test]
fn no_node_retires_where_pods_cannot_be_let_in() {
    let snapshot = scene(initialized(), claimed_node(), Some(500));
    let actions = lifecycle::decide(&snapshot, at(501), PlacementMode::Nominate).actions;
    assert!(!actions.iter().any(|action| matches!(action, Action::SetTaints { .. })), "{actions:?}");
}

#[test]
fn an_empty_node_that_retires_is_terminated_as_any_other() {
    let mut snapshot = scene(true_since(retiring(), ConditionType::Empty, 4000), reserved(), Some(4290));
    snapshot = with(snapshot, [Pod { phase: PodPhase::Finished, ..pod("p", requests(1, 1, 1)) }]);
    let taints = taints(&snapshot, 4300).unwrap();
    assert_eq!(taints, [poolwright_terms::keys::DISRUPTED_TAINT]);
}

#[test]
fn a_controller_that_stops_opens_retiring_nodes_and_no_others() {
    let retiring = scene(retiring(), reserved(), Some(4000));
    let opened = Action::SetTaints { node: "n".into(), taints: vec![] };
    assert_eq!(lifecycle::open_all(&retiring), [opened]);
    let starting = scene(initialized(), reserved(), None);
    assert_eq!(lifecycle::open_all(&starting), [], "its own pods are still to come");
}
