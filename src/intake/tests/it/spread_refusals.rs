//! Tests that topology spread which an API server refuses is told before it is planned.

use serde_json::{Value, json};

use crate::json_kit::{object, read, refused, stored};

const ZONE: &str = "topology.kubernetes.io/zone";

fn pod(constraints: Value) -> Value {
    let spec = json!({"containers": [{"image": "x", "name": "a"}], "topologySpreadConstraints": constraints});
    object("v1", "Pod", "p", spec)
}

/// A constraint that an API server accepts, with these fields instead.
fn constraint(fields: Value) -> Value {
    let mut one = json!({"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}}});
    for (field, value) in fields.as_object().expect("fields") {
        one[field] = value.clone();
    }
    one
}

#[test]
fn each_field_of_a_constraint_that_an_api_server_refuses_is_told() {
    let fine = json!({"minDomains": 2, "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["pod-template-hash"]});
    assert_eq!(read(&[pod(json!([constraint(fine)]))]).pods.len(), 1);
    for (fields, expected) in [
        (json!({"maxSkew": 0}), "maxSkew: `0` is less than 1"),
        (json!({"topologyKey": null}), "topologyKey: missing"),
        (json!({"whenUnsatisfiable": null}), "whenUnsatisfiable: missing"),
        (
            json!({"whenUnsatisfiable": "DoNotschedul"}),
            "whenUnsatisfiable: `DoNotschedul` does not exist; did you mean `DoNotSchedule`?",
        ),
        (json!({"minDomains": 0}), "minDomains: `0` is less than 1"),
        (
            json!({"minDomains": 3, "whenUnsatisfiable": "ScheduleAnyway"}),
            "minDomains: an API server refuses it with ScheduleAnyway",
        ),
        (json!({"nodeTaintsPolicy": "Honour"}), "nodeTaintsPolicy: `Honour` does not exist"),
        (json!({"nodeAffinityPolicy": "ignore"}), "nodeAffinityPolicy: `ignore` does not exist"),
        (
            json!({"matchLabelKeys": ["app"], "labelSelector": null}),
            "matchLabelKeys: an API server refuses it without labelSelector",
        ),
        (json!({"matchLabelKeys": ["app"]}), "matchLabelKeys[0]: `app` is also in labelSelector"),
    ] {
        let found = refused(&pod(json!([constraint(fields)])));
        let expected = format!("all.json: Pod default/p: spec.topologySpreadConstraints[0].{expected}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{expected}: {found:?}");
    }
}

#[test]
fn two_constraints_of_the_same_kind_over_one_topology_are_told() {
    let [one, other] = [1, 2].map(|skew| constraint(json!({"maxSkew": skew})));
    let found = refused(&pod(json!([one, other])));
    let expected = "spec.topologySpreadConstraints[1].topologyKey: another constraint has the same";
    assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    let [one, other] =
        ["DoNotSchedule", "ScheduleAnyway"].map(|when| constraint(json!({"whenUnsatisfiable": when})));
    assert_eq!(read(&[pod(json!([one, other]))]).pods.len(), 1, "a rule and a preference");
}

#[test]
fn the_template_of_a_workload_is_judged_and_a_stored_pod_is_not() {
    let spec = json!({"restartPolicy": "Never", "containers": [{"image": "x", "name": "a"}],
        "topologySpreadConstraints": [constraint(json!({"minDomains": 0}))]});
    let found = refused(&object("batch/v1", "Job", "j", json!({"template": {"spec": spec}})));
    assert!(found[0].contains("spec.template.spec.topologySpreadConstraints[0].minDomains: "), "{found:?}");
    let there = stored(pod(json!([constraint(json!({"minDomains": 0}))])), None);
    assert_eq!(read(&[there]).pods.len(), 1);
}
