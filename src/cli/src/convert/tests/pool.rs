//! Fields of a pool other than its requirements.

use poolwright_api::{ConsolidationPolicy, DisruptionReason};
use serde_json::{Value, json};

use super::super::Outcome;
use super::{note, of, only, pool, problem, template};

#[test]
fn a_static_pool_stays_one() {
    let of_size = |replicas: Value| of(&pool(|pool| pool["spec"]["replicas"] = replicas));
    let converted = of_size(json!(3));
    assert_eq!(only(&converted).spec.replicas, Some(3));
    assert_eq!(note(&converted, "spec.replicas").outcome, Outcome::Kept);
    assert!(problem(&of_size(json!(-1))).contains("-1 is not between 0 and 1000"));
}

#[test]
fn absent_fields_get_the_defaults_of_karpenter() {
    let converted = of(&pool(|pool| {
        template(pool).as_object_mut().unwrap().remove("expireAfter");
    }));
    let spec = &only(&converted).spec;
    assert_eq!(spec.template.spec.expire_after.0, "720h");
    assert_eq!(spec.disruption.consolidation_policy, ConsolidationPolicy::WhenEmptyOrUnderutilized);
    assert_eq!(
        (spec.disruption.consolidate_after.0.as_str(), spec.scale_to_zero.after.0.as_str()),
        ("0s", "0s")
    );
    assert_eq!(spec.disruption.budgets[0].nodes, "10%");
    assert!(!spec.disruption.budgets[0].reasons.contains(&DisruptionReason::Expired));
    for field in ["spec.template.spec.expireAfter", "spec.disruption.budgets"] {
        assert_eq!(note(&converted, field).outcome, Outcome::Changed);
    }
    assert_eq!(note(&converted, "spec.disruption.consolidationPolicy").outcome, Outcome::Kept);
}

#[test]
fn never_consolidating_keeps_empty_nodes_too() {
    let converted = of(&pool(|pool| pool["spec"]["disruption"] = json!({"consolidateAfter": "Never"})));
    let spec = &only(&converted).spec;
    assert_eq!(
        (spec.disruption.consolidate_after.0.as_str(), spec.scale_to_zero.after.0.as_str()),
        ("Never", "Never")
    );
}

#[test]
fn a_budget_with_a_schedule_keeps_its_schedule_and_says_that_it_is_in_utc() {
    let converted = of(&pool(|pool| {
        pool["spec"]["disruption"] =
            json!({"budgets": [{"nodes": "0", "schedule": "0 9 * * mon-fri", "duration": "8h"}]});
    }));
    let budget = &only(&converted).spec.disruption.budgets[0];
    assert_eq!((budget.schedule.as_deref(), budget.time_zone.as_deref()), (Some("0 9 * * mon-fri"), None));
    let note = note(&converted, "spec.disruption.budgets[0].schedule");
    assert_eq!(note.outcome, Outcome::Kept);
    assert!(note.sentence.contains("UTC"), "{}", note.sentence);
}

#[test]
fn an_empty_list_of_budgets_allows_everything_as_it_does_in_karpenter() {
    let converted = of(&pool(|pool| pool["spec"]["disruption"] = json!({"budgets": []})));
    let spec = &only(&converted).spec;
    assert_eq!(spec.disruption.budgets[0].nodes, "100%");
}

#[test]
fn the_termination_grace_period_is_a_deadline() {
    let pool = pool(|pool| template(pool)["terminationGracePeriod"] = json!("48h"));
    let deadline = only(&of(&pool)).spec.template.spec.deadlines.termination.clone();
    assert_eq!(deadline.unwrap().0, "48h");
}

#[test]
fn do_not_disrupt_in_the_template_is_an_annotation_of_the_pool() {
    let converted = of(&pool(|pool| {
        pool["spec"]["template"]["metadata"] =
            json!({"annotations": {"karpenter.sh/do-not-disrupt": "true"}});
    }));
    let pool = only(&converted);
    let annotations = pool.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["poolwright.dev/do-not-disrupt"], "true");
    assert!(pool.spec.template.metadata.annotations.is_empty());
}

#[test]
fn a_policy_says_that_nothing_is_removed_or_moved_if_nodes_never_count_as_idle() {
    for policy in ["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"] {
        let said = |after: &str| {
            let converted = of(&pool(|pool| {
                pool["spec"]["disruption"] =
                    json!({"consolidationPolicy": policy, "consolidateAfter": after});
            }));
            note(&converted, "spec.disruption.consolidationPolicy").sentence.clone()
        };
        let none = "no node is removed because it is empty, and no pods are moved";
        assert!(said("Never").contains(none), "{}", said("Never"));
        assert!(!said("5m").contains("Never"), "{}", said("5m"));
    }
}
