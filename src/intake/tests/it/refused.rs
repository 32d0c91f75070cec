//! Tests which pods of a cluster count as refused by its API server.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Event;
use poolwright_intake::manifest::RefusedPods;
use poolwright_intake::refused::{
    Refusals, of_job, of_replica_set, of_replication_controller, of_stateful_set,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const QUOTA: &str = "Error creating: pods \"x\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1";

fn read<T: DeserializeOwned>(object: Value) -> T {
    serde_json::from_value(object).expect("an object")
}

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

/// A controller of this UID in the namespace `ml` that wants three pods.
fn controller(uid: &str, spec: Value, status: Value) -> Value {
    let mut object =
        json!({"metadata": {"name": "train", "namespace": "ml", "uid": uid}, "spec": spec, "status": status});
    object["spec"]["template"] = json!({"spec": {"containers": [{"image": "x", "name": "a"}]}});
    object["spec"]["selector"] = json!({"matchLabels": {"app": "train"}});
    object
}

fn job(status: Value) -> Value {
    controller("u", json!({"parallelism": 3, "completions": 9}), status)
}

/// The refusals that events show: the UID of each controller, the minutes since then, and the message.
fn refusals(events: &[(&str, i64, &str)]) -> Refusals {
    let event = |(uid, ago, message): &(&str, i64, &str)| {
        let at = now() - SignedDuration::from_mins(*ago);
        read::<Event>(
            json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Job", "uid": uid}, "reason": "FailedCreate",
            "message": message, "lastTimestamp": at.to_string()}),
        )
    };
    Refusals::of(&events.iter().map(event).collect::<Vec<_>>(), now())
}

fn pods(refused: Option<(RefusedPods, String)>) -> Option<usize> {
    refused.map(|(refused, _)| refused.pods)
}

#[test]
fn the_pods_that_a_set_with_a_failure_lacks_are_refused() {
    let status = |failure: &str| {
        json!({"replicas": 1, "conditions": [{"type": "ReplicaFailure", "status": failure, "reason": "FailedCreate",
            "message": "exceeded quota: team."}]})
    };
    let set = |failure: &str| controller("u", json!({"replicas": 3}), status(failure));
    let (refused, note) = of_replica_set(&read(set("True"))).expect("two pods");
    let object = "ReplicaSet ml/train".to_owned();
    assert_eq!(refused, RefusedPods { object, namespace: "ml".to_owned(), pods: 2 });
    let end = "the API server refuses more of its pods (ReplicaFailure: exceeded quota: team)";
    assert_eq!(note, format!("ReplicaSet ml/train: {end}"));
    assert_eq!(pods(of_replica_set(&read(set("False")))), None);

    let mut deleted = set("True");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:00:00Z");
    assert_eq!(pods(of_replica_set(&read(deleted))), None, "it makes no more pods");
    let mut whole = set("True");
    whole["status"]["replicas"] = json!(3);
    assert_eq!(pods(of_replica_set(&read(whole))), None, "it lacks none");
    let mut controller = set("True");
    controller["spec"]["selector"] = json!({"app": "train"});
    assert_eq!(pods(of_replication_controller(&read(controller))), Some(2));
}

#[test]
fn the_pods_that_a_job_or_a_stateful_set_lacks_are_refused_if_the_last_event_says_so() {
    let both = |status: Value, refusals: &Refusals| {
        let set = controller("u", json!({"replicas": 3, "serviceName": "train"}), json!({"replicas": 1}));
        (pods(of_job(&read(job(status)), refusals)), pods(of_stateful_set(&read(set), refusals)))
    };
    let active = || json!({"active": 1});
    let by_quota = refusals(&[("u", 3, QUOTA)]);
    assert_eq!(both(active(), &by_quota), (Some(2), Some(2)));
    let (_, note) = of_job(&read(job(active())), &by_quota).expect("two pods");
    assert_eq!(
        note,
        format!("Job ml/train: the API server refuses more of its pods (FailedCreate: {QUOTA})")
    );
    assert_eq!(both(json!({"active": 3}), &by_quota).0, None, "it has all of its pods by now");
    assert_eq!(
        both(json!({"active": 1, "conditions": [{"type": "Suspended", "status": "True"}]}), &by_quota).0,
        None
    );

    let webhook =
        "create Pod db-0 in StatefulSet db failed error: admission webhook \"x\" denied the request: no";
    assert_eq!(both(active(), &refusals(&[("u", 3, webhook)])), (Some(2), Some(2)));
    assert_eq!(both(active(), &refusals(&[("other", 3, QUOTA)])), (None, None), "another controller");
    assert_eq!(both(active(), &refusals(&[("u", 45, QUOTA)])), (None, None), "it was tried again since then");
    let timeout = "Error creating: Timeout: request did not complete within the allotted duration";
    assert_eq!(both(active(), &refusals(&[("u", 3, timeout)])), (None, None), "no rule refuses the pod");
    for events in [[("u", 9, QUOTA), ("u", 3, timeout)], [("u", 3, timeout), ("u", 9, QUOTA)]] {
        assert_eq!(both(active(), &refusals(&events)), (None, None), "the newest event counts");
    }
}
