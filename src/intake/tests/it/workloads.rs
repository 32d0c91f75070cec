//! Tests the number of pods that controllers want and have created.

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use poolwright_intake::{job, pod, quota, replica_set, stateful_set};
use serde_json::{Value, json};

fn meta() -> Value {
    json!({"name": "w", "namespace": "ml", "uid": "u1"})
}

fn of_job(spec: Value, status: Value) -> (u64, u64) {
    let template = json!({"spec": {"containers": []}});
    let mut spec = spec;
    spec["template"] = template;
    let object: Job =
        serde_json::from_value(json!({"metadata": meta(), "spec": spec, "status": status})).unwrap();
    let workload = job(&object);
    assert_eq!((workload.kind.as_str(), workload.uid.0.as_str()), ("Job", "u1"));
    (workload.wanted, workload.current)
}

#[test]
fn a_job_wants_its_parallelism_and_no_more_than_are_left_to_succeed() {
    let spec = json!({"parallelism": 8, "completions": 10});
    assert_eq!(of_job(spec.clone(), json!({"active": 3})), (8, 3));
    assert_eq!(of_job(spec.clone(), json!({"active": 2, "succeeded": 7, "terminating": 1})), (3, 3));
    assert_eq!(of_job(spec, json!({"succeeded": 10})), (0, 0));
    assert_eq!(of_job(json!({"parallelism": 4}), json!({})), (4, 0));
    assert_eq!(of_job(json!({"parallelism": 4}), json!({"succeeded": 1, "active": 3})), (0, 3));
    assert_eq!(of_job(json!({}), json!({})), (1, 0));
}

#[test]
fn a_job_that_is_suspended_ended_or_another_controllers_wants_none() {
    let spec = json!({"parallelism": 8, "completions": 8});
    let with = |field: &str, value: Value| {
        let mut spec = spec.clone();
        spec[field] = value;
        spec
    };
    assert_eq!(of_job(with("suspend", json!(true)), json!({})).0, 0);
    assert_eq!(of_job(with("managedBy", json!("kueue.x-k8s.io/multikueue")), json!({})).0, 0);
    for kind in ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"] {
        let status = json!({"conditions": [{"type": kind, "status": "True"}]});
        assert_eq!(of_job(spec.clone(), status).0, 0, "{kind}");
    }
}

#[test]
fn a_replica_set_that_cannot_make_pods_wants_none() {
    let of = |status: Value| {
        let spec = json!({"replicas": 5, "selector": {}});
        let object: ReplicaSet =
            serde_json::from_value(json!({"metadata": meta(), "spec": spec, "status": status})).unwrap();
        let workload = replica_set(&object);
        (workload.wanted, workload.current)
    };
    assert_eq!(of(json!({"replicas": 2})), (5, 2));
    let quota = json!([{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}]);
    assert_eq!(of(json!({"replicas": 2, "conditions": quota})), (0, 2));
}

#[test]
fn a_stateful_set_is_expected_to_make_all_its_pods_only_if_it_makes_them_at_once() {
    let of = |policy: &str| {
        let template = json!({"spec": {"containers": []}});
        let spec = json!({"replicas": 3, "selector": {}, "serviceName": "s", "podManagementPolicy": policy,
            "template": template});
        let object: StatefulSet =
            serde_json::from_value(json!({"metadata": meta(), "spec": spec, "status": {"replicas": 1}}))
                .unwrap();
        let workload = stateful_set(&object);
        (workload.wanted, workload.current)
    };
    assert_eq!(of("Parallel"), (3, 1));
    assert_eq!(of("OrderedReady"), (0, 1));
}

#[test]
fn a_quota_says_what_pods_may_still_request() {
    let object = json!({"metadata": {"name": "q", "namespace": "ml"}, "status": {
        "hard": {"requests.nvidia.com/gpu": "8", "count/pods": "10", "cpu": "20", "requests.storage": "1Ti",
            "services": "3", "requests.cpu": "30"},
        "used": {"requests.nvidia.com/gpu": "8", "count/pods": "4", "cpu": "5", "requests.cpu": "5"},
    }});
    let left = quota(&serde_json::from_value(object).unwrap()).unwrap().left;
    let expected = [("cpu", 15_000), ("nvidia.com/gpu", 0), ("pods", 6)];
    assert_eq!(left, expected.map(|(resource, left)| (resource.to_owned(), left)).into());
}

#[test]
fn a_quota_of_a_cluster_counts_the_pods_that_meet_its_scopes() {
    let scopes = |spec: Value| {
        let object = json!({"metadata": {"name": "q", "namespace": "ml"}, "spec": spec});
        quota(&serde_json::from_value(object).unwrap()).unwrap().scopes
    };
    let pod = |spec: Value| {
        let object = json!({"metadata": {"name": "p", "namespace": "ml"}, "spec": spec});
        pod(&serde_json::from_value(object).unwrap()).unwrap().scopes
    };
    let plain = pod(json!({"containers": [{"image": "x", "name": "a"}]}));
    let asking = json!([{"name": "a", "resources": {"requests": {"cpu": "1"}}}]);
    let ending = pod(json!({"containers": asking, "activeDeadlineSeconds": 60, "priorityClassName": "high"}));
    let of = |name: &str| scopes(json!({"scopes": [name]}));
    for (name, counts) in [
        ("BestEffort", [true, false]),
        ("NotBestEffort", [false, true]),
        ("Terminating", [false, true]),
        ("NotTerminating", [true, false]),
        ("PriorityClass", [false, true]),
        ("VolumeAttributesClass", [false, false]),
        ("Newer", [false, false]),
    ] {
        assert_eq!([&plain, &ending].map(|pod| of(name).match_pod(pod)), counts, "{name}");
    }
    let expression = json!({"scopeName": "PriorityClass", "operator": "NotIn", "values": ["high"]});
    let others =
        scopes(json!({"scopes": ["BestEffort"], "scopeSelector": {"matchExpressions": [expression]}}));
    assert_eq!([&plain, &ending].map(|pod| others.match_pod(pod)), [true, false]);
    assert!(scopes(json!({})).match_pod(&ending));
}
