//! Tests of empty nodes and scale to zero.

use poolwright_catalog::ResourceList;
use poolwright_core::lifecycle::Decision;
use poolwright_core::*;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::labels::{HOSTNAME, INSTANCE_TYPE};
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

/// Returns a waiting pod whose author copied the toleration of the claim's reservation.
fn copier(requests: ResourceList) -> Pod {
    Pod { reserved_for: vec![ClaimName("c".into())], ..pod("tenant", requests) }
}

/// Returns whether the claim is found to have no work.
fn is_found_empty(snapshot: &Snapshot) -> bool {
    decide(snapshot, at(1000)).actions.iter().any(|action| {
        matches!(action, Action::SetConditions { conditions, .. } if conditions.iter().any(|one| one.kind == ConditionType::Empty))
    })
}

#[test]
fn a_copied_toleration_of_a_reservation_keeps_no_node_where_its_pod_has_no_room() {
    let is_empty =
        |requests| is_found_empty(&with(with_node(initialized(), claimed_node()), [copier(requests)]));
    assert!(is_empty(requests(500, 1, 0)));
    assert!(!is_empty(requests(1, 1, 1)), "there it can run");
}

#[test]
fn a_copied_toleration_of_a_reservation_keeps_no_node_that_does_not_admit_its_pod() {
    let selecting = |key: &str, value: &str| {
        let mut pod = copier(requests(1, 1, 0));
        pod.spec.node_selector = [(key.to_owned(), value.to_owned())].into();
        pod
    };
    let is_empty = |node: Node, pod: Pod| is_found_empty(&with(with_node(initialized(), node), [pod]));
    assert!(is_empty(claimed_node(), selecting("team", "nobody")));
    assert!(!is_empty(claimed_node(), selecting(HOSTNAME, "n")), "there it can run");
    let tainted = Node { taints: vec![taint("team", "a")], ..claimed_node() };
    let tolerating = |key: &str| {
        let mut pod = copier(requests(1, 1, 0));
        pod.spec.tolerations = vec![tolerate(key)];
        pod
    };
    assert!(is_empty(tainted.clone(), copier(requests(1, 1, 0))));
    assert!(!is_empty(tainted, tolerating("team")), "there it can run");
    let mut unmodelled = copier(requests(1, 1, 0));
    unmodelled.spec.unmodelled = vec![UnmodelledRule { field: "spec.x".into(), rule: "x".into() }];
    assert!(is_empty(claimed_node(), unmodelled), "no plan has a place for it");
    // The labels of a node are known before it is launched.
    let is_forgone = |pod: Pod| is_found_empty(&with(with(cluster(aws(), [pool("gpu")]), [claim()]), [pod]));
    assert!(is_forgone(selecting(INSTANCE_TYPE, "c7.xlarge")));
    assert!(!is_forgone(selecting(INSTANCE_TYPE, "g5.xlarge")), "there it will run");
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
    let keeping = Pool { scale_to_zero: ScaleToZero::Never, ..pool("gpu") };
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

/// A pool that chooses the time itself.
fn choosing() -> Pool {
    Pool { scale_to_zero: ScaleToZero::Auto, ..pool("gpu") }
}

/// The claim of an open node that got a pod after it had been without work.
fn busy_again(seconds: i64) -> Claim {
    let mut claim = empty_since(100);
    let empty = claim.conditions.get_mut(&ConditionType::Empty).expect("it is there");
    (empty.status, empty.since, empty.reason) = (ConditionStatus::False, at(seconds), Some(Reason::HasPods));
    claim
}

/// The claim of a node that is terminated because it has been without work since 100 s.
fn given_up() -> Claim {
    let mut claim = disrupting_since(330);
    claim.conditions.get_mut(&ConditionType::Disrupting).expect("it is there").reason = Some(Reason::Empty);
    claim
}

fn named(name: &str, created: i64) -> Claim {
    Claim { name: ClaimName(name.into()), created: at(created), ..claim() }
}

/// What was learned from versions of claims, in order: the number of gaps, and how long a node is kept.
fn learned(claims: impl IntoIterator<Item = Claim>) -> (u32, i64) {
    let mut index = index::ClusterIndex::new();
    for claim in claims {
        index.apply_claim(claim);
    }
    let keep = index.view().gaps.keep(&claim().kind_of_node());
    (keep.why.expect("it is not the pool's").seen, keep.time.as_secs())
}

#[test]
fn with_auto_a_node_is_kept_as_long_as_a_start_costs_and_the_message_says_so() {
    let snapshot = with(with(cluster(aws(), [choosing()]), [empty_since(100)]), [claimed_node()]);
    assert_eq!(decide(&snapshot, at(329)), Decision { actions: vec![], wake_at: Some(at(330)) });
    let message = "no work for 230 s (a start costs as much as 230 s without work): its node is closed, and terminated \
                   unless a pod was bound to it before";
    assert!(decide(&snapshot, at(330)).actions.contains(&set(
        ConditionType::Disrupting,
        ConditionStatus::True,
        Reason::Empty,
        message
    )));
    let explained = why::claim(&snapshot, at(200), &plan::Plan::default(), &ClaimName("c".into()))
        .expect("it exists")
        .join("\n");
    assert!(explained.contains("because a start costs as much as 230 s without work."), "{explained}");
}

#[test]
fn with_auto_a_node_is_kept_longer_where_pods_came_late_before() {
    let mut snapshot = with(with(cluster(aws(), [choosing()]), [empty_since(100)]), [claimed_node()]);
    let mut gaps = Gaps::default();
    for _ in 0..100 {
        gaps.observe(&claim().kind_of_node(), jiff::SignedDuration::from_secs(200), true, at(0));
    }
    snapshot.gaps = gaps.into();
    let decision = decide(&snapshot, at(299));
    assert!(decision.actions.is_empty() && decision.wake_at > Some(at(300)), "{decision:?}");
    assert!(!decide(&snapshot, at(560)).actions.is_empty(), "but not longer than twice the usual time");
}

#[test]
fn a_pod_that_comes_to_a_node_without_work_teaches_the_gap_once() {
    assert_eq!(learned([empty_since(100), busy_again(160), busy_again(160)]).0, 1);
    let buffered = |mut claim: Claim| {
        claim.conditions.get_mut(&ConditionType::Empty).expect("it is there").reason =
            Some(Reason::BufferKept);
        claim
    };
    assert_eq!(learned([empty_since(100), buffered(busy_again(160))]).0, 0, "no pod came");
    assert_eq!(
        learned([true_since(claim(), ConditionType::Empty, 5), busy_again(160)]).0,
        0,
        "it was not open"
    );
}

#[test]
fn the_purchase_after_a_node_was_given_up_teaches_when_the_next_pod_came() {
    assert_eq!(learned([empty_since(100), given_up()]).0, 0);
    assert_eq!(learned([empty_since(100), given_up(), named("next", 400), named("more", 401)]).0, 1);
    assert_eq!(
        learned([empty_since(100), given_up(), named("much-later", 4_000)]).0,
        1,
        "no pod came for long"
    );
    assert_eq!(learned([empty_since(100), given_up(), named("before", 50)]).0, 0, "it was bought before");
    let stays = busy_again(335);
    assert_eq!(learned([empty_since(100), given_up(), stays, named("next", 400)]).0, 1, "its own pod only");
}

#[test]
fn a_clock_set_back_makes_no_gap_negative() {
    assert_eq!(learned([empty_since(100), busy_again(50)]).0, 1);
}

#[test]
fn of_many_terminated_nodes_the_oldest_counts_without_waiting_for_its_pod() {
    let versions = |count: i64| {
        (0..count).flat_map(|number| {
            let named = |claim: Claim| Claim { name: ClaimName(format!("n{number}")), ..claim };
            [named(empty_since(100 + number % 2)), named(given_up())]
        })
    };
    assert_eq!(learned(versions(1_024)).0, 0, "a pod may still come that each could have held");
    assert_eq!(learned(versions(1_025)).0, 1);
}
