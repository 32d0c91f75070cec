//! Tests what plans for files make of the durations that their pods declare.

use serde_json::{Value, json};

use crate::support::poolwright;

/// A pod that says in an annotation how long it runs, if at all.
fn pod(name: &str, expected: Option<&str>) -> Value {
    let resources = json!({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}});
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml"},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": resources}]}});
    if let Some(expected) = expected {
        pod["metadata"]["annotations"] = json!({"poolwright.dev/expected-duration": expected});
    }
    pod
}

fn said(args: &[&str], objects: &[Value]) -> String {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let output = poolwright(&[args, &["-f", "-"]].concat(), &list.to_string());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn files_whose_pods_declare_durations_are_planned_by_costs_over_time() {
    let mut limited = pod("limited", None);
    limited["spec"]["activeDeadlineSeconds"] = json!(600);
    let long = pod("long", Some("300h"));
    for short in [pod("short", Some("5m")), limited] {
        let plan = said(&["plan"], &[short, long.clone()]);
        assert!(plan.contains("\nCost over time "), "{plan}");
    }
    let plan = said(&["plan"], &[pod("short", None), pod("long", None)]);
    assert!(!plan.contains("Cost over time"), "{plan}");
}

#[test]
fn an_explanation_says_whether_its_amounts_count_how_long_nodes_are_paid_for() {
    let explained = |pods: [Value; 2]| said(&["plan", "--explain", "ml/short", "-o", "json"], &pods);
    let over_time = explained([pod("short", Some("5m")), pod("long", Some("300h"))]);
    assert!(over_time.contains("half the time counts half"), "{over_time}");
    let by_the_hour = explained([pod("short", None), pod("long", None)]);
    assert!(!by_the_hour.contains("half the time counts half"), "{by_the_hour}");
}

#[test]
fn a_pod_of_a_file_is_explained_with_the_duration_that_it_declares() {
    let explained = said(&["explain", "pod", "ml/short"], &[pod("short", Some("2h")), pod("other", None)]);
    assert!(explained.contains("\nIt is expected to run for "), "{explained}");
    assert!(explained.contains(" (the median): it declares a duration of 2.0 h."), "{explained}");
    let explained = said(&["explain", "pod", "ml/other"], &[pod("short", Some("2h")), pod("other", None)]);
    assert!(explained.contains(": no such pod has ended yet."), "{explained}");
    let explained = said(&["explain", "pod", "ml/other"], &[pod("other", None)]);
    assert!(!explained.contains("expected to run"), "nothing is declared: {explained}");
}
