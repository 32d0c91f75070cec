//! Tests of pods that give way, so that a waiting pod needs no new node.

use std::sync::Arc;

use poolwright_core::disruption::{RoomMade, make_room};
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::labels::INSTANCE_TYPE;

use super::*;

/// Returns a pod that only nodes of the large type can run.
fn picky(name: &str) -> Pod {
    let mut pod = pod(name, requests(2, 4, 1));
    pod.spec.node_selector = [(INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())].into();
    pod
}

/// Returns a cluster in which such a pod waits, and the only large node is full of replicas.
pub(super) fn full(change: impl Fn(Pod) -> Pod) -> Snapshot {
    let (claim, node) = large("big");
    let labels = [(INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())].into();
    let snapshot = cluster_of(moving_pool(), vec![(claim, Node { labels, ..node })], &[]);
    let there = ["a", "b", "c", "d"].map(|name| bound(change(replica(name)), "big"));
    with(with(with(snapshot, there), [web(4)]), [picky("v")])
}

/// Makes a pod one of a service, which has no end.
fn service(mut pod: Pod) -> Pod {
    pod.duration = PodDuration { started: Some(at(40)), is_service: true, ..PodDuration::default() };
    pod
}

pub(super) fn made_at(snapshot: &Snapshot, history: &MoveHistory, seconds: i64) -> Option<RoomMade> {
    let current = planned_at(snapshot, seconds);
    make_room(snapshot, &current, history, at(seconds), &PlanOptions::default(), &mut NeverStop)
}

/// Returns the cluster in which the waiting pod is nominated to the large node.
pub(super) fn nominated(mut snapshot: Snapshot) -> Snapshot {
    snapshot.pods.change(&key("v"), |pod| pod.nominated_node = Some("big".to_owned()));
    snapshot
}

fn made(snapshot: &Snapshot) -> Option<RoomMade> {
    made_at(snapshot, &MoveHistory::default(), NOW)
}

pub(super) fn evicted(made: &RoomMade) -> Vec<String> {
    let evictions = made.actions.iter().filter_map(|action| match action {
        Action::Evict { pod, .. } => Some(pod.name.clone()),
        _ => None,
    });
    evictions.collect()
}

#[test]
fn a_service_that_runs_anywhere_gives_way_to_a_pod_that_only_its_node_can_run() {
    let snapshot = full(|pod| pod);
    assert_eq!(bought(&planned_at(&snapshot, NOW)), ["g5.12xlarge: v"], "without a move");
    let first = made(&snapshot).unwrap();
    assert_eq!(bought(&first.plan), ["g5.xlarge: ReplicaSet:web#0"]);
    assert_eq!(evicted(&first), Vec::<String>::new(), "its successor has no open place yet");

    let instead = "instead of a new g5.12xlarge/a/on-demand at $5.67/h";
    let wait = "It waits until the successors have places on open nodes.";
    let explained = |name: &str| first.explanations[&key(name)].clone();
    assert_eq!(explained("v"), format!("It gets the room of default/a on node big, {instead}. {wait}"));
    assert_eq!(
        explained("a"),
        format!("Its successor gets a new node. Its room on node big is for default/v, {instead}.")
    );

    let lines = why::pod(&snapshot, at(NOW), &PlanOptions::default(), &first.plan, &key("v")).unwrap();
    let planned = "Planned on claim `big`, in the room of pods that leave this node.";
    assert_eq!(lines.last().unwrap(), planned, "another node is bought, so it costs something");

    // While the small node starts, nothing else is bought.
    let begun = carried_out(&snapshot, &first.plan, NOW);
    let second = made_at(&begun, &MoveHistory::default(), NOW + 10).unwrap();
    assert_eq!((bought(&second.plan), evicted(&second)), (vec![], vec![]));

    let ready = opened(&begun, &first.plan.claims[0].name);
    let mut history = MoveHistory::default();
    let asked = made_at(&ready, &history, NOW + 61).unwrap();
    assert_eq!(
        (bought(&asked.plan), evicted(&asked)),
        (vec![], vec![]),
        "the waiting pod is nominated first"
    );
    let nominates = |action: &Action| matches!(action, Action::Nominate { pod, node, .. } if pod.name == "v" && node == "big");
    assert!(asked.actions.iter().any(nominates) && asked.only_nominates(), "{:?}", asked.actions);
    let waits = nominated(ready.clone());
    let third = made_at(&waits, &history, NOW + 63).unwrap();
    assert_eq!((bought(&third.plan), evicted(&third)), (vec![], vec!["a".to_owned()]));
    let again = third.actions.iter().any(nominates) && !third.only_nominates();
    assert!(again, "the scheduler may have cleared the nomination: {:?}", third.actions);
    let why = third.actions.iter().find_map(|action| match action {
        Action::Evict { why, .. } => Some(why.clone()),
        _ => None,
    });
    let new = &first.plan.claims[0].name;
    let said = format!(
        "its successor has room on {new}, and its room on node big is for default/v, instead of a new \
         g5.12xlarge/a/on-demand at $5.67/h"
    );
    assert_eq!(why.as_deref(), Some(said.as_str()));

    // The eviction is not seen yet, and then the pod is terminating. In both cases, the same pod gives way and nothing is bought.
    history.record_evictions(&waits, &third.evicted, at(NOW + 63));
    let again = made_at(&waits, &history, NOW + 64).unwrap();
    assert_eq!((bought(&again.plan), evicted(&again)), (vec![], vec!["a".to_owned()]));
    let ending = Pod { deleting_since: Some(at(NOW + 92)), ..bound(replica("a"), "big") };
    let ending = with(with(ready, [ending]), [replica("e")]);
    assert_eq!(bought(&planned_at(&nominated(ending.clone()), NOW + 65)), Vec::<String>::new());
    // The scheduler has cleared the nomination.
    let last = made_at(&ending, &history, NOW + 65).unwrap();
    assert_eq!((bought(&last.plan), evicted(&last)), (vec![], vec![]));
    assert!(last.actions.iter().any(nominates), "{:?}", last.actions);
    // A pod that never ends is not waited for. Another one gives way.
    let other = made_at(&ending, &history, NOW + 92 + 61).unwrap();
    assert_eq!(bought(&other.plan), ["g5.xlarge: ReplicaSet:web#1"]);
}

#[test]
fn the_saving_must_be_ten_times_the_loss_at_the_place_that_a_pod_gets() {
    // A node for $5.67/h is not bought, and one for $1.01/h is, ten minutes of it beside the old place. The restart costs five
    // minutes of $1.01/h, ten times $0.08. At the old place, it would cost ten times $0.12.
    let made_within = |minutes| {
        let mut snapshot = full(|pod| pod);
        let mut pool = moving_pool();
        pool.disruption.payback = SignedDuration::from_mins(minutes);
        snapshot.pools.insert(pool.name.clone(), pool.into());
        made(&snapshot).is_some()
    };
    assert!(!made_within(12), "saves $0.93");
    assert!(made_within(15), "saves $1.17");
}

#[test]
fn a_node_for_a_short_pod_also_costs_its_start_and_the_time_without_work() {
    // Ten minutes on a node of its own cost the pod $1.13 with the start, and five minutes without work $0.47 more. The small node
    // costs $0.28, $0.17 beside the old place, and ten times the restart $0.84.
    let made_with_idle = |minutes| {
        let mut snapshot = full(service);
        let mut pool = moving_pool();
        pool.disruption.payback = SignedDuration::from_mins(10);
        pool.scale_to_zero = ScaleToZero::After(SignedDuration::from_mins(minutes));
        snapshot.pools.insert(pool.name.clone(), pool.into());
        let duration =
            PodDuration { expected: Some(SignedDuration::from_mins(10)), ..PodDuration::default() };
        snapshot.pods.change(&key("v"), |pod| pod.duration = duration.clone());
        snapshot.lives = Arc::new(Lives::prior());
        made(&snapshot).is_some()
    };
    assert!(made_with_idle(5));
    assert!(!made_with_idle(0));
}

#[test]
fn consolidation_leaves_the_pods_of_a_controller_alone_for_two_hours_after_one_of_them_made_room() {
    let snapshot = with(cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]), [web(2)]);
    let mut history = MoveHistory::default();
    let gone = Pod { uid: Uid("gone".into()), ..replica("gone") };
    history.record_evictions(&with(snapshot.clone(), [gone]), &[(key("gone"), Uid("gone".into()))], at(NOW));
    let moves = |history: &MoveHistory, seconds: i64| {
        let current = planned_at(&snapshot, seconds);
        let found =
            propose(&snapshot, &current, history, at(seconds), &PlanOptions::default(), &mut NeverStop);
        found.proposal.is_some()
    };
    assert!(moves(&MoveHistory::default(), NOW), "a large node for one small pod");
    assert!(!moves(&history, NOW + 2 * 3600 - 1));
    assert!(moves(&history, NOW + 2 * 3600));
    // The clock was set back by a day after the eviction. That keeps nobody where it is.
    let mut later = MoveHistory::default();
    let gone = Pod { uid: Uid("gone".into()), ..replica("gone") };
    let evicted = [(key("gone"), Uid("gone".into()))];
    later.record_evictions(&with(snapshot.clone(), [gone]), &evicted, at(NOW + 24 * 3600));
    assert!(moves(&later, NOW));
}

#[test]
fn the_next_leader_knows_which_pods_gave_way_and_which_evictions_were_refused() {
    let snapshot = nominated(with_node(full(|pod| pod), small("free")));
    let first = made(&snapshot).unwrap();
    let mut old = MoveHistory::default();
    old.record_evictions(&snapshot, &first.evicted, at(NOW));
    let mut next = MoveHistory::default();
    next.add(old.record_to_keep());
    assert_eq!(next, old);
    // Two minutes after the first eviction, it counts as refused. A leader without the record would begin anew.
    assert_eq!(bought_after_eviction(&snapshot, &next, NOW + 120), ["g5.12xlarge: v"]);
    assert_eq!(bought_after_eviction(&snapshot, &MoveHistory::default(), NOW + 120), Vec::<String>::new());
}

#[test]
fn a_retiring_node_makes_room_for_pods_that_are_planned_for_it() {
    let mut snapshot = full(|pod| pod);
    let node = Node { taints: vec![taint(RESERVED_TAINT, "big")], ..(*snapshot.nodes["big"]).clone() };
    snapshot = with(snapshot, [node]);
    assert_eq!(bought(&made(&snapshot).unwrap().plan), ["g5.xlarge: ReplicaSet:web#0"]);
    let node = Node { taints: vec![taint("team", "web")], ..(*snapshot.nodes["big"]).clone() };
    assert_eq!(made(&with(snapshot, [node])), None, "the pod does not tolerate the taint");
}

#[test]
fn pods_that_need_the_node_too_do_not_give_way() {
    assert_eq!(made(&full(|pod| Pod { spec: picky("x").spec, ..pod })), None);
    // The others do.
    let some = |pod: Pod| if pod.key.name() == "a" { Pod { spec: picky("x").spec, ..pod } } else { pod };
    assert_eq!(bought(&made(&full(some)).unwrap().plan), ["g5.xlarge: ReplicaSet:web#0"]);
}

#[test]
fn nobody_gives_way_for_a_node_that_costs_little_more() {
    let mut snapshot = full(|pod| pod);
    snapshot.pods.change(&key("v"), |pod| pod.spec.node_selector.clear());
    assert_eq!(bought(&planned_at(&snapshot, NOW)), ["g5.xlarge: v"]);
    assert_eq!(made(&snapshot), None);
}

#[test]
fn pods_give_way_only_where_their_pool_and_their_protection_allow_it() {
    let kept = |change: &dyn Fn(&mut Pool)| {
        let mut pool = moving_pool();
        change(&mut pool);
        let mut snapshot = full(|pod| pod);
        snapshot.pools.insert(pool.name.clone(), pool.into());
        made(&snapshot)
    };
    assert!(kept(&|_| {}).is_some());
    assert_eq!(kept(&|pool| pool.disruption.consolidates = false), None);
    assert_eq!(kept(&|pool| pool.disruption.consolidate_after = None), None);
    assert_eq!(kept(&|pool| pool.disruption.consolidate_after = Some(SignedDuration::from_hours(2))), None);
    assert_eq!(kept(&|pool| pool.disruption.do_not_disrupt = true), None);
    assert_eq!(kept(&|pool| pool.disruption.budgets = vec![budget(CountOrPercent::Count(0))]), None);
    let protected = |mut pod: Pod| {
        let annotation = "poolwright.dev/do-not-disrupt=true".to_owned();
        pod.ending.protection = Some(Protection { annotation, until: None });
        pod
    };
    assert_eq!(made(&full(protected)), None);
    assert_eq!(made(&full(|pod| Pod { owner: None, ..pod })), None, "nobody would recreate them");
}

#[test]
fn no_controller_has_more_moves_than_pods() {
    let snapshot = full(|pod| pod);
    let mut history = MoveHistory::default();
    let all: Vec<(PodKey, Uid)> =
        ["p", "q", "r", "s"].map(|name| (key(name), Uid(name.into()))).into_iter().collect();
    let there = ["p", "q", "r", "s"].map(|name| Pod { uid: Uid(name.into()), ..replica(name) });
    history.record_evictions(&with(snapshot.clone(), there), &all, at(NOW - 600));
    assert_eq!(made_at(&snapshot, &history, NOW), None);
    assert!(made_at(&snapshot, &history, NOW + 3600).is_some());
}

pub(super) fn with_node(snapshot: Snapshot, (claim, node): (Claim, Node)) -> Snapshot {
    with(with(snapshot, [claim]), [node])
}

/// Returns the nodes that are bought for the waiting pod if pods have been asked to give way at some time.
fn bought_after_eviction(snapshot: &Snapshot, history: &MoveHistory, seconds: i64) -> Vec<String> {
    let plan = made_at(snapshot, history, seconds).map(|made| made.plan);
    bought(&plan.unwrap_or_else(|| planned_at(snapshot, seconds)))
}

#[test]
fn the_node_is_bought_after_all_if_the_eviction_is_refused() {
    // The successor has room, so the pod is evicted.
    let snapshot = nominated(with_node(full(|pod| pod), small("free")));
    let first = made(&snapshot).unwrap();
    assert_eq!((bought(&first.plan), evicted(&first)), (vec![], vec!["a".to_owned()]));
    let mut history = MoveHistory::default();
    history.record_evictions(&snapshot, &first.evicted, at(NOW));
    // It is asked again, and each request counts from the first one.
    history.record_evictions(&snapshot, &first.evicted, at(NOW + 100));
    assert_eq!(bought_after_eviction(&snapshot, &history, NOW + 119), Vec::<String>::new());
    // Other pods of the controller would be refused too.
    assert_eq!(bought_after_eviction(&snapshot, &history, NOW + 120), ["g5.12xlarge: v"]);
    assert_eq!(bought_after_eviction(&snapshot, &history, NOW + 899), ["g5.12xlarge: v"]);
    assert_eq!(bought_after_eviction(&snapshot, &history, NOW + 900), Vec::<String>::new());
    // With a clock that was set back, the answer may still come.
    assert_eq!(bought_after_eviction(&snapshot, &history, NOW - 60), Vec::<String>::new());

    let protection = Protection { annotation: "a=b".to_owned(), until: None };
    let mut protected = snapshot.clone();
    protected.pods.change(&key("a"), |pod| pod.ending.protection = Some(protection.clone()));
    let other = made_at(&protected, &history, NOW + 10);
    assert!(other.is_none_or(|made| evicted(&made) == ["b"]), "a pod that was protected since stays");
}

#[test]
fn no_more_pods_give_way_than_their_budget_allows() {
    let with_budget = |allowed| {
        let budget = PodDisruptionBudget {
            key: object_key("web"),
            uid: Uid("pdb".into()),
            selector: BudgetSelector::Pods(vec![]),
            limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(2))),
            expected: 4,
            allowed: Some(allowed),
            failure: None,
            unhealthy: UnhealthyPods::default(),
        };
        let mut snapshot = full(|pod| pod);
        snapshot.budgets.insert(object_key("web"), budget.into());
        snapshot.pods.change(&key("v"), |pod| pod.spec.requests = requests(2, 4, 2));
        snapshot
    };
    let evicts = |allowed| made(&with_budget(allowed)).map(|made| made.plan.moved.len());
    assert_eq!((evicts(1), evicts(2)), (None, Some(2)));
}

#[test]
fn pods_give_way_on_no_more_nodes_than_a_disruption_budget_allows() {
    // On each node, only one pod may give way.
    let protected = |mut pod: Pod| {
        if !["a", "e"].contains(&pod.key.name().as_ref()) {
            let annotation = "poolwright.dev/do-not-disrupt=true".to_owned();
            pod.ending.protection = Some(Protection { annotation, until: None });
        }
        pod
    };
    let nodes_with = |nodes| {
        let labels = [(INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())].into();
        let (claim, node) = large("second");
        let snapshot = with_node(full(protected), (claim, Node { labels, ..node }));
        let there = ["e", "f", "g", "h"].map(|name| bound(protected(replica(name)), "second"));
        let mut snapshot = with(with(with(snapshot, there), [picky("w")]), [web(8)]);
        let mut pool = moving_pool();
        pool.disruption.budgets = vec![budget(CountOrPercent::Count(nodes))];
        snapshot.pools.insert(pool.name.clone(), pool.into());
        made(&snapshot)
            .map(|made| made.plan.moved.iter().map(|moved| moved.from.0.clone()).collect::<Vec<_>>())
    };
    assert_eq!(nodes_with(2).unwrap(), ["big", "second"]);
    assert_eq!(nodes_with(1), None);
}

#[test]
fn pods_with_a_higher_priority_do_not_give_way() {
    assert_eq!(made(&full(|pod| Pod { priority: 1, ..pod })), None);
    assert!(made(&full(|pod| Pod { priority: -1, ..pod })).is_some());
}

#[test]
fn pods_that_need_longer_to_end_than_a_node_to_start_do_not_give_way() {
    let ending_within = |seconds| {
        made(&full(|mut pod| {
            pod.ending.grace = SignedDuration::from_secs(seconds);
            pod
        }))
    };
    assert!(ending_within(115).is_some());
    assert_eq!(ending_within(116), None);
    // Nobody waits for such a pod that is ending already, either.
    let ends_in = |seconds| {
        let mut snapshot = full(|mut pod| {
            pod.ending.grace = SignedDuration::from_hours(1);
            pod
        });
        snapshot.pods.change(&key("a"), |pod| pod.deleting_since = Some(at(NOW + seconds)));
        made(&snapshot)
    };
    assert!(ends_in(100).is_some());
    assert_eq!(ends_in(3600), None);
}

#[test]
fn a_job_that_needs_no_gpu_does_not_lose_its_work() {
    let gives_way = |kind: &str, hours: i64| {
        let mut snapshot = full(|mut pod| {
            pod.created = at(NOW - hours * 3600);
            pod
        });
        // Only memory is short.
        snapshot.pods.change(&key("a"), |pod| {
            pod.spec.requests = requests(2, 4, 0);
            pod.owner = Some(Uid("maker".into()));
        });
        snapshot.pods.change(&key("v"), |pod| pod.spec.requests = requests(2, 180, 0));
        let (key, uid) = (object_key("maker"), Uid("maker".into()));
        snapshot = with(snapshot, [Workload { kind: kind.into(), key, uid, ..web(1) }]);
        let evicted = made(&snapshot).map(|mut made| made.plan.moved.remove(0).pod.name().to_string());
        evicted.as_deref() == Some("a")
    };
    assert!(gives_way("ReplicaSet", 20));
    assert!(!gives_way("Job", 20));
}

#[test]
fn a_place_that_keeps_another_node_longer_costs_as_much() {
    // The successor would keep a node for $5.67/h, whose own pod ends in three minutes.
    let made_with = |minutes| {
        let mut snapshot = with_node(full(service), large("other"));
        let ends = |pod: &mut Pod, minutes| {
            pod.duration = PodDuration {
                deadline: Some(SignedDuration::from_mins(minutes)),
                expected: Some(SignedDuration::from_mins(minutes)),
                ..PodDuration::default()
            };
        };
        let mut there = bound(Pod { owner: None, ..replica("x") }, "other");
        ends(&mut there, minutes);
        there.duration.started = Some(at(NOW));
        snapshot = with(snapshot, [there]);
        snapshot.pods.change(&key("v"), |pod| ends(pod, 10));
        snapshot.lives = Arc::new(Lives::prior());
        made(&snapshot).is_some()
    };
    assert!(made_with(60 * 24 * 20));
    assert!(!made_with(3));
}

#[test]
fn a_waiting_pod_is_planned_for_room_only_when_the_room_is_free() {
    let made = made(&full(|pod| pod)).unwrap();
    assert!(made.plan.placements.iter().any(|placed| placed.pod == key("v")));
    assert!(!made.plan.nominations.contains_key(&key("v")), "{:?}", made.plan.nominations);
}

#[test]
fn a_pod_that_shares_the_new_node_and_runs_on_a_cheap_one_does_not_need_the_room() {
    // Both waiting pods would get one large node. The second one gets a small node of its own instead, and nobody gives way to it.
    let snapshot = with(full(|pod| pod), [pod("w", requests(2, 4, 1))]);
    assert_eq!(bought(&planned_at(&snapshot, NOW)), ["g5.12xlarge: v w"]);
    let made = made(&snapshot).unwrap();
    let moved: Vec<String> = made.plan.moved.iter().map(|moved| moved.pod.name().to_string()).collect();
    assert_eq!(moved, ["a"]);
    assert!(!made.explanations.contains_key(&key("w")));
}

#[test]
fn a_pod_that_needs_the_node_itself_is_not_chosen_although_it_is_the_smallest() {
    let snapshot = full(|pod| {
        let mut pod = pod;
        if pod.key.name() == "a" {
            pod.spec = picky("x").spec;
            pod.spec.requests = requests(1, 1, 1);
        }
        pod
    });
    let made = made(&snapshot).unwrap();
    let moved: Vec<String> = made.plan.moved.iter().map(|moved| moved.pod.name().to_string()).collect();
    assert_eq!(moved, ["b"]);
}

#[test]
fn a_pod_that_ends_anyway_gives_way_although_its_like_needs_a_dear_node() {
    // Somebody deleted the pod. The waiting pod takes its place in a moment.
    let snapshot = full(|pod| {
        if pod.key.name() == "a" {
            let ending = Pod { spec: picky("a").spec, deleting_since: Some(at(NOW + 30)), ..pod };
            return Pod { owner: None, ..ending };
        }
        Pod { spec: picky("x").spec, ..pod }
    });
    assert_eq!(bought(&planned_at(&snapshot, NOW)), ["g5.12xlarge: v"]);
    let made = made(&snapshot).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec![]));
}
