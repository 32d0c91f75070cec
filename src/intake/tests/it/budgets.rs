//! Tests the conversion of PodDisruptionBudgets.

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use poolwright_core::{BudgetLimit, BudgetSelector, CountOrPercent};
use poolwright_intake::{budget, manifest};
use serde_json::{Value, json};

fn object(spec: &Value, status: &Value) -> PodDisruptionBudget {
    let object = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u", "generation": 3}, "spec": spec, "status": status});
    serde_json::from_value(object).expect("a budget")
}

#[test]
fn limits_are_numbers_or_percentages() {
    let limit = |field: &str, value: Value| {
        let mut spec = json!({"selector": {}});
        spec[field] = value;
        budget(&object(&spec, &json!({}))).map(|budget| budget.limit).map_err(|error| error.to_string())
    };
    assert_eq!(
        limit("minAvailable", json!(2)),
        Ok(Some(BudgetLimit::MinAvailable(CountOrPercent::Count(2))))
    );
    assert_eq!(
        limit("maxUnavailable", json!("50%")),
        Ok(Some(BudgetLimit::MaxUnavailable(CountOrPercent::Percent(50))))
    );
    assert_eq!(
        limit("maxUnavailable", json!("half")).unwrap_err(),
        "PodDisruptionBudget shop/web: spec.maxUnavailable: `half` is neither a number of pods nor a percentage; write a number such as 1, or a percentage such as `50%`"
    );
}

#[test]
fn an_empty_selector_selects_all_pods_and_a_missing_one_none() {
    let selector = |spec: Value| budget(&object(&spec, &json!({}))).expect("a budget").selector;
    assert_eq!(selector(json!({"selector": {}})), BudgetSelector::Pods(vec![]));
    assert_eq!(selector(json!({})), BudgetSelector::Nothing);
    let senseless =
        json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}});
    assert_eq!(selector(senseless), BudgetSelector::Invalid("spec.selector.matchExpressions".into()));
}

#[test]
fn a_budget_status_counts_only_for_its_observed_generation() {
    let status = |seen: i64| {
        json!({"observedGeneration": seen, "expectedPods": 4, "currentHealthy": 0, "desiredHealthy": 0,
            "disruptionsAllowed": 0, "conditions": [{"type": "DisruptionAllowed", "status": "False",
                "reason": "SyncFailed", "message": "found no controllers", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})
    };
    let read = |seen| budget(&object(&json!({"selector": {}}), &status(seen))).expect("a budget");
    assert_eq!((read(3).expected, read(3).failure.as_deref()), (4, Some("found no controllers")));
    assert_eq!((read(2).expected, read(2).failure), (0, None));
}

#[test]
fn a_manifest_may_have_budgets_and_two_of_one_name_are_a_problem() {
    let one = r#"{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}}"#;
    assert_eq!(manifest::parse("f", one).expect("a manifest").budgets.len(), 1);
    let twice = format!("{one}\n---\n{one}");
    let problems = manifest::parse("f", &twice).unwrap_err();
    assert!(problems[0].to_string().contains("PodDisruptionBudget default/web: it is there more than once"));
}

#[test]
fn a_budget_lets_unready_pods_go_if_its_policy_or_its_counts_allow_that() {
    let lets_go = |policy: Value, healthy: i64, desired: i64| {
        let spec = json!({"selector": {}, "unhealthyPodEvictionPolicy": policy});
        let status = json!({"observedGeneration": 2, "currentHealthy": healthy, "desiredHealthy": desired,
            "disruptionsAllowed": 0, "expectedPods": 3});
        budget(&object(&spec, &status)).expect("a budget").unhealthy.may_be_evicted()
    };
    assert!(lets_go(json!("AlwaysAllow"), 0, 2));
    assert!(!lets_go(json!("IfHealthyBudget"), 1, 2) && !lets_go(Value::Null, 1, 2));
    assert!(lets_go(json!("IfHealthyBudget"), 2, 2) && lets_go(Value::Null, 2, 2));
    assert!(!lets_go(Value::Null, 0, 0), "the disruption controller has not counted");
    assert!(!lets_go(json!("Sometimes"), 2, 2), "a policy that this version does not know");
}
