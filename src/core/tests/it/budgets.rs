//! Tests of PodDisruptionBudgets that can never be met. They are found, with the wrong field and the remedy.

use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_core::rules::budgets::{never_met, never_met_of};
use poolwright_core::*;

use crate::kit::*;

impl Put for PodDisruptionBudget {
    fn put(self, snapshot: &mut Snapshot) {
        snapshot.budgets.insert(self.key.clone(), self.into());
    }
}

/// Returns a budget for pods with `app=web`.
fn budget(name: &str, limit: BudgetLimit) -> PodDisruptionBudget {
    PodDisruptionBudget {
        key: object_key(name),
        uid: Uid(format!("budget-{name}")),
        selector: BudgetSelector::Pods(vec![is_in("app", &["web"])]),
        limit: Some(limit),
        expected: 0,
        allowed: None,
        failure: None,
        unhealthy: UnhealthyPods::default(),
    }
}

fn web(name: &str) -> Pod {
    let labels = [("app".to_owned(), "web".to_owned())].into();
    Pod { labels, owner: Some(Uid("web".into())), ..pod(name, requests(1, 1, 0)) }
}

fn replicas(total: u64) -> Workload {
    let (kind, uid) = ("ReplicaSet".into(), Uid("web".into()));
    Workload {
        kind,
        key: object_key("web"),
        uid,
        owner: None,
        total,
        wanted: total,
        current: 0,
        scheduling_gated: false,
        selector: None,
    }
}

/// Returns the messages for this budget and three pods of a ReplicaSet with `total` pods.
fn messages(total: u64, budget: PodDisruptionBudget) -> Vec<String> {
    let snapshot = with(cluster(aws(), [pool("gpu")]), ["a", "b", "c"].map(web));
    let mut snapshot = with(snapshot, [budget]);
    let of_them = replicas(total);
    snapshot.workloads.insert((of_them.kind.clone(), of_them.key.clone()), of_them.into());
    never_met(&snapshot).iter().map(ToString::to_string).collect()
}

fn one(total: u64, limit: BudgetLimit) -> String {
    messages(total, budget("web", limit)).join(" | ")
}

use BudgetLimit::{MaxUnavailable, MinAvailable};
use CountOrPercent::{Count, Percent};

#[test]
fn a_budget_that_never_allows_an_eviction_is_told_with_the_field_and_what_to_change() {
    assert_eq!(
        one(3, MaxUnavailable(Count(0))),
        "PodDisruptionBudget default/web never allows an eviction: spec.maxUnavailable is 0, so none of its 3 pods may ever be evicted; raise it to at least 1"
    );
    assert!(one(3, MaxUnavailable(Percent(0))).contains("spec.maxUnavailable is 0%"));
    assert!(one(3, MinAvailable(Percent(100))).contains("spec.minAvailable is 100%"));
    assert_eq!(
        one(3, MinAvailable(Count(3))),
        "PodDisruptionBudget default/web never allows an eviction: spec.minAvailable is 3, so none of its 3 pods may ever be evicted; lower it, or write maxUnavailable: 1 instead"
    );
    assert!(
        one(3, MinAvailable(Percent(67))).contains("spec.minAvailable is 67%"),
        "rounded up, that is all three"
    );
    for fine in [
        MaxUnavailable(Count(1)),
        MaxUnavailable(Percent(1)),
        MinAvailable(Count(2)),
        MinAvailable(Percent(66)),
    ] {
        assert_eq!(one(3, fine), "", "{fine:?}");
    }
}

#[test]
fn a_workload_that_is_still_growing_is_measured_by_what_it_is_to_be() {
    assert_eq!(one(4, MinAvailable(Count(3))), "", "a fourth pod is to come");
    let said = PodDisruptionBudget { expected: 4, ..budget("web", MinAvailable(Count(3))) };
    assert!(messages(0, said).is_empty(), "the disruption controller knows of four");
}

#[test]
fn two_budgets_about_one_pod_are_told_both_for_the_api_server_never_evicts_it() {
    let first = budget("first", MaxUnavailable(Count(1)));
    let second = PodDisruptionBudget {
        selector: BudgetSelector::Pods(vec![]),
        ..budget("second", MaxUnavailable(Count(1)))
    };
    let elsewhere = PodDisruptionBudget { key: ObjectKey::new("other", "third"), ..second.clone() };
    let snapshot = with(cluster(aws(), [pool("gpu")]), [web("a"), pod("b", requests(1, 1, 0))]);
    let snapshot = with(snapshot, [first, second, elsewhere]);
    let found = never_met(&snapshot);
    assert_eq!(found.len(), 2);
    assert_eq!(
        found[0].to_string(),
        "PodDisruptionBudget default/first never allows an eviction: spec.selector selects pods that second selects too, such as default/a, and the API server never evicts a pod of two budgets; let only one budget select them"
    );
    assert_eq!((found[1].budget.name.as_str(), &found[1].pods), ("second", &vec![key("a")]), "b is fine");
    assert_eq!(never_met_of(&snapshot, &snapshot.pods[&key("a")]).len(), 2);
    assert_eq!(never_met_of(&snapshot, &snapshot.pods[&key("b")]), []);
}

#[test]
fn unreadable_budgets_are_reported_and_budgets_without_pods_are_not() {
    let field = "spec.selector.matchExpressions".to_owned();
    let unreadable = PodDisruptionBudget {
        selector: BudgetSelector::Invalid(field),
        ..budget("web", MaxUnavailable(Count(1)))
    };
    let said = messages(3, unreadable).join("");
    assert!(
        said.contains("spec.selector.matchExpressions is invalid, so the budget protects no pod"),
        "{said}"
    );
    let failed = PodDisruptionBudget {
        failure: Some("found no controllers for pod \"a\"".into()),
        ..budget("web", MaxUnavailable(Percent(50)))
    };
    let said = messages(3, failed).join("");
    assert!(
        said.contains("(found no controllers for pod \"a\")") && said.contains("use spec.minAvailable"),
        "{said}"
    );
    let nobody =
        PodDisruptionBudget { selector: BudgetSelector::Nothing, ..budget("web", MaxUnavailable(Count(0))) };
    assert!(messages(3, nobody).is_empty());
}

#[test]
fn pods_are_served_all_the_same_and_their_stories_and_their_nodes_tell_of_it() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), [web("p")]);
    let snapshot = with(snapshot, [budget("web", MinAvailable(Count(1)))]);
    let plan = planned(&snapshot);
    assert_eq!(plan.claims.len(), 1, "it is a warning");
    let lines = why::pod(&snapshot, at(10), &PlanOptions::default(), &plan, &key("p")).unwrap();
    assert!(lines.len() <= why::MOST_LINES && lines[lines.len() - 1].starts_with("Planned on a new node"));
    assert_eq!(
        lines[lines.len() - 2],
        "Warning: PodDisruptionBudget default/web never allows an eviction: spec.minAvailable is 1, so its only pod may never be evicted; run a second one, or write maxUnavailable: 1 instead."
    );
    let runs = with(snapshot, [bound(web("p"), "n")]);
    let runs = with(with(runs, [initialized()]), [claimed_node()]);
    let lines = why::node(&runs, at(100), &Plan::default(), "n").unwrap();
    assert!(
        lines[lines.len() - 1].starts_with("It cannot be drained: PodDisruptionBudget default/web never")
    );
    assert!(
        lines[lines.len() - 1].ends_with("That protects 1 pod: default/p."),
        "{}",
        lines[lines.len() - 1]
    );
}
