//! Tests of PodDisruptionBudgets that keep pods where they are, and of pods that the API server evicts in spite of them.

use poolwright_core::disruption::{Kept, Outlook, make_room, outlook};

use super::*;

/// Returns a budget that selects every pod of the namespace and allows this number of evictions now.
fn guard(name: &str, allowed: u64) -> PodDisruptionBudget {
    PodDisruptionBudget {
        key: object_key(name),
        uid: Uid(name.into()),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(1))),
        expected: 1,
        allowed: Some(allowed),
        failure: None,
        unhealthy: UnhealthyPods::default(),
    }
}

fn guarded_by_two(snapshot: Snapshot) -> Snapshot {
    with(snapshot, [guard("first", 1), guard("second", 1)])
}

const NEVER: &str = "PodDisruptionBudgets default/first, default/second select pod default/a, and the API server never evicts a pod of two budgets; let only one budget select it";

/// Returns a cluster that consolidation would change: a small pod on a large node.
fn wasteful() -> Snapshot {
    cluster_of(moving_pool(), vec![large("big")], &[("a", "big")])
}

#[test]
fn a_node_with_a_pod_that_two_budgets_select_is_not_consolidated_and_both_are_named() {
    assert!(proposed(&with(wasteful(), [guard("first", 1)])).is_some(), "one budget allows it");
    let snapshot = guarded_by_two(wasteful());
    assert_eq!(proposed(&snapshot), None);
    let current = planned_at(&snapshot, NOW);
    let (history, options) = (MoveHistory::default(), PlanOptions::default());
    let name = ClaimName("big".into());
    let found = outlook(&snapshot, &current, &history, at(NOW), &options, &name, &mut NeverStop).unwrap();
    let Outlook::Stays { why, elsewhere } = &found else { panic!("{found:?}") };
    assert_eq!(*why, Kept::Obstacle(NEVER.to_owned()));
    assert!(elsewhere.is_some(), "the saving is told all the same");
}

#[test]
fn a_drifted_or_expired_node_with_such_a_pod_stays_and_says_so() {
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let drifted = Pool { requirements, ..moving_pool() };
    let expire_after = Some(SignedDuration::from_mins(30));
    let expired = Pool { disruption: Disruption { expire_after, ..moving_pool().disruption }, ..pool("gpu") };
    for (pool, what) in [(drifted, "drifted"), (expired, "expired")] {
        let snapshot = cluster_of(pool, vec![small("s")], &[("a", "s")]);
        assert!(proposed(&snapshot).is_some(), "{what}");
        let found = looked(&guarded_by_two(snapshot));
        assert_eq!(found.proposal, None, "{what}");
        let told =
            |action: &Action| matches!(action, Action::RecordEvent(event) if event.message.ends_with(NEVER));
        assert!(found.actions.iter().any(told), "{what}: {:?}", found.actions);
    }
}

#[test]
fn a_disruption_is_called_off_at_once_when_a_second_budget_selects_a_pod() {
    let snapshot = with(wasteful(), [guard("first", 1)]);
    let proposal = proposed(&snapshot).unwrap();
    let ready = opened(&begun(&snapshot, &proposal), &proposal.plan.claims[0].name);
    assert_eq!(retires(&followed(&ready).1), ["big"]);
    let (_, actions) = followed(&with(ready, [guard("second", 1)]));
    assert_eq!(called_off(&actions).unwrap(), format!("the node stays: {NEVER}"));
}

#[test]
fn a_pod_that_two_budgets_select_does_not_give_way_to_a_waiting_pod() {
    let (claim, node) = large("big");
    let labels = [(poolwright_terms::labels::INSTANCE_TYPE.to_owned(), "g5.12xlarge".to_owned())];
    let mut picky = pod("v", requests(2, 4, 1));
    picky.spec.node_selector = labels.clone().into();
    let node = Node { labels: labels.into(), ..node };
    let there = ["a", "b", "c", "d"].map(|name| (name, "big"));
    let snapshot = with(cluster_of(moving_pool(), vec![(claim, node)], &there), [picky]);
    let makes_room = |snapshot: &Snapshot| {
        let current = planned_at(snapshot, NOW);
        let (history, options) = (MoveHistory::default(), PlanOptions::default());
        make_room(snapshot, &current, &history, at(NOW), &options, &mut NeverStop).is_some()
    };
    assert!(makes_room(&with(snapshot.clone(), [guard("first", 1)])));
    assert!(!makes_room(&guarded_by_two(snapshot)));
}

#[test]
fn a_budget_that_allows_nothing_keeps_no_pod_that_the_api_server_evicts_all_the_same() {
    let moves = |health: PodHealth, unhealthy: UnhealthyPods| {
        let there = Pod { health, ..bound(replica("a"), "big") };
        let budget = PodDisruptionBudget { unhealthy, ..guard("web", 0) };
        proposed(&with(with(wasteful(), [there]), [budget])).is_some()
    };
    let plain = UnhealthyPods::default;
    let always = UnhealthyPods { always_allowed: true, ..plain() };
    let enough = UnhealthyPods { healthy: 2, desired: 2, ..plain() };
    assert!(!moves(PodHealth::Ready, always.clone()));
    assert!(!moves(PodHealth::NotReady, plain()));
    assert!(moves(PodHealth::NotReady, always));
    assert!(moves(PodHealth::NotReady, enough));
    assert!(moves(PodHealth::Pending, plain()));
}
