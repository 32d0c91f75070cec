//! Tests what TrainJobs report about the time that they still need.

use poolwright_core::Pod;
use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{object, read};

/// Reads a TrainJob of one initializer and one trainer, whose trainer reports this.
fn with(status: Value) -> Manifest {
    let replicated = |name: &str| {
        let pods = json!({"spec": {"containers": [{"name": name, "image": "x"}]}});
        json!({"name": name, "template": {"spec": {"template": pods}}})
    };
    let version = "trainer.kubeflow.org/v1alpha1";
    let jobs = [replicated("dataset-initializer"), replicated("node")];
    let spec = json!({"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": jobs}}});
    let runtime = object(version, "ClusterTrainingRuntime", "torch", spec);
    let mut job = object(version, "TrainJob", "llm", json!({"runtimeRef": {"name": "torch"}}));
    job["status"] = json!({"trainerStatus": status});
    read(&[runtime, job])
}

/// Returns what each pod knows of the report: its time, and the seconds that were left.
fn left(manifest: &Manifest) -> Vec<(String, Option<(String, i64)>)> {
    let of = |pod: &Pod| {
        let reported = pod.duration.reported;
        (
            pod.key.name().into_owned(),
            reported.map(|reported| (reported.at.to_string(), reported.left.as_secs())),
        )
    };
    manifest.pods.iter().map(of).collect()
}

#[test]
fn pods_of_a_train_job_know_how_much_longer_its_trainer_says_that_it_runs() {
    let at = "2026-01-01T00:00:00Z";
    let manifest = with(json!({"estimatedRemainingSeconds": 3600, "lastUpdatedTime": at}));
    let known = [
        ("llm-dataset-initializer-0-0".to_owned(), None),
        ("llm-node-0-0".to_owned(), Some((at.to_owned(), 3600))),
    ];
    assert_eq!(left(&manifest), known, "the initializer ends before");
    assert!(manifest.notes.is_empty(), "{:?}", manifest.notes);
}

#[test]
fn a_report_that_cannot_be_read_is_named_and_one_without_a_time_is_none() {
    let nobody = |manifest: &Manifest| left(manifest).iter().all(|(_, known)| known.is_none());
    for wrong in [
        json!({"estimatedRemainingSeconds": -1, "lastUpdatedTime": "2026-01-01T00:00:00Z"}),
        json!({"estimatedRemainingSeconds": 60}),
    ] {
        let manifest = with(wrong);
        assert!(nobody(&manifest));
        let told = |note: &String| note.starts_with("TrainJob default/llm: ignored status.trainerStatus: ");
        assert!(manifest.notes.iter().any(told), "{:?}", manifest.notes);
    }
    let manifest = with(json!({"progressPercentage": 45}));
    assert!(nobody(&manifest) && manifest.notes.is_empty(), "{:?}", manifest.notes);
}
