//! Tests JobSets and LeaderWorkerSets: their controllers, the number of pods, and the pods' specs.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use poolwright_core::{Gang, PodPhase};
use poolwright_intake::{job_set, leader_worker_set};
use serde_json::{Value, json};

fn template(gpus: u32) -> Value {
    let resources = json!({"requests": {"nvidia.com/gpu": gpus}, "limits": {"nvidia.com/gpu": gpus}});
    json!({"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [
        {"name": "main", "image": "x", "resources": resources}]}})
}

fn replicated(name: &str, replicas: u32, parallel: u32) -> Value {
    json!({"name": name, "replicas": replicas, "template": {"spec": {
        "parallelism": parallel, "completions": parallel, "template": template(1)}}})
}

/// Returns a JobSet of a leader and two jobs of four workers, with more fields of its spec and this status.
fn of(more: Value, status: Value) -> Gang {
    let mut spec = json!({"replicatedJobs": [replicated("leader", 1, 1), replicated("workers", 2, 4)]});
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    let object = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u"}, "spec": spec, "status": status});
    job_set(&serde_json::from_value(object).expect("a JobSet")).expect("it converts")
}

/// Returns the name of each part, and whether its missing pods are created now.
fn comes(gang: &Gang) -> Vec<(&str, bool)> {
    gang.parts.iter().map(|part| (part.name.as_str(), part.creates_missing)).collect()
}

#[test]
fn a_job_set_names_the_jobs_it_makes_and_what_their_pods_will_be_like() {
    let gang = of(json!({}), json!({}));
    assert_eq!(
        (gang.kind.as_str(), gang.key.to_string().as_str(), gang.parts.len()),
        ("JobSet", "ml/train", 2)
    );
    let workers = &gang.parts[1];
    assert_eq!((workers.controller.as_str(), workers.pods_per_controller), ("Job", 4));
    assert_eq!(workers.controllers, ["train-workers-0", "train-workers-1"]);
    let example = &workers.example;
    assert_eq!(example.spec.requests.get("nvidia.com/gpu"), 1);
    assert!(matches!(example.phase, PodPhase::Unschedulable { .. }));
    let label = |key: &str| example.labels.get(key).map(String::as_str);
    assert_eq!(label("app"), Some("train"));
    assert_eq!(label("jobset.sigs.k8s.io/replicatedjob-name"), Some("workers"));
    assert_eq!(comes(&gang), [("leader", true), ("workers", true)]);
    let kind = &example.duration.kinds[0];
    assert!(kind.starts_with("train-workers with "), "as the pods of its jobs: {kind}");
    assert!(!example.duration.is_service);
}

#[test]
fn a_job_set_that_is_suspended_ended_or_anothers_wants_nothing() {
    let parts = |more, status| of(more, status).parts.len();
    assert_eq!(parts(json!({"suspend": true}), json!({})), 0);
    assert_eq!(parts(json!({"managedBy": "kueue.x-k8s.io/multikueue"}), json!({})), 0);
    assert_eq!(parts(json!({"managedBy": "jobset.sigs.k8s.io/jobset-controller"}), json!({})), 2);
    for kind in ["Completed", "Failed"] {
        let condition = json!({"type": kind, "status": "True", "reason": "r", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        assert_eq!(parts(json!({}), json!({"conditions": [condition]})), 0, "{kind}");
    }
}

fn status(ready: u32, succeeded: u32) -> Value {
    json!({"replicatedJobsStatus": [{"name": "leader", "ready": ready, "succeeded": succeeded, "failed": 0,
        "active": 1, "suspended": 0}]})
}

#[test]
fn jobs_that_start_in_order_come_when_those_before_them_have_started() {
    let in_order = json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}});
    assert_eq!(comes(&of(in_order.clone(), json!({}))), [("leader", true), ("workers", false)]);
    assert_eq!(comes(&of(in_order.clone(), status(0, 0))), [("leader", true), ("workers", false)]);
    assert_eq!(comes(&of(in_order, status(1, 0))), [("leader", true), ("workers", true)]);
    let any = json!({"startupPolicy": {"startupPolicyOrder": "AnyOrder"}});
    assert_eq!(comes(&of(any, json!({}))), [("leader", true), ("workers", true)]);
}

#[test]
fn jobs_that_depend_on_others_come_when_these_are_ready_or_complete() {
    let on = |wanted: &str| {
        let mut workers = replicated("workers", 2, 4);
        workers["dependsOn"] = json!([{"name": "leader", "status": wanted}]);
        json!({"replicatedJobs": [replicated("leader", 1, 1), workers]})
    };
    let workers_come = |wanted: &str, status: Value| of(on(wanted), status).parts[1].creates_missing;
    assert!(!workers_come("Ready", json!({})) && workers_come("Ready", status(1, 0)));
    assert!(!workers_come("Complete", status(1, 0)) && workers_come("Complete", status(0, 1)));
}

#[test]
fn pods_that_follow_their_first_one_are_not_expected() {
    let object = json!({"metadata": {"name": "train", "annotations":
        {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}},
        "spec": {"replicatedJobs": [replicated("workers", 2, 4)]}});
    let gang = job_set(&serde_json::from_value(object).unwrap()).unwrap();
    assert_eq!(gang.parts[0].pods_per_controller, 1);
}

fn serving(more: Value, meta: Value) -> Gang {
    let mut spec = json!({"replicas": 3, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template(8)}});
    for (field, value) in more.as_object().expect("fields") {
        spec[field] = value.clone();
    }
    let mut metadata = json!({"name": "vllm", "namespace": "ml", "uid": "u"});
    for (field, value) in meta.as_object().expect("fields") {
        metadata[field] = value.clone();
    }
    let object = json!({"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
        "metadata": metadata, "spec": spec});
    leader_worker_set(&serde_json::from_value(object).expect("a LeaderWorkerSet")).expect("it converts")
}

#[test]
fn a_leader_worker_set_makes_its_leaders_and_a_set_of_workers_for_each() {
    let gang = serving(json!({}), json!({}));
    assert_eq!(comes(&gang), [("leader", true), ("workers", true)]);
    let of = |at: usize| (gang.parts[at].controllers.join(" "), gang.parts[at].pods_per_controller);
    assert_eq!(of(0), ("vllm".to_owned(), 3));
    assert_eq!(of(1), ("vllm-0 vllm-1 vllm-2".to_owned(), 3), "four pods with their leader");
    assert_eq!(gang.parts[0].example.spec.requests.get("nvidia.com/gpu"), 8, "as its workers");
    assert!(
        gang.parts.iter().all(|part| part.example.duration.is_service),
        "they run until they are deleted"
    );
    let own = json!({"leaderWorkerTemplate": {"size": 2, "leaderTemplate": template(1), "workerTemplate": template(8)}});
    let gang = serving(own, json!({}));
    assert_eq!(gang.parts[0].example.spec.requests.get("nvidia.com/gpu"), 1);
    let alone = json!({"leaderWorkerTemplate": {"size": 1, "workerTemplate": template(8)}});
    assert_eq!(comes(&serving(alone, json!({}))), [("leader", true)]);
}

#[test]
fn workers_that_wait_for_their_leader_are_not_expected() {
    let ready = json!({"startupPolicy": "LeaderReady"});
    assert_eq!(comes(&serving(ready, json!({}))), [("leader", true), ("workers", false)]);
    let created = json!({"startupPolicy": "LeaderCreated"});
    assert_eq!(comes(&serving(created, json!({}))), [("leader", true), ("workers", true)]);
    let exclusive = json!({"annotations": {"leaderworkerset.sigs.k8s.io/exclusive-topology": "rack"}});
    assert_eq!(comes(&serving(json!({}), exclusive)), [("leader", true), ("workers", false)]);
    assert_eq!(serving(json!({}), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"})).parts, []);
}

#[test]
fn a_template_that_cannot_be_read_is_named_with_its_place() {
    let mut pods: PodTemplateSpec = serde_json::from_value(template(1)).unwrap();
    let resources = pods.spec.as_mut().unwrap().containers[0].resources.as_mut().unwrap();
    resources.requests.as_mut().unwrap().get_mut("nvidia.com/gpu").unwrap().0 = "many".to_owned();
    let object = json!({"metadata": {"name": "vllm", "namespace": "ml"},
        "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pods}}});
    let error = leader_worker_set(&serde_json::from_value(object).unwrap()).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "LeaderWorkerSet ml/vllm: spec.leaderWorkerTemplate.workerTemplate.spec.containers[0]"
        ),
        "{error}"
    );
}
