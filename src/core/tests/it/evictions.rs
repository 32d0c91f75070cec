//! Tests of what PodDisruptionBudgets mean for the eviction of a pod, and of what users read about it.

use poolwright_core::plan::Plan;
use poolwright_core::rules::budgets::never_met;
use poolwright_core::rules::eviction::Eviction;
use poolwright_core::*;
use poolwright_terms::{ConditionType, Reason};

use crate::kit::*;

fn budget(name: &str, most: u64, unhealthy: UnhealthyPods) -> PodDisruptionBudget {
    PodDisruptionBudget {
        key: object_key(name),
        uid: Uid(format!("budget-{name}")),
        selector: BudgetSelector::Pods(vec![]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(most))),
        expected: 0,
        allowed: Some(most),
        failure: None,
        unhealthy,
    }
}

fn plain() -> UnhealthyPods {
    UnhealthyPods::default()
}

fn always() -> UnhealthyPods {
    UnhealthyPods { always_allowed: true, ..plain() }
}

fn running(health: PodHealth) -> Pod {
    Pod { health, ..bound(pod("p", requests(1, 1, 0)), "n") }
}

#[test]
fn a_pod_that_is_not_ready_leaves_without_its_budget_if_the_policy_or_enough_ready_pods_allow_that() {
    let of = |health, unhealthy| {
        let budget = budget("web", 1, unhealthy);
        Eviction::of(&running(health), [&budget]) == Eviction::Free
    };
    let ready = |healthy, desired| UnhealthyPods { healthy, desired, ..plain() };
    assert!(of(PodHealth::NotReady, always()));
    assert!(of(PodHealth::NotReady, ready(2, 2)));
    assert!(!of(PodHealth::NotReady, ready(1, 2)));
    assert!(!of(PodHealth::NotReady, ready(0, 0)), "the disruption controller has not counted");
    assert!(!of(PodHealth::Ready, always()) && !of(PodHealth::Ready, ready(2, 2)));
}

#[test]
fn pods_that_have_not_started_or_end_already_leave_whatever_budgets_select_them() {
    let budgets = [budget("first", 0, plain()), budget("second", 0, plain())];
    let of = |pod: &Pod| Eviction::of(pod, &budgets);
    assert_eq!(of(&running(PodHealth::Pending)), Eviction::Free);
    assert_eq!(of(&Pod { deleting_since: Some(at(1)), ..running(PodHealth::Ready) }), Eviction::Free);
    assert_eq!(of(&Pod { phase: PodPhase::Finished, ..running(PodHealth::Ready) }), Eviction::Free);
}

#[test]
fn a_started_pod_of_two_budgets_never_leaves_even_if_it_is_not_ready() {
    let budgets = [budget("first", 1, always()), budget("second", 1, always())];
    for health in [PodHealth::Ready, PodHealth::NotReady] {
        assert_eq!(Eviction::of(&running(health), &budgets), Eviction::Never(budgets.iter().collect()));
    }
    assert_eq!(Eviction::of(&running(PodHealth::Ready), &budgets[..1]), Eviction::Takes(&budgets[0]));
}

/// Returns a node with one pod, and these budgets for it.
fn guarded(health: PodHealth, budgets: Vec<PodDisruptionBudget>) -> Snapshot {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [running(health)]);
    with(with(with(snapshot, [initialized()]), [claimed_node()]), budgets)
}

#[test]
fn a_node_cannot_be_drained_only_if_a_pod_on_it_needs_the_budget_that_is_never_met() {
    let said = |health| {
        let snapshot = guarded(health, vec![budget("web", 0, always())]);
        why::node(&snapshot, at(100), &Plan::default(), "n").expect("it exists").join(" ")
    };
    assert!(said(PodHealth::Ready).contains("It cannot be drained: PodDisruptionBudget default/web"));
    assert!(!said(PodHealth::NotReady).contains("It cannot be drained"), "{}", said(PodHealth::NotReady));
}

#[test]
fn another_budget_that_blocks_a_node_is_counted_in_good_grammar() {
    let said = |names: &[&str]| {
        let budgets = names.iter().map(|name| budget(name, 1, plain())).collect();
        let snapshot = guarded(PodHealth::Ready, budgets);
        why::node(&snapshot, at(100), &Plan::default(), "n").expect("it exists").join(" ")
    };
    assert!(said(&["a", "b"]).ends_with("1 more budget blocks it too."), "{}", said(&["a", "b"]));
    assert!(said(&["a", "b", "c"]).ends_with("2 more budgets block it too."));
}

#[test]
fn a_budget_that_lets_unready_pods_go_is_said_to_keep_only_ready_ones() {
    let said =
        |unhealthy| never_met(&guarded(PodHealth::Ready, vec![budget("web", 0, unhealthy)]))[0].to_string();
    assert!(said(plain()).contains("its only pod may never be evicted; raise it"), "{}", said(plain()));
    assert!(
        said(always()).contains("may never be evicted while it is ready; raise it"),
        "{}",
        said(always())
    );
}

/// Returns the snapshot of a drain, and what it writes to the claim about it.
fn drain(snapshot: Snapshot) -> (Snapshot, ConditionUpdate) {
    let snapshot = with(snapshot, [Claim { deleting_since: Some(at(100)), ..initialized() }]);
    let drained = decide(&snapshot, at(101)).actions.into_iter().find_map(|action| match action {
        Action::SetConditions { conditions, .. } => {
            conditions.into_iter().find(|one| one.kind == ConditionType::Drained)
        }
        _ => None,
    });
    (snapshot, drained.expect("the drain is told"))
}

#[test]
fn a_drain_that_a_budget_never_allows_names_it_and_the_remedy() {
    let never = "PodDisruptionBudget default/web never allows an eviction: spec.maxUnavailable is 0, so its only pod may never be \
                 evicted; raise it to at least 1";
    let (_, told) = drain(guarded(PodHealth::Ready, vec![budget("web", 0, plain())]));
    assert_eq!(told.reason, Reason::BudgetNeverMet);
    assert_eq!(told.message, format!("node n still runs 1 pod (default/p); {never}"));
    let under_way = [
        (PodHealth::Ready, PodDisruptionBudget { allowed: Some(0), ..budget("web", 1, plain()) }),
        (PodHealth::NotReady, budget("web", 0, always())),
    ];
    for (health, budget) in under_way {
        let (_, told) = drain(guarded(health, vec![budget]));
        assert_eq!(told.reason, Reason::Draining, "{}", told.message);
    }
    let protection = Protection { annotation: "poolwright.dev/do-not-disrupt=true".to_owned(), until: None };
    let ending = Ending { protection: Some(protection), ..Ending::default() };
    let protected = with(
        guarded(PodHealth::Ready, vec![budget("web", 0, plain())]),
        [Pod { ending, ..running(PodHealth::Ready) }],
    );
    let (_, told) = drain(protected);
    assert_eq!(told.reason, Reason::PodsProtected);
    assert!(told.message.ends_with(&format!("remove the annotation; {never}")), "{}", told.message);
}

#[test]
fn the_explanation_of_a_claim_names_the_budget_that_blocks_its_drain_once() {
    let mentions = |snapshot: &Snapshot| {
        let name = ClaimName("c".into());
        let lines = why::claim(snapshot, at(102), &Plan::default(), &name).expect("it exists");
        lines.iter().filter(|line| line.contains("PodDisruptionBudget default/web never allows")).count()
    };
    let snapshot = guarded(PodHealth::Ready, vec![budget("web", 0, plain())]);
    assert_eq!(mentions(&snapshot), 1, "before the drain");
    let (snapshot, told) = drain(snapshot);
    assert_eq!(mentions(&snapshot), 1, "before the controller has told it");
    let mut claim = Claim::clone(snapshot.claims.get(&ClaimName("c".into())).expect("it exists"));
    let ConditionUpdate { kind, status, reason, message } = told;
    claim.conditions.insert(kind, Condition { status, since: at(101), reason: Some(reason), message });
    assert_eq!(mentions(&with(snapshot, [claim])), 1, "after that");
}

#[test]
fn a_drain_that_two_budgets_block_names_them_and_the_remedy() {
    let said = |names: &[&str]| {
        let budgets = names.iter().map(|name| budget(name, 1, plain())).collect();
        drain(guarded(PodHealth::Ready, budgets)).1.message
    };
    assert_eq!(said(&["a"]), "node n still runs 1 pod (default/p); eviction is under way");
    assert_eq!(
        said(&["a", "b"]),
        "node n still runs 1 pod (default/p); PodDisruptionBudgets default/a, default/b select pod default/p, and the API server never evicts a pod of two budgets; let only one budget select it"
    );
}
