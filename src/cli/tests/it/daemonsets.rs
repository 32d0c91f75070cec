//! Tests what plans say of DaemonSets: whose pods are larger than their templates, and what namespaces add to their pods.

use serde_json::{Value, json};

use crate::api::{Request, kubeconfig, list, serve};
use crate::support::{notes, plan, poolwright};

const LARGER: &str =
    "DaemonSet ops/agent: its pods ask for more than its template; new nodes have room for such pods";

fn asks(cpu: &str) -> Value {
    json!({"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]})
}

fn agent() -> Value {
    let labels = json!({"app": "agent"});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "ops", "uid": "u1"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": asks("100m")}}})
}

/// A pod of the DaemonSet with more than its template, on a node.
fn real(name: &str) -> Value {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u1", "controller": true}]);
    let mut spec = asks("1600m");
    spec["nodeName"] = json!("n1");
    json!({"apiVersion": "v1", "kind": "Pod", "spec": spec, "status": {"phase": "Running"},
        "metadata": {"name": name, "namespace": "ops", "uid": name, "labels": {"app": "agent"}, "ownerReferences": owner}})
}

fn node() -> Value {
    let size = json!({"cpu": "2", "memory": "14Gi", "pods": "58"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
        "status": {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}})
}

fn work() -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "work", "namespace": "ml"}, "spec": asks("3")})
}

fn items(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

#[test]
fn the_pods_of_a_daemonset_count_by_their_controller_whatever_their_names_are() {
    let small = plan(&["-f", "-"], &items(&[node(), agent(), work()]));
    let usual = plan(&["-f", "-"], &items(&[node(), agent(), real("agent-x7k2p"), work()]));
    assert_ne!(usual["nodes"][0]["instanceType"], small["nodes"][0]["instanceType"], "{usual}");
    for name in ["agent-x", "agent-node1"] {
        let planned = plan(&["-f", "-"], &items(&[node(), agent(), real(name), work()]));
        assert_eq!(planned["nodes"], usual["nodes"], "{name}");
        assert!(notes(&planned).contains(LARGER), "{name}: {planned}");
    }
    assert!(!notes(&small).contains(LARGER), "{small}");
}

#[test]
fn pods_of_existing_nodes_size_the_daemonsets_of_the_files() {
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("daemonsets-existing.json");
    std::fs::write(&file, items(&[node(), real("agent-x")])).expect("a file in cargo's folder for tests");
    let args = ["-f", "-", "--existing", file.to_str().expect("UTF-8")];
    assert!(notes(&plan(&args, &items(&[agent(), work()]))).contains(LARGER));
}

/// A cluster with the DaemonSet in a namespace that adds a node selector.
fn cluster(request: &Request) -> (u16, Value) {
    let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": "pool=gpu"});
    match request.path.split('?').next().unwrap_or_default() {
        "/api/v1/pods" => list(&[real("agent-x")]),
        "/api/v1/nodes" => list(&[node()]),
        "/api/v1/namespaces" => list(&[json!({"metadata": {"name": "ops", "annotations": annotations}})]),
        "/apis/apps/v1/daemonsets" => list(&[agent()]),
        _ => list(&[]),
    }
}

#[test]
fn a_plan_of_a_cluster_says_of_its_daemonsets_and_namespaces_what_one_of_files_says() {
    let kubeconfig = kubeconfig("daemonsets", serve(cluster));
    let args = ["plan", "-o", "json", "--kubeconfig", kubeconfig.to_str().expect("UTF-8")];
    let output = poolwright(&args, "");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let told = notes(&serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}")));
    let added = "Namespace ops: by its annotations, its new pods get the node selector pool=gpu, if the API server runs PodNodeSelector";
    for note in [LARGER, added] {
        assert!(told.contains(note), "{told}");
    }
}
