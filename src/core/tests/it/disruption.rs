//! Tests of disruption: the nodes that are emptied, the nodes that are bought first, and the reasons to call it off.

mod budgets;
mod committed;
mod exchange;
mod follow;
mod kept;
mod min_values;
mod over_time;
mod pod_budgets;
mod required;
mod room;
mod room_race;
mod search_schedule;

use poolwright_catalog::RankedOffering;
use poolwright_terms::keys::DISRUPTED_TAINT;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};
use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_catalog::ResourceList;
use poolwright_core::disruption::{MoveHistory, Proposal, SearchResult, drift, follow, propose};
use poolwright_core::plan::{MovedTo, Plan, PlanOptions};
use poolwright_core::*;
use poolwright_solver::{NeverStop, StopSignal};

use crate::kit::*;

/// A quiet time, an hour after the nodes opened.
const NOW: i64 = 3630;

/// Returns the claim and the node with this name and type, open since 30 s.
fn running(name: &str, kind: &str, price: &str, size: ResourceList) -> (Claim, Node) {
    let offerings =
        vec![RankedOffering { offering: id(kind, "a"), price: Some(usd(price)), allocatable: size.clone() }];
    let named = Claim { name: ClaimName(name.into()), uid: Uid(format!("uid-{name}")), offerings, ..claim() };
    let claim =
        true_since(true_since(launched(named), ConditionType::Launched, 10), ConditionType::Registered, 20);
    let claim = true_since(claim, ConditionType::Initialized, 30);
    let claim = Claim { node_name: Some(name.into()), planned_pods: vec![], ..claim };
    let node = Node { provider_id: Some(format!("kwok://{name}")), ..node(name, size) };
    (claim, node)
}

fn large(name: &str) -> (Claim, Node) {
    running(name, "g5.12xlarge", "5.672", capacity(48, 192, 4))
}

fn small(name: &str) -> (Claim, Node) {
    running(name, "g5.xlarge", "1.006", capacity(4, 16, 1))
}

/// Returns a pod of the ReplicaSet with one GPU.
fn replica(name: &str) -> Pod {
    Pod { owner: Some(Uid("web".into())), created: at(40), ..pod(name, requests(2, 4, 1)) }
}

fn moving_pool() -> Pool {
    let disruption = Disruption { consolidates: true, ..Disruption::default() };
    Pool {
        disruption: Disruption { budgets: vec![budget(CountOrPercent::Percent(100))], ..disruption },
        ..pool("gpu")
    }
}

fn budget(nodes: CountOrPercent) -> DisruptionBudget {
    DisruptionBudget { nodes, causes: [].into(), window: None }
}

/// Returns a cluster with these nodes and these pods of one ReplicaSet on them.
fn cluster_of(pool: Pool, nodes: Vec<(Claim, Node)>, pods: &[(&str, &str)]) -> Snapshot {
    let (claims, nodes): (Vec<Claim>, Vec<Node>) = nodes.into_iter().unzip();
    let there = pods.iter().map(|(name, node)| bound(replica(name), node));
    let snapshot = with(with(cluster(aws(), [pool]), claims), nodes);
    with(with(snapshot, there), [web(pods.len() as u64)])
}

fn looked(snapshot: &Snapshot) -> SearchResult {
    looked_at(snapshot, NOW)
}

fn looked_at(snapshot: &Snapshot, seconds: i64) -> SearchResult {
    let current = planned_at(snapshot, seconds);
    assert_eq!(current.claims, []);
    propose(snapshot, &current, &MoveHistory::default(), at(seconds), &PlanOptions::default(), &mut NeverStop)
}

fn proposed(snapshot: &Snapshot) -> Option<Proposal> {
    looked(snapshot).proposal
}

fn leaving(proposal: &Proposal) -> Vec<(&str, &str)> {
    proposal
        .nodes_to_empty
        .iter()
        .map(|leave| (leave.claim.0.as_str(), leave.condition.reason.as_str()))
        .collect()
}

/// Returns the cluster after the proposal has been carried out: it is recorded, and its new nodes are launching.
fn begun(snapshot: &Snapshot, proposal: &Proposal) -> Snapshot {
    let mut after = snapshot.clone();
    for leave in &proposal.nodes_to_empty {
        let mut claim = (*after.claims[&leave.claim]).clone();
        let ConditionUpdate { status, reason, message, .. } = leave.condition.clone();
        let condition = Condition { status, since: at(NOW), reason: Some(reason), message };
        claim.conditions.insert(ConditionType::Disrupting, condition);
        after = with(after, [claim]);
    }
    carried_out(&after, &proposal.plan, NOW)
}

/// Returns the cluster after the node of the bought claim has opened.
fn opened(snapshot: &Snapshot, bought: &ClaimName) -> Snapshot {
    let claim = (*snapshot.claims[bought]).clone();
    let size = claim.offerings[0].allocatable.clone();
    let claim = true_since(launched(claim), ConditionType::Initialized, NOW + 60);
    let node = Node { provider_id: Some(format!("kwok://{bought}")), ..node(&bought.0, size) };
    with(with(snapshot.clone(), [Claim { node_name: Some(bought.0.clone()), ..claim }]), [node])
}

fn followed(snapshot: &Snapshot) -> (Plan, Vec<Action>) {
    let plan = planned_at(snapshot, NOW + 61);
    let actions = follow(snapshot, &plan, at(NOW + 61)).actions;
    (plan, actions)
}

fn retires(actions: &[Action]) -> Vec<&str> {
    let name = |action: &'_ Action| matches!(action, Action::Drain { .. });
    actions
        .iter()
        .filter(|action| name(action))
        .map(|action| match action {
            Action::Drain { claim, .. } => claim.0.as_str(),
            _ => unreachable!(),
        })
        .collect()
}

/// Returns the reason why the disruption was called off, if it was.
fn called_off(actions: &[Action]) -> Option<String> {
    actions.iter().find_map(|action| match action {
        Action::SetConditions { conditions, .. } => {
            let off = conditions.iter().find(|one| one.kind == ConditionType::Disrupting)?;
            assert_eq!(off.status, ConditionStatus::False);
            Some(off.message.clone())
        }
        _ => None,
    })
}

#[test]
fn a_large_node_for_one_small_pod_is_replaced_by_a_small_one_which_is_open_before_anybody_is_evicted() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let proposal = proposed(&snapshot).unwrap();
    assert_eq!(leaving(&proposal), [("big", "Underutilized")]);
    assert_eq!(bought(&proposal.plan), ["g5.xlarge: ReplicaSet:web#0"]);
    assert_eq!(proposal.saving, usd("4.666"));
    let why = &proposal.nodes_to_empty[0].condition.message;
    assert!(why.starts_with("the work of its node costs $5.67/h now and $1.01/h elsewhere"), "{why}");

    let new = proposal.plan.claims[0].name.clone();
    let begun = begun(&snapshot, &proposal);
    let (plan, actions) = followed(&begun);
    assert_eq!(plan.claims, [], "nothing is bought twice");
    assert_eq!((retires(&actions), called_off(&actions)), (vec![], None), "the new node is on its way");
    let closed = decide(&begun, at(NOW + 1)).actions;
    assert!(
        closed.contains(&Action::SetTaints { node: "big".into(), taints: vec![taint(DISRUPTED_TAINT, "")] })
    );

    let (_, actions) = followed(&opened(&begun, &new));
    assert_eq!(retires(&actions), ["big"]);
}

#[test]
fn the_room_of_successors_is_theirs_until_they_come() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let proposal = proposed(&snapshot).unwrap();
    let new = proposal.plan.claims[0].name.clone();
    let ready = opened(&begun(&snapshot, &proposal), &new);
    // The new node is full for other pods, although no pod is on it yet.
    let other = planned_at(&with(ready.clone(), [pod("other", requests(2, 4, 1))]), NOW + 62);
    assert_eq!(bought(&other), ["g5.xlarge: other"]);
    // The node is not deleted as empty, however long the drain takes.
    let mut waiting =
        with(ready.clone(), [true_since((*ready.claims[&new]).clone(), ConditionType::Empty, NOW + 60)]);
    let decision = decide(&waiting, at(NOW + 7200));
    assert!(!decision.actions.iter().any(|action| matches!(action, Action::DeleteClaim { .. })));
    // The successor of the drained pod goes to the new node.
    let drained = Pod { deleting_since: Some(at(NOW + 90)), ..bound(replica("a"), "big") };
    let deleted =
        Claim { deleting_since: Some(at(NOW + 70)), ..(*waiting.claims[&ClaimName("big".into())]).clone() };
    waiting = with(with(waiting, [deleted]), [drained, replica("b")]);
    let plan = planned_at(&waiting, NOW + 91);
    assert_eq!(plan.nominations[&key("b")].1, new.0);
    assert_eq!(plan.claims, []);
}

#[test]
fn many_nodes_become_fewer_and_their_pods_go_to_nodes_that_stay() {
    // Three pods are on three large nodes, and one large node could hold them all.
    let nodes = vec![large("x"), large("y"), large("z")];
    let snapshot = cluster_of(moving_pool(), nodes, &[("a", "x"), ("b", "y"), ("c", "z")]);
    let proposal = proposed(&snapshot).unwrap();
    // Three small nodes for $3.02/h cost less than one large node.
    assert_eq!(leaving(&proposal).len(), 3);
    assert_eq!(bought(&proposal.plan).len(), 3);
    assert_eq!(proposal.saving, usd("13.998"));
}

#[test]
fn nothing_is_moved_that_is_protected_new_alone_or_one_of_a_gang() {
    let base = || cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    assert!(proposed(&base()).is_some());
    let changed = |change: &dyn Fn(&mut Pod)| {
        let mut pod = bound(replica("a"), "big");
        change(&mut pod);
        proposed(&with(base(), [pod]))
    };
    let protection = Protection { annotation: "poolwright.dev/do-not-disrupt=true".into(), until: None };
    assert_eq!(changed(&|pod| pod.ending.protection = Some(protection.clone())), None);
    assert_eq!(changed(&|pod| pod.owner = None), None);
    assert_eq!(changed(&|pod| pod.owner = Some(Uid("unknown".into()))), None);
    assert_eq!(changed(&|pod| pod.group = Some("gang".into())), None);
    assert_eq!(changed(&|pod| pod.created = at(NOW - 299)), None, "it came less than five minutes ago");
    let kept = |claim: Claim, node: Node| proposed(&with(with(base(), [claim]), [node]));
    let (claim, node) = large("big");
    assert_eq!(kept(Claim { do_not_disrupt: true, ..claim.clone() }, node.clone()), None);
    assert_eq!(kept(claim, Node { do_not_disrupt: true, ..node }), None);
    let still = |disruption: Disruption| {
        proposed(&cluster_of(Pool { disruption, ..moving_pool() }, vec![large("big")], &[("a", "big")]))
    };
    assert_eq!(still(Disruption { do_not_disrupt: true, ..moving_pool().disruption }), None);
    assert_eq!(still(Disruption { consolidates: false, ..moving_pool().disruption }), None);
    assert_eq!(still(Disruption { consolidate_after: None, ..moving_pool().disruption }), None);
}

#[test]
fn work_that_would_have_to_be_done_again_is_moved_when_that_pays() {
    let job = |began: i64| {
        let pod = Pod { owner: Some(Uid("job".into())), created: at(began), ..replica("a") };
        let snapshot = cluster_of(moving_pool(), vec![large("big")], &[]);
        let job = Workload { kind: "Job".into(), key: object_key("job"), uid: Uid("job".into()), ..web(1) };
        let found = looked(&with(with(snapshot, [bound(pod, "big")]), [job]));
        (found.proposal.is_some(), found.tried_alone.len())
    };
    // The loss is a quarter of $5.67/h since the pod began, plus five minutes. The saving is $4.666 in an hour.
    assert_eq!(job(NOW - 3600), (true, 1));
    assert_eq!(job(NOW - 7 * 1800), (false, 1));
    assert_eq!(
        job(NOW - 8 * 1800),
        (false, 0),
        "without a trial, as the node costs less in an hour than its pod would lose"
    );
}

#[test]
fn a_disruption_budget_that_allows_no_eviction_now_keeps_its_pods_where_they_are() {
    let budget = |allowed| PodDisruptionBudget {
        key: object_key("web"),
        uid: Uid("pdb".into()),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(1))),
        expected: 1,
        allowed,
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    let of = |allowed| {
        let mut snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
        snapshot.budgets.insert(object_key("web"), budget(allowed).into());
        proposed(&snapshot)
    };
    assert!(of(Some(1)).is_some());
    assert_eq!(of(Some(0)), None);
    assert_eq!(of(None), None, "the disruption controller has not said");
}

#[test]
fn an_empty_node_that_an_annotation_keeps_is_not_given_back() {
    let closed = |claim_kept: bool, node_kept: bool, pool_kept: bool| {
        let disruption = Disruption { do_not_disrupt: pool_kept, ..Disruption::default() };
        let (claim, node) = small("s");
        let claim = Claim { do_not_disrupt: claim_kept, ..true_since(claim, ConditionType::Empty, 100) };
        let nodes = vec![(claim, Node { do_not_disrupt: node_kept, ..node })];
        let snapshot = cluster_of(Pool { disruption, ..pool("gpu") }, nodes, &[]);
        let actions = decide(&snapshot, at(NOW)).actions;
        actions.iter().any(|action| matches!(action, Action::SetTaints { .. }))
    };
    assert!(closed(false, false, false));
    assert!(!closed(true, false, false) && !closed(false, true, false) && !closed(false, false, true));
}

#[test]
fn pods_do_not_move_again_before_the_first_move_has_paid_off() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let mut move_history = MoveHistory::default();
    move_history.record(&snapshot, &proposed(&snapshot).unwrap(), at(NOW));
    // The pod is back on a large node and would be moved again.
    let again = |move_history: &MoveHistory, seconds: i64, snapshot: &Snapshot| {
        let current = planned_at(snapshot, seconds);
        let found =
            propose(snapshot, &current, move_history, at(seconds), &PlanOptions::default(), &mut NeverStop);
        found.proposal.is_some()
    };
    assert!(!again(&move_history, NOW + 3599, &snapshot));
    assert!(again(&move_history, NOW + 3600, &snapshot));
    // Each of two replicas may be moved once.
    let two = cluster_of(moving_pool(), vec![large("big"), small("s")], &[("a", "big"), ("b", "s")]);
    assert!(again(&move_history, NOW + 60, &two));
    move_history.record(&two, &proposed(&two).unwrap(), at(NOW + 60));
    assert!(!again(&move_history, NOW + 120, &two));
}

#[test]
fn the_next_leader_does_not_move_the_pods_that_its_predecessor_moved() {
    let snapshot = cluster_of(moving_pool(), vec![large("big")], &[("a", "big")]);
    let mut old = MoveHistory::default();
    old.record(&snapshot, &proposed(&snapshot).unwrap(), at(NOW));
    let moves = |history: &MoveHistory, seconds: i64| {
        let current = planned_at(&snapshot, seconds);
        let found =
            propose(&snapshot, &current, history, at(seconds), &PlanOptions::default(), &mut NeverStop);
        found.proposal.is_some()
    };
    let mut next = MoveHistory::default();
    assert!(moves(&next, NOW + 60), "without the record");
    // A leader that reads its own record counts nothing twice.
    for _ in 0..2 {
        next.add(old.record_to_keep());
    }
    assert_eq!(next.record_to_keep(), old.record_to_keep());
    assert!(!moves(&next, NOW + 60) && !moves(&next, NOW + 3599));
    assert!(moves(&next, NOW + 3600));
}

#[test]
fn no_work_is_moved_for_money_to_a_new_node_of_a_pool_that_is_less_wanted() {
    let of = |weight: u32| {
        let full = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
        let wanted = Pool { limits: full, weight, ..moving_pool() };
        let other = Pool { weight: 5, ..pool("other") };
        let mut snapshot = cluster_of(wanted, vec![large("big")], &[("a", "big")]);
        snapshot.pools.insert(other.name.clone(), other.into());
        proposed(&snapshot)
    };
    assert_eq!(of(9), None, "its own pool has no room for a second node meanwhile");
    let proposal = of(5).unwrap();
    assert_eq!(proposal.plan.claims[0].pool, PoolName("other".into()));
}

#[test]
fn consolidation_does_not_move_a_pod_with_a_gated_successor() {
    let held = |pool: Pool| {
        let snapshot = cluster_of(pool, vec![large("big")], &[("a", "big")]);
        with(snapshot, [Workload { scheduling_gated: true, ..web(1) }])
    };
    assert_eq!(proposed(&held(moving_pool())), None);
    let requirements = vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])];
    let drifted = proposed(&held(Pool { requirements, ..pool("gpu") })).unwrap();
    assert_eq!(leaving(&drifted), [("big", "Drifted")]);
    assert_eq!(drifted.plan.claims, []);
}

#[test]
fn nodes_tried_without_success_are_tried_last() {
    let nodes: Vec<(Claim, Node)> = (0..30).map(|number| small(&format!("s{number:02}"))).collect();
    let names: Vec<String> = nodes.iter().map(|(claim, _)| claim.name.0.clone()).collect();
    let pods: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let snapshot = cluster_of(moving_pool(), nodes, &pods);
    let current = planned_at(&snapshot, NOW);
    let mut move_history = MoveHistory::default();
    let mut tried: Vec<ClaimName> = Vec::new();
    for _ in 0..3 {
        let options = PlanOptions::default();
        let outlook = propose(&snapshot, &current, &move_history, at(NOW), &options, &mut NeverStop);
        assert_eq!(outlook.proposal, None, "each is full and of the cheapest kind");
        assert_eq!(
            (outlook.tried_together.len(), outlook.has_untried),
            (30, false),
            "one look sees them all"
        );
        tried.extend(outlook.tried_alone.clone());
        move_history.record_search(&outlook);
    }
    let all: std::collections::BTreeSet<&ClaimName> = tried.iter().collect();
    assert_eq!((tried.len(), all.len()), (30, 30), "each is tried once, a few at a time");
    let outlook =
        propose(&snapshot, &current, &move_history, at(NOW), &PlanOptions::default(), &mut NeverStop);
    move_history.record_search(&outlook);
    let again = propose(&snapshot, &current, &move_history, at(NOW), &PlanOptions::default(), &mut NeverStop);
    assert_eq!(again.tried_alone.len(), 12, "then the next round begins");
}

#[test]
fn a_search_that_spends_half_of_its_time_on_sets_of_nodes_still_tries_single_ones() {
    /// Half of the time is over at once, and the rest never ends.
    struct Half;
    impl StopSignal for Half {
        fn should_stop(&mut self) -> bool {
            false
        }
        fn is_half_over(&mut self) -> bool {
            true
        }
    }
    let snapshot = cluster_of(
        moving_pool(),
        vec![large("big-1"), large("big-2")],
        &[("web-1", "big-1"), ("web-2", "big-2")],
    );
    let current = planned_at(&snapshot, NOW);
    let options = PlanOptions::default();
    let found = propose(&snapshot, &current, &MoveHistory::default(), at(NOW), &options, &mut Half);
    assert!(found.proposal.is_some());
}
