//! Tests that nothing follows from an object that a ResourceQuota refuses, and that one note says so.

use std::collections::BTreeSet;

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{apps, ending, has, names, object, read, stored, template};

/// A quota that allows no object of this entry.
fn none_of(entry: &str) -> Value {
    object("v1", "ResourceQuota", "team", json!({"hard": {entry: "0"}}))
}

/// The note that an object cannot be created, with what follows.
fn note(name: &str, and: &str, entry: &str, next: &str) -> String {
    format!(
        "{name}: it cannot be created{and}, because ResourceQuota `team` allows no more {entry}: it limits them to 0, 0 are in use, and \
         this asks for 1; raise the quota to {next}"
    )
}

fn not_created(manifest: &Manifest) -> Vec<&str> {
    manifest.not_created.iter().map(String::as_str).collect()
}

fn runtime(kind: &str, namespace: Option<&str>) -> Value {
    let job = json!({"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}});
    let replicated = json!([{"name": "node", "template": {"spec": job}}]);
    let spec = json!({"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": replicated}}});
    let mut runtime = object("trainer.kubeflow.org/v1alpha1", kind, "torch", spec);
    if let Some(namespace) = namespace {
        runtime["metadata"]["namespace"] = json!(namespace);
    }
    runtime
}

/// A TrainJob with two pods.
fn train_job(kind: &str) -> Value {
    let spec = json!({"runtimeRef": {"kind": kind, "name": "torch"}, "trainer": {"numNodes": 2}});
    object("trainer.kubeflow.org/v1alpha1", "TrainJob", "llm", spec)
}

#[test]
fn a_runtime_that_a_quota_refuses_serves_no_train_job() {
    let entry = "count/trainingruntimes.trainer.kubeflow.org";
    let read_with =
        |quota: Value| read(&[train_job("TrainingRuntime"), runtime("TrainingRuntime", None), quota]);
    assert_eq!(read_with(none_of("count/secrets")).pods.len(), 2);
    let manifest = read_with(none_of(entry));
    assert_eq!(names(&manifest), [""; 0]);
    assert_eq!(manifest.unread, ["TrainJob default/llm"], "its pods are missing");
    assert_eq!(
        manifest.notes,
        [
            note("TrainingRuntime default/torch", "", entry, "create it"),
            "TrainJob default/llm: TrainingRuntime default/torch cannot be created, so the pods that it makes from that runtime are not \
             planned; raise the quota to plan them"
                .to_owned(),
        ]
    );
}

#[test]
fn a_runtime_of_a_namespace_serves_only_train_jobs_there_and_one_of_the_cluster_counts_to_no_quota() {
    let elsewhere = read(&[train_job("TrainingRuntime"), runtime("TrainingRuntime", Some("other"))]);
    assert_eq!(names(&elsewhere), [""; 0]);
    let kind = "ClusterTrainingRuntime";
    let quota = none_of("count/clustertrainingruntimes.trainer.kubeflow.org");
    let manifest = read(&[quota, train_job(kind), runtime(kind, None)]);
    assert_eq!((manifest.pods.len(), not_created(&manifest).len()), (2, 0), "{:?}", manifest.notes);
}

#[test]
fn a_limit_range_that_a_quota_refuses_changes_no_pod() {
    let limits = || {
        let defaults = json!({"type": "Container", "defaultRequest": {"cpu": "3"}, "default": {"cpu": "3"}});
        object("v1", "LimitRange", "usual", json!({"limits": [defaults]}))
    };
    // The quota comes last in the file.
    let cpu = |quota: Value| {
        let manifest = read(&[limits(), apps("Deployment", "web", 1), quota]);
        (manifest.pods[0].spec.requests.get("cpu"), manifest.notes)
    };
    assert_eq!(cpu(none_of("count/secrets")), (3000, Vec::new()));
    let told = note("LimitRange default/usual", "", "count/limitranges", "create it");
    assert_eq!(cpu(none_of("count/limitranges")), (0, vec![told]));
}

#[test]
fn a_pod_is_not_created_without_its_service_account() {
    let account = || json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner"}});
    let web = |field: &str, account: &str| {
        let mut web = apps("Deployment", "web", 2);
        web["spec"]["template"]["spec"][field] = json!(account);
        web
    };
    let entry = "count/serviceaccounts";
    for field in ["serviceAccountName", "serviceAccount"] {
        let manifest = read(&[web(field, "runner"), account(), none_of(entry)]);
        assert_eq!((names(&manifest), manifest.refused[0].pods), (Vec::new(), 2), "{:?}", manifest.notes);
        assert_eq!(not_created(&manifest), ["ServiceAccount default/runner"]);
        let why = "its ServiceAccount `runner` cannot be created: ResourceQuota `team` allows no more count/serviceaccounts";
        assert!(manifest.notes.iter().any(|note| note.contains(why)), "{:?}", manifest.notes);
    }
    // An account that the files lack is most likely there, and so is one that an API server has stored.
    assert_eq!(read(&[web("serviceAccountName", "other"), account(), none_of(entry)]).pods.len(), 2);
    let there = stored(account(), None);
    assert_eq!(read(&[web("serviceAccountName", "runner"), there, none_of(entry)]).pods.len(), 2);
}

#[test]
fn objects_beside_pods_have_no_effect_if_a_quota_refuses_them() {
    let selector = json!({"matchLabels": {"app": "web"}});
    let gang = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let all = [
        ("services", object("v1", "Service", "a", json!({"selector": {"app": "web"}, "clusterIP": "None"}))),
        (
            "count/poddisruptionbudgets.policy",
            object("policy/v1", "PodDisruptionBudget", "a", json!({"minAvailable": 1, "selector": selector})),
        ),
        ("count/podgroups.scheduling.k8s.io", object("scheduling.k8s.io/v1alpha2", "PodGroup", "a", gang)),
        (
            "count/daemonsets.apps",
            object("apps/v1", "DaemonSet", "a", json!({"selector": selector, "template": template()})),
        ),
    ];
    let effects = |manifest: &Manifest| {
        manifest.services.len()
            + manifest.budgets.len()
            + manifest.pod_groups.len()
            + manifest.daemonsets.len()
    };
    for (entry, one) in all {
        assert_eq!(effects(&read(&[one.clone(), none_of("count/secrets")])), 1, "{entry}");
        let kind = one["kind"].as_str().expect("a kind").to_owned();
        let manifest = read(&[one, none_of(entry)]);
        assert_eq!(effects(&manifest), 0, "{entry}");
        let name = format!("{kind} default/a");
        let is_set = kind == "DaemonSet";
        let (and, next) =
            if is_set { (" and its pods are not planned", "plan them") } else { ("", "create it") };
        assert_eq!(manifest.notes, [note(&name, and, entry, next)]);
        assert_eq!(manifest.not_created, BTreeSet::from([name]));
        // Nobody knows how many pods a DaemonSet would have.
        let pods: Vec<usize> = manifest.refused.iter().map(|refused| refused.pods).collect();
        assert_eq!(pods, vec![0; usize::from(is_set)]);
    }
}

#[test]
fn an_object_that_is_not_read_has_one_note_if_a_quota_refuses_it_and_its_pods_count_as_refused() {
    let scaled = object(
        "keda.sh/v1alpha1",
        "ScaledObject",
        "a",
        json!({"minReplicaCount": 3, "scaleTargetRef": {"name": "web"}}),
    );
    let entry = "count/scaledobjects.keda.sh";
    let manifest = read(&[scaled, none_of(entry)]);
    assert_eq!(manifest.notes, [note("ScaledObject default/a", "", entry, "create it")]);
    assert!(manifest.refused.is_empty() && manifest.unread.is_empty());

    let trainer = object("example.com/v1", "Trainer", "a", json!({"template": ending()}));
    let entry = "count/trainers.example.com";
    let manifest = read(&[trainer, none_of(entry)]);
    let told = note("Trainer default/a", " and its pods are not planned", entry, "plan them");
    assert!(has(&manifest, &told) && manifest.notes.len() == 1, "{:?}", manifest.notes);
    assert_eq!((manifest.refused.len(), manifest.unread.len()), (1, 0));
}
