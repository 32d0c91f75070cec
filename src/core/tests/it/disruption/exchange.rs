//! Tests of nodes that are emptied because pods of another node give way to their pods.

use poolwright_core::disruption::{RoomMade, make_room};
use poolwright_terms::labels::INSTANCE_TYPE;

use super::*;

/// Returns a pod that only nodes of the large type can run, of a ReplicaSet `vip`.
fn picky(name: &str) -> Pod {
    let mut pod = Pod { owner: Some(Uid("vip".into())), ..replica(name) };
    pod.spec.node_selector = [(INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())].into();
    pod
}

fn vip() -> Workload {
    Workload { key: object_key("vip"), uid: Uid("vip".into()), ..web(1) }
}

fn protected(mut pod: Pod) -> Pod {
    let annotation = "poolwright.dev/do-not-disrupt=true".to_owned();
    pod.ending.protection = Some(Protection { annotation, until: None });
    pod
}

/// Returns a cluster with two large nodes. The first is full. It cannot be emptied, because one of its pods is protected, and the others
/// run anywhere, or are changed in this way. The second has one pod that needs a large node.
fn two_large(change: impl Fn(Pod) -> Pod) -> Snapshot {
    let labelled = |name| {
        let (claim, node) = large(name);
        let labels = [(INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())].into();
        (claim, Node { labels, ..node })
    };
    let snapshot = cluster_of(moving_pool(), vec![labelled("first"), labelled("second")], &[]);
    let there = ["a", "b", "c"].map(|name| bound(change(replica(name)), "first"));
    let stays = bound(protected(replica("d")), "first");
    let snapshot = with(snapshot, [stays]);
    with(with(with(snapshot, there), [web(4), vip()]), [bound(picky("v"), "second")])
}

/// Returns the search's proposal to empty the second node.
fn exchange(snapshot: &Snapshot) -> Option<Proposal> {
    proposed(snapshot).filter(|proposal| leaving(proposal) == [("second", "Underutilized")])
}

/// Returns the cluster, the decision to empty its second node, and the record of it.
fn decided() -> (Snapshot, Proposal, MoveHistory) {
    let snapshot = two_large(|pod| pod);
    let proposal = exchange(&snapshot).unwrap();
    let mut history = MoveHistory::default();
    history.record(&snapshot, &proposal, at(NOW));
    (snapshot, proposal, history)
}

fn room(snapshot: &Snapshot, history: &MoveHistory, seconds: i64) -> Option<RoomMade> {
    let current = planned_at(snapshot, seconds);
    make_room(snapshot, &current, history, at(seconds), &PlanOptions::default(), &mut NeverStop)
}

/// Returns the cluster in which a waiting pod is nominated to the first node.
fn nominated(mut snapshot: Snapshot, name: &str) -> Snapshot {
    snapshot.pods.change(&key(name), |pod| pod.nominated_node = Some("first".to_owned()));
    snapshot
}

fn evicted(made: &RoomMade) -> Vec<String> {
    made.evicted.iter().map(|(pod, _)| pod.name().to_string()).collect()
}

#[test]
fn a_dear_node_is_emptied_when_pods_of_another_one_give_way_to_its_pods() {
    let snapshot = two_large(|pod| pod);
    let proposal = exchange(&snapshot).unwrap();
    assert_eq!(bought(&proposal.plan), ["g5.xlarge: ReplicaSet:web#0"]);
    assert_eq!(proposal.saving, usd("4.666"));
    let new = proposal.plan.claims[0].name.clone();
    let why = format!(
        "the work of its node costs $5.67/h now and $1.01/h elsewhere; its pods go to first, in the room of default/a, whose \
         successors go to new {new} (g5.xlarge/a/on-demand at $1.01/h)"
    );
    assert_eq!(proposal.nodes_to_empty[0].condition.message, why);

    // While the small node starts, nobody is evicted and nothing is bought.
    let mut history = MoveHistory::default();
    history.record(&snapshot, &proposal, at(NOW));
    let begun = begun(&snapshot, &proposal);
    let made = room(&begun, &history, NOW + 10).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec![]));
    let after = follow(&begun, &made.plan, at(NOW + 10));
    assert_eq!((retires(&after.actions), called_off(&after.actions)), (vec![], None));

    // Then the second node drains. The pods of the first one stay until its pod waits. Otherwise, they could take the room again.
    let ready = opened(&begun, &new);
    let made = room(&ready, &history, NOW + 61).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec![]));
    let after = follow(&ready, &made.plan, at(NOW + 61));
    assert_eq!((retires(&after.actions), called_off(&after.actions)), (vec!["second"], None));
    let said = |action: &Action| matches!(action, Action::RecordEvent(event) if event.message.starts_with("its pods get the room of others"));
    assert!(after.actions.iter().any(said), "{:?}", after.actions);

    let claim =
        Claim { deleting_since: Some(at(NOW + 62)), ..(*ready.claims[&ClaimName("second".into())]).clone() };
    let ending = Pod { deleting_since: Some(at(NOW + 92)), ..bound(picky("v"), "second") };
    let waits = Pod { created: at(NOW + 62), ..picky("w") };
    let drained = with(with(with(ready, [claim]), [ending, waits]), [Workload { total: 1, ..vip() }]);
    let made = room(&drained, &history, NOW + 63).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made), made.only_nominates()), (vec![], vec![], true));
    let drained = nominated(drained, "w");
    let made = room(&drained, &history, NOW + 65).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec!["a".to_owned()]));

    // The last large node is sold out meanwhile. The room is made all the same.
    let mut sold_out = drained;
    sold_out.held_back.insert((node_class(), id("g5.12xlarge", "a")), at(NOW + 3600));
    history.record_takers(vec![Uid("vip".into())], at(NOW + 62));
    assert_eq!(planned_at(&sold_out, NOW + 63).unplaced.len(), 1);
    let made = room(&sold_out, &history, NOW + 63).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec!["a".to_owned()]));
    assert_eq!(room(&sold_out, &MoveHistory::default(), NOW + 63), None, "nobody prepared it");
}

#[test]
fn the_realised_saving_counts_the_nodes_of_pods_that_gave_way() {
    let (snapshot, proposal, history) = decided();
    let ready = opened(&begun(&snapshot, &proposal), &proposal.plan.claims[0].name);
    let made = room(&ready, &history, NOW + 61).unwrap();
    assert_eq!(follow(&ready, &made.plan, at(NOW + 61)).saved, usd("4.666"));
}

#[test]
fn the_new_node_of_a_pod_that_gives_way_is_kept_until_its_successor_comes() {
    let (snapshot, proposal, history) = decided();
    let new = proposal.plan.claims[0].name.clone();
    let mut ready = opened(&begun(&snapshot, &proposal), &new);
    let empty = true_since((*ready.claims[&new]).clone(), ConditionType::Empty, NOW + 60);
    ready = with(ready, [empty]);
    let made = room(&ready, &history, NOW + 61).unwrap();
    let closes = |snapshot: &Snapshot| {
        let closes = |action: &Action| matches!(action, Action::SetTaints { node, .. } if *node == new.0);
        decide(snapshot, at(NOW + 7200)).actions.iter().any(closes)
    };
    assert!(closes(&ready), "nobody is planned for it");
    let mut index = index::ClusterIndex::new();
    for claim in ready.claims.values() {
        index.apply_claim((**claim).clone());
    }
    assert_eq!(index.set_making_way(&made.plan), index::Change::Life);
    ready.making_way = index.view().making_way.clone();
    assert!(!closes(&ready));
    assert_eq!(
        index.set_making_way(&planned_at(&snapshot, NOW)),
        index::Change::Life,
        "until room is made no longer"
    );
}

#[test]
fn an_interrupted_node_does_not_wait_for_pods_that_give_way() {
    let (snapshot, proposal, history) = decided();
    let begun = begun(&snapshot, &proposal);
    let second = ClaimName("second".into());
    let mut claim = (*begun.claims[&second]).clone();
    claim.conditions.get_mut(&ConditionType::Disrupting).unwrap().reason = Some(Reason::Interrupted);
    assert_eq!(room(&with(begun, [claim]), &history, NOW + 10), None, "a node is bought for its pods");
}

#[test]
fn the_node_stays_when_the_pods_can_give_way_no_longer() {
    let (snapshot, proposal, history) = decided();
    let mut begun = begun(&snapshot, &proposal);
    for name in ["a", "b", "c"] {
        begun.pods.change(&key(name), |pod| *pod = protected(pod.clone()));
    }
    assert_eq!(room(&begun, &history, NOW + 10), None);
    let mut plan = planned_at(&begun, NOW + 10);
    let after = follow(&begun, &plan, at(NOW + 10));
    let why = "the node stays: the room for its pods on other nodes is gone";
    assert_eq!(called_off(&after.actions).as_deref(), Some(why));
    assert_eq!(bought(&plan).len(), 1);
    after.drop_obsolete_claims(&mut plan);
    assert_eq!(bought(&plan), Vec::<String>::new(), "no node is bought for a pod that stays");
}

#[test]
fn the_node_stays_if_the_new_place_of_a_pod_that_gives_way_is_lost_for_fifteen_minutes() {
    let (snapshot, proposal, history) = decided();
    let lost = begun(&snapshot, &Proposal { plan: Plan::default(), ..proposal });
    let after = |seconds| {
        let made = room(&lost, &history, seconds).unwrap();
        assert_eq!(bought(&made.plan), ["g5.xlarge: ReplicaSet:web#0"]);
        let after = follow(&lost, &made.plan, at(seconds));
        assert_eq!(retires(&after.actions), Vec::<&str>::new());
        called_off(&after.actions)
    };
    assert_eq!(after(NOW + 15 * 60 - 1), None, "it is bought again");
    let why = "the node stays: the room for pods that give way to its pods is gone";
    assert_eq!(after(NOW + 15 * 60).as_deref(), Some(why));
}

#[test]
fn only_pods_whose_room_a_waiting_pod_gets_are_evicted() {
    let two = Workload { total: 2, ..vip() };
    let snapshot = with(with(two_large(|pod| pod), [two.clone()]), [bound(picky("u"), "second")]);
    let proposal = exchange(&snapshot).unwrap();
    let mut history = MoveHistory::default();
    history.record(&snapshot, &proposal, at(NOW));
    let mut ready = begun(&snapshot, &proposal);
    for new in &proposal.plan.claims {
        ready = opened(&ready, &new.name);
    }
    let claim =
        Claim { deleting_since: Some(at(NOW + 62)), ..(*ready.claims[&ClaimName("second".into())]).clone() };
    let ending = |name| Pod { deleting_since: Some(at(NOW + 92)), ..bound(picky(name), "second") };
    let waits = |name| Pod { created: at(NOW + 62), ..picky(name) };
    // One of its two pods has a successor that waits, the other does not yet.
    let first = nominated(with(with(ready, [claim]), [ending("u"), ending("v"), waits("w")]), "w");
    let made = room(&first, &history, NOW + 63).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec!["b".to_owned()]));
    let both = with(first, [waits("x")]);
    let made = room(&both, &history, NOW + 63).unwrap();
    assert_eq!(evicted(&made), Vec::<String>::new(), "all are nominated first");
    let made = room(&nominated(both, "x"), &history, NOW + 65).unwrap();
    assert_eq!((bought(&made.plan), evicted(&made)), (vec![], vec!["a".to_owned(), "b".to_owned()]));
}

#[test]
fn a_search_without_time_for_another_node_leaves_it_to_the_next_search() {
    // The pods of three more nodes fit nowhere else, whoever gives way.
    let others = ["n1", "n2", "n3"];
    let nodes = others.map(large);
    let pods = others.map(|name| {
        let pod = picky(&format!("of-{name}"));
        let spec = PodSpec { requests: requests(2, 190, 1), ..PodSpec::clone(&pod.spec) };
        bound(Pod { spec: spec.into(), ..pod }, name)
    });
    let (claims, nodes): (Vec<Claim>, Vec<Node>) = nodes.into_iter().unzip();
    let snapshot = with(with(with(two_large(|pod| pod), claims), nodes), pods);
    let snapshot = with(snapshot, [Workload { total: 4, ..vip() }]);
    let mut history = MoveHistory::default();
    let mut search = || {
        let current = planned_at(&snapshot, NOW);
        let found = propose(&snapshot, &current, &history, at(NOW), &PlanOptions::default(), &mut NeverStop);
        history.record_search(&found);
        found
    };
    let first = search();
    assert_eq!(
        (first.proposal, first.tried_with_room),
        (None, others.map(|name| ClaimName(name.into())).to_vec())
    );
    assert_eq!(leaving(&search().proposal.unwrap()), [("second", "Underutilized")]);
}

#[test]
fn a_new_leader_calls_the_exchange_off() {
    let snapshot = two_large(|pod| pod);
    let begun = begun(&snapshot, &exchange(&snapshot).unwrap());
    assert_eq!(room(&begun, &MoveHistory::default(), NOW + 10), None);
    assert!(called_off(&followed(&begun).1).is_some());
}

#[test]
fn nodes_are_not_emptied_if_the_pods_that_would_give_way_may_not_or_lose_too_much() {
    assert_eq!(
        exchange(&two_large(|pod| Pod { spec: picky("x").spec, ..pod })),
        None,
        "they need the node too"
    );
    assert_eq!(exchange(&two_large(protected)), None);
    let job = |minutes: i64| {
        let snapshot = two_large(|pod| match &*pod.key.name() {
            "a" => Pod { owner: Some(Uid("job".into())), created: at(NOW - minutes * 60), ..pod },
            _ => protected(pod),
        });
        let job = Workload { kind: "Job".into(), key: object_key("job"), uid: Uid("job".into()), ..web(1) };
        exchange(&with(snapshot, [job])).is_some()
    };
    assert_eq!((job(6), job(120)), (true, false));
    let with_budget = |nodes| {
        let mut snapshot = two_large(|pod| pod);
        let mut pool = moving_pool();
        pool.disruption.budgets = vec![budget(CountOrPercent::Count(nodes))];
        snapshot.pools.insert(pool.name.clone(), pool.into());
        exchange(&snapshot).is_some()
    };
    assert_eq!((with_budget(2), with_budget(1)), (true, false), "both nodes count");
}
