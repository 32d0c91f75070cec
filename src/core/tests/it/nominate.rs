//! Tests of nominations.

use poolwright_core::lifecycle::{self, Decision, PlacementMode};
use poolwright_core::*;

use crate::kit::*;

fn decide(snapshot: &Snapshot, now: jiff::Timestamp) -> Decision {
    lifecycle::decide(snapshot, now, PlacementMode::Nominate)
}

fn cordoned() -> Node {
    Node { cordoned: true, cordoned_until_initialized: true, ..claimed_node() }
}

fn nominated(snapshot: &Snapshot) -> Vec<(String, String)> {
    nominated_at(snapshot, 25)
}

fn nominated_at(snapshot: &Snapshot, now: i64) -> Vec<(String, String)> {
    let actions = decide(snapshot, at(now)).actions;
    let nominations = actions.into_iter().filter_map(|action| match action {
        Action::Nominate { pod, uid, node } => Some((format!("{} {}", pod.name, uid.0), node)),
        _ => None,
    });
    nominations.collect()
}

fn opened(snapshot: &Snapshot, now: i64) -> Vec<String> {
    let actions = decide(snapshot, at(now)).actions;
    let opened = actions.into_iter().filter_map(|action| match action {
        Action::Open { node, .. } => Some(node),
        _ => None,
    });
    opened.collect()
}

/// Returns registered claims `c0`, `c1`, ... whose nodes are ready to open, each planned for one waiting pod.
fn ready_to_open(count: usize) -> Snapshot {
    let mut snapshot = cluster(aws(), [pool("gpu")]);
    for number in 0..count {
        let (name, node) = (format!("c{number}"), format!("n{number}"));
        let provider_id = format!("kwok://{name}");
        let claim = Claim {
            name: ClaimName(name.clone()),
            uid: Uid(format!("uid-{name}")),
            node_name: Some(node.clone()),
            launched: registered().launched.map(|l| Launched { provider_id: provider_id.clone(), ..l }),
            planned_pods: vec![key(&format!("p{number}"))],
            ..registered()
        };
        let node = Node { name: node, provider_id: Some(provider_id), ..cordoned() };
        snapshot =
            with(with(with(snapshot, [claim]), [node]), [pod(&format!("p{number}"), requests(1, 1, 1))]);
    }
    snapshot
}

fn nominate_all(mut snapshot: Snapshot, count: usize) -> Snapshot {
    for number in 0..count {
        let nominated = Pod {
            nominated_node: Some(format!("n{number}")),
            ..pod(&format!("p{number}"), requests(1, 1, 1))
        };
        snapshot = with(snapshot, [nominated]);
    }
    snapshot
}

#[test]
fn pods_are_not_nominated_to_a_node_that_is_not_ready() {
    let starting = Node { ready: false, ..cordoned() };
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [registered()]), [starting]);
    assert_eq!(nominated(&with(snapshot, [pod("p", requests(1, 1, 1))])), []);
}

#[test]
fn nodes_of_a_group_open_together_once_all_their_pods_are_nominated() {
    let snapshot = ready_to_open(70);
    let both = [("p0 pod-p0".to_owned(), "n0".to_owned()), ("p1 pod-p1".to_owned(), "n1".to_owned())];
    assert_eq!((nominated_at(&snapshot, 22), opened(&snapshot, 22)), (both.to_vec(), vec![]));
    let one = nominate_all(snapshot.clone(), 1);
    assert_eq!((nominated_at(&one, 22), opened(&one, 22)), (both[1..].to_vec(), vec![]));
    let all = nominate_all(snapshot, 2);
    // Existing nominations are repeated at the last moment.
    assert_eq!((nominated_at(&all, 22), opened(&all, 22)), (both.to_vec(), vec!["n0".into(), "n1".into()]));
}

#[test]
fn a_node_opens_in_time_even_if_the_scheduler_keeps_clearing_nominations() {
    let snapshot = ready_to_open(1);
    assert_eq!(opened(&snapshot, 24), [] as [&str; 0]);
    assert_eq!(decide(&snapshot, at(24)).wake_at, Some(at(25)));
    let actions = decide(&snapshot, at(25)).actions;
    let nominate = actions.iter().position(|action| matches!(action, Action::Nominate { .. }));
    let open = actions.iter().position(|action| matches!(action, Action::Open { .. }));
    assert!(nominate.is_some() && nominate < open, "{actions:?}");
}

#[test]
fn the_next_nodes_open_when_the_pods_of_those_before_are_placed_or_had_their_time() {
    let snapshot = nominate_all(ready_to_open(2), 2);
    let before = Claim {
        name: ClaimName("before".into()),
        uid: Uid("uid-before".into()),
        planned_pods: vec![key("first")],
        ..initialized()
    };
    let snapshot = with(with(snapshot, [before]), [claimed_node()]);
    let waiting =
        with(snapshot.clone(), [Pod { nominated_node: Some("n".into()), ..pod("first", requests(1, 1, 1)) }]);
    assert_eq!(opened(&waiting, 32), [] as [&str; 0]);
    assert_eq!(decide(&waiting, at(32)).wake_at, Some(at(33)));
    assert_eq!(opened(&waiting, 33), ["n0"]);
    let placed = with(snapshot, [bound(pod("first", requests(1, 1, 1)), "n")]);
    assert_eq!(opened(&placed, 32), ["n0"]);
}

#[test]
fn a_few_nodes_open_one_by_one_and_nodes_without_waiting_pods_at_once() {
    let snapshot = nominate_all(ready_to_open(12), 12);
    assert_eq!(opened(&snapshot, 22), ["n0"]);
    let gone = with(
        snapshot,
        (0..12).map(|number| bound(pod(&format!("p{number}"), requests(1, 1, 1)), "elsewhere")),
    );
    assert_eq!(opened(&gone, 22).len(), 12);
}

#[test]
fn pods_that_wait_for_an_open_node_are_nominated_once() {
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), [initialized()]), [claimed_node()]);
    let snapshot = with(snapshot, [pod("p", requests(1, 1, 1)), pod("other", requests(1, 1, 1))]);
    assert_eq!(nominated_at(&snapshot, 35), [("p pod-p".to_owned(), "n".to_owned())]);
    let done = Pod { nominated_node: Some("n".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated_at(&with(snapshot, [done]), 35), []);
}

#[test]
fn the_last_plan_counts_more_than_what_the_claim_was_bought_for() {
    let mut snapshot = with(with(cluster(aws(), [pool("gpu")]), [registered()]), [cordoned()]);
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
    let snapshot = with(
        with(cluster(aws(), [pool("gpu")]), [registered()]),
        [cordoned(), node("theirs", capacity(1, 1, 0))],
    );
    let elsewhere = Pod { nominated_node: Some("theirs".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated(&with(snapshot.clone(), [elsewhere])), []);
    let stale = Pod { nominated_node: Some("gone".into()), ..pod("p", requests(1, 1, 1)) };
    assert_eq!(nominated(&with(snapshot, [stale])).len(), 1);
}
