//! Tests of kinds that do not exist, and of kinds of other projects with the name of a kind that is read.

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{apps, object, read, stored, template};

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
    for (version, kind) in [("scheduling.x-k8s.io/v1alpha1", "PodGroup"), ("longhorn.io/v1beta2", "Node")] {
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
