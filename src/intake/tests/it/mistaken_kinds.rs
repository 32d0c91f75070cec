//! Tests of kinds that do not exist, and of kinds of other projects with the name of a kind that is read.

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{apps, ending, object, read, refused, stored, template};

/// Returns the problems of objects whose kinds were mistaken.
fn mistaken(manifest: &Manifest) -> Vec<String> {
    manifest.mistaken.iter().map(ToString::to_string).collect()
}

fn makes_pods(version: &str, kind: &str) -> Value {
    object(version, kind, "a", json!({"replicas": 1, "template": template()}))
}

#[test]
fn a_misspelt_kind_is_known_as_such_and_lacks_its_pods() {
    for (version, kind, hint) in [
        ("apps/v1", "Deploymnt", "did you mean Deployment?"),
        ("v1", "Deployment", "Deployment belongs to apps/v1; correct apiVersion"),
        ("extensions/v1beta1", "Deployment", "Deployment belongs to apps/v1; correct apiVersion"),
        ("app/v1", "Deployment", "Deployment belongs to the group apps; correct apiVersion"),
        ("kubeflow.org/v1", "PyTorchJb", "did you mean PyTorchJob?"),
        ("kubeflow.or/v1", "PyTorchJob", "PyTorchJob belongs to the group kubeflow.org; correct apiVersion"),
        ("ray.io/v1", "RayClustr", "did you mean RayCluster?"),
        ("jobset.x-k8s.io/v1alpha2", "JobSets", "did you mean JobSet?"),
        ("sparkoperator.k8s.io/v1beta2", "SparkAplication", "did you mean SparkApplication?"),
    ] {
        let manifest = read(&[makes_pods(version, kind)]);
        let told = format!("{kind} default/a: {version} {kind} is not read; {hint}");
        assert_eq!(manifest.notes, [told.as_str()]);
        assert_eq!(mistaken(&manifest), [format!("all.json: {told}")]);
        assert_eq!(manifest.unread, [format!("{kind} default/a")], "its pods are missing");
        assert!(!manifest.asks_for_nodes());
    }
}

#[test]
fn a_written_object_of_a_version_that_api_servers_have_no_more_names_the_version_to_write() {
    let spec = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": ending()}}});
    let cron_job = |version: &str| object(version, "CronJob", "c", spec.clone());
    for version in ["batch/v1beta1", "batch/v2alpha1", "v1"] {
        let hint = format!("{version} CronJob is not read; CronJob belongs to batch/v1; correct apiVersion");
        assert_eq!(
            mistaken(&read(&[cron_job(version)])),
            [format!("all.json: CronJob default/c: {hint}")],
            "{version}"
        );
    }
    assert_eq!(mistaken(&read(&[cron_job("batch/v1")])), [""; 0]);
    assert_eq!(mistaken(&read(&[stored(cron_job("batch/v1beta1"), None)])), [""; 0], "an old cluster has it");
    for (version, kind, now) in [
        ("apps/v1beta2", "Deployment", "apps/v1"),
        ("policy/v1beta1", "PodDisruptionBudget", "policy/v1"),
        ("scheduling.k8s.io/v1beta1", "PriorityClass", "scheduling.k8s.io/v1"),
        ("storage.k8s.io/v1beta1", "CSINode", "storage.k8s.io/v1"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "autoscaling/v2"),
    ] {
        let found = refused(&object(version, kind, "a", json!({})));
        let told = format!("apiVersion: version `{version}` of this kind is not read; use `{now}`");
        assert!(found.iter().any(|one| one.ends_with(&told)), "{told} is not in {found:#?}");
    }
}

#[test]
fn kinds_of_the_api_server_itself_that_make_no_pods_get_no_note() {
    for (version, kind) in [
        ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"),
        ("internal.apiserver.k8s.io/v1alpha1", "StorageVersion"),
        ("storagemigration.k8s.io/v1beta1", "StorageVersionMigration"),
        ("extensions/v1beta1", "Ingress"),
    ] {
        let made = object(version, kind, "a", json!({}));
        for manifest in [read(std::slice::from_ref(&made)), read(&[stored(made.clone(), None)])] {
            assert_eq!(manifest.notes, [""; 0], "{kind}");
        }
    }
}

#[test]
fn a_kind_of_another_project_is_not_mistaken_for_one_that_has_its_name() {
    for (version, kind) in [
        ("serving.knative.dev/v1", "Service"),
        ("apps.kruise.io/v1alpha1", "DaemonSet"),
        ("apps.kruise.io/v1beta1", "StatefulSet"),
    ] {
        let manifest = read(&[makes_pods(version, kind)]);
        assert_eq!(
            (mistaken(&manifest).len(), manifest.services.len(), manifest.daemonsets.len()),
            (0, 0, 0)
        );
        assert_eq!(manifest.unread, [format!("{kind} default/a")]);
        let told = format!(
            "{kind} default/a: {version} {kind} is not read, so the pods that it makes are not planned"
        );
        assert!(manifest.notes[0].starts_with(&told), "{:?}", manifest.notes);
    }
    for (version, kind) in [("example.com/v1", "PodGroup"), ("longhorn.io/v1beta2", "Node")] {
        let manifest = read(&[object(version, kind, "a", json!({}))]);
        assert_eq!(
            (mistaken(&manifest).len(), manifest.nodes.len(), manifest.pod_groups.len()),
            (0, 0, 0),
            "{kind}"
        );
    }
    let class = json!({"apiVersion": "example.com/v1", "kind": "StorageClass", "metadata": {"name": "fast",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "x"});
    assert!(read(&[class]).storage_classes.is_empty());
}

#[test]
fn what_an_api_server_has_stored_exists_whatever_its_name() {
    let manifest = read(&[stored(makes_pods("kubeflow.org/v1", "PyTorchJb"), None)]);
    assert_eq!(mistaken(&manifest), [""; 0]);
    assert!(!manifest.notes[0].contains("did you mean"), "{:?}", manifest.notes);
}

#[test]
fn a_manifest_asks_for_nodes_if_it_has_pods_or_what_makes_them() {
    assert!(read(&[apps("Deployment", "web", 1)]).asks_for_nodes());
    assert!(read(&[apps("Deployment", "web", 0)]).asks_for_nodes(), "it was read, and has no pods now");
    let mut set = apps("DaemonSet", "agent", 1);
    set["spec"]["replicas"] = Value::Null;
    assert!(read(&[set]).asks_for_nodes());
    let others = [object("v1", "Service", "s", json!({})), object("v1", "Node", "n", json!({}))];
    assert!(!read(&others).asks_for_nodes());
}
