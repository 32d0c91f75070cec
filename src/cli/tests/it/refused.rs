//! Tests what plans and explanations of a cluster say about pods that its API server refuses to create.

use poolwright_controller::clock::{Clock, SystemClock};
use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve, status};
use crate::support::poolwright;

const QUOTA: &str = "is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1";

/// A ReplicaSet with one of three pods, and a Job without any of its two pods.
fn cluster(request: &Request) -> (u16, Value) {
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "x", "name": "main"}]}});
    match request.path.split('?').next().unwrap_or_default() {
        "/apis/apps/v1/replicasets" => {
            list(&[json!({"metadata": {"name": "web-5d4", "namespace": "ml", "uid": "set"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
            "status": {"replicas": 1, "conditions": [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": format!("pods \"web-5d4-x\" {QUOTA}")}]}})])
        }
        "/apis/batch/v1/jobs" => {
            list(&[json!({"metadata": {"name": "train", "namespace": "ml", "uid": "job"},
            "spec": {"parallelism": 2, "template": template}})])
        }
        "/api/v1/events" if request.path.contains("fieldSelector=reason%3DFailedCreate") => list(&[
            json!({"metadata": {"name": "train.1", "namespace": "ml"}, "reason": "FailedCreate", "type": "Warning",
                "involvedObject": {"kind": "Job", "namespace": "ml", "name": "train", "uid": "job"},
                "message": format!("Error creating: pods \"train-x\" {QUOTA}"),
                "lastTimestamp": SystemClock::new().now().to_string()}),
        ]),
        _ => list(&[]),
    }
}

/// Runs the command. Returns its exit code, and its output or else its error.
fn run(name: &str, answer: fn(&Request) -> (u16, Value), args: &[&str]) -> (Option<i32>, String) {
    let kubeconfig = kubeconfig(&format!("refused-{name}"), serve(answer));
    let output = poolwright(&[args, &["--kubeconfig", kubeconfig.to_str().expect("UTF-8")]].concat(), "");
    let said = if output.stdout.is_empty() { output.stderr } else { output.stdout };
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_plan_of_a_cluster_counts_the_pods_that_its_api_server_refuses_as_one_of_files_does() {
    let (code, said) = run("plan", cluster, &["plan", "-o", "json", "--fail-on-unplaced"]);
    assert_eq!(code, Some(3), "{said}");
    let plan: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    let of = |object: &str| json!({"object": object, "pods": 2});
    assert_eq!(plan["refused"], json!([of("ReplicaSet ml/web-5d4"), of("Job ml/train")]));
    let notes: Vec<&str> =
        plan["notes"].as_array().expect("notes").iter().filter_map(Value::as_str).collect();
    for note in [
        format!(
            "ReplicaSet ml/web-5d4: the API server refuses more of its pods (ReplicaFailure: pods \"web-5d4-x\" {QUOTA})"
        ),
        format!(
            "Job ml/train: the API server refuses more of its pods (FailedCreate: Error creating: pods \"train-x\" {QUOTA})"
        ),
    ] {
        assert!(notes.iter().any(|one| one.contains(&note)), "{note}: {notes:?}");
    }
    let (code, _) = run("plan-of-others", cluster, &["plan", "--fail-on-unplaced", "-n", "ml"]);
    assert_eq!(code, Some(3), "they are pods of this namespace");
}

#[test]
fn an_explanation_of_a_pod_that_does_not_exist_says_that_a_quota_keeps_it_out() {
    for (pod, controller) in [("ml/web", "ReplicaSet ml/web-5d4"), ("ml/train", "Job ml/train")] {
        let (code, said) = run(&format!("explain-{}", &pod[3..]), cluster, &["explain", "pod", pod]);
        assert_eq!(code, Some(2), "{said}");
        let start = format!(
            "the cluster has no pod `{pod}`: {controller}: the API server refuses more of its pods ("
        );
        assert!(said.contains(&start) && said.contains("exceeded quota: team"), "{said}");
    }
}

#[test]
fn who_may_not_list_events_is_told_what_is_unknown() {
    let blind = |request: &Request| {
        if request.path.contains("/events") { status(403, "not for you") } else { cluster(request) }
    };
    let (code, said) = run("blind", blind, &["plan", "-o", "json"]);
    assert_eq!(code, Some(0), "{said}");
    let plan: Value = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    assert_eq!(plan["refused"].as_array().map(Vec::len), Some(1), "that of the ReplicaSet: {plan}");
    let notes = plan["notes"].to_string();
    assert!(notes.contains("Poolwright cannot list events (") && notes.contains("not for you"), "{notes}");
}
