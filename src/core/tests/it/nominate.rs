//! Telling the scheduler what was planned.

use poolwright_core::lifecycle::decide;
use poolwright_core::*;

use crate::kit::*;

fn gated() -> Node {
    Node { cordoned: true, gated: true, ..claimed_node() }
}

fn nominated(snapshot: &Snapshot) -> Vec<(String, String)> {
    let actions = decide(snapshot, at(25)).actions;
    let nominations = actions.into_iter().filter_map(|action| match action {
        Action::Nominate { pod, uid, node } => Some((format!("{} {}", pod.name, uid.0), node)),
        _ => None,
    });
    nominations.collect()
}

#[test]
fn pods_are_nominated_right_before_their_node_opens_and_not_while_it_cannot_take_them() {
    let starting = Node { ready: false, ..gated() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [registered()]), [starting]);
    let snapshot = with(snapshot, [pod("p", requests(1, 1, 1))]);
    assert_eq!(nominated(&snapshot), []);
    let actions = decide(&with(snapshot, [gated()]), at(25)).actions;
    let nominate = actions.iter().position(|action| matches!(action, Action::Nominate { .. }));
    let open = actions.iter().position(|action| matches!(action, Action::Open { .. }));
    assert!(nominate.is_some() && nominate < open, "{actions:?}");
}

#[test]
fn waiting_pods_are_nominated_to_their_node_once() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [registered()]), [gated()]);
    let snapshot = with(snapshot, [pod("p", requests(1, 1, 1)), pod("other", requests(1, 1, 1))]);
    assert_eq!(nominated(&snapshot), [("p pod-p".to_owned(), "n".to_owned())]);
    let done = Pod { nominated_node: Some("n".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated(&with(snapshot, [done])), []);
}

#[test]
fn the_last_plan_counts_more_than_what_the_claim_was_bought_for() {
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [registered()]), [gated()]);
    snapshot = with(snapshot, [pod("p", requests(1, 1, 1)), pod("q", requests(1, 1, 1))]);
    snapshot.nominations = [
        (key("p"), (Uid("pod-p".into()), "elsewhere".into())),
        (key("q"), (Uid("pod-q".into()), "c".into())),
    ]
    .into();
    assert_eq!(nominated(&snapshot), [("q pod-q".to_owned(), "n".to_owned())]);
}

#[test]
fn a_pod_for_which_the_scheduler_preempts_elsewhere_is_left_to_it() {
    let snapshot =
        with(with(cluster(aws(), [pool("gpu")]), [registered()]), [gated(), node("theirs", room(1, 1, 0))]);
    let elsewhere = Pod { nominated_node: Some("theirs".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated(&with(snapshot.clone(), [elsewhere])), []);
    let stale = Pod { nominated_node: Some("gone".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated(&with(snapshot, [stale])).len(), 1);
}
