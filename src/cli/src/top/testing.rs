//! Test clusters for the view.

use jiff::Timestamp;
use poolwright_terms::keys::REPORTING_CONTROLLER;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::model::{self, Reading};
use super::view::{NodeRow, View};

/// The time of the reading.
pub const NOW: &str = "2026-03-01T12:00:00Z";

pub fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// Parses objects as the API server writes them.
pub fn objects<T: DeserializeOwned>(all: Vec<Value>) -> Vec<T> {
    all.into_iter().map(|object| serde_json::from_value(object).unwrap()).collect()
}

/// Returns the reading of an empty cluster.
pub fn nothing() -> Reading {
    Reading {
        at: now(),
        pools: Ok(vec![]),
        claims: Ok(vec![]),
        nodes: Ok(vec![]),
        pods: Ok(vec![]),
        events: Ok(vec![]),
        leases: Ok(vec![]),
    }
}

pub fn pool(name: &str, spec: Value, conditions: &[(&str, &str, &str)]) -> Value {
    let mut pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": name},
        "spec": {"template": {"spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": name}}}},
        "status": {"conditions": conditions_of(conditions)}});
    for (key, value) in spec.as_object().unwrap() {
        pool["spec"][key] = value.clone();
    }
    pool
}

fn conditions_of(all: &[(&str, &str, &str)]) -> Value {
    let one = |(kind, status, message): &(&str, &str, &str)| {
        json!({"type": kind, "status": status, "reason": "Because", "message": message,
            "lastTransitionTime": "2026-03-01T11:59:00Z"})
    };
    all.iter().map(one).collect()
}

/// Returns a claim of a g5.xlarge with these conditions. If `Launched` is true, it has an instance; if `Registered` is true, it
/// has the node of the same name.
pub fn claim(name: &str, pool: &str, conditions: &[(&str, &str, &str)]) -> Value {
    let is = |kind: &str| conditions.iter().any(|(one, status, _)| *one == kind && *status == "True");
    let mut claim = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim",
        "metadata": {"name": name, "uid": name, "labels": {"poolwright.dev/nodepool": pool},
            "annotations": {"poolwright.dev/reason": "it is the cheapest for 1 pod."},
            "creationTimestamp": "2026-03-01T11:58:00Z"},
        "spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": pool},
            "offerings": [{"instanceType": "g5.xlarge", "zone": "us-east-1a", "capacityType": "on-demand",
                "usdPerHour": "1.006", "allocatable": {"cpu": "3920m", "nvidia.com/gpu": "1"}}]},
        "status": {"conditions": conditions_of(conditions)}});
    if is("Launched") {
        claim["status"]["providerID"] = json!(format!("kwok://{name}"));
        claim["status"]["price"] = json!({"usdPerHour": "1.006", "source": "catalogue"});
    }
    if is("Registered") {
        claim["status"]["nodeName"] = json!(name);
    }
    claim
}

/// Returns the claim as deleted.
pub fn deleted(mut claim: Value) -> Value {
    claim["metadata"]["deletionTimestamp"] = json!("2026-03-01T11:59:30Z");
    claim["metadata"]["finalizers"] = json!(["poolwright.dev/termination"]);
    claim
}

pub fn node(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"providerID": format!("kwok://{name}")},
        "status": {"allocatable": {"cpu": "3920m", "nvidia.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": "True"}]}})
}

/// Returns a pod that requests a GPU, on a node or waiting.
pub fn pod(name: &str, node: Option<&str>) -> Value {
    let mut pod = json!({"metadata": {"name": name, "namespace": "ml", "uid": name},
        "spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"},
            "limits": {"nvidia.com/gpu": "1"}}}]},
        "status": {"phase": "Pending"}});
    if let Some(node) = node {
        pod["spec"]["nodeName"] = json!(node);
        pod["status"]["phase"] = json!("Running");
    }
    pod
}

/// Returns a pod for which the scheduler found no node.
pub fn unschedulable(name: &str) -> Value {
    let mut pod = pod(name, None);
    pod["status"]["conditions"] = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes", "lastTransitionTime": "2026-03-01T11:59:50Z"}]);
    pod
}

/// Returns a pod with a closed scheduling gate.
pub fn gated(name: &str) -> Value {
    let mut pod = pod(name, None);
    pod["spec"]["schedulingGates"] = json!([{"name": "example.com/quota"}]);
    pod["status"]["conditions"] =
        json!([{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]);
    pod
}

pub fn event(time: &str, kind: &str, name: &str, note: &str) -> Value {
    let namespace = if kind == "Pod" { json!("ml") } else { Value::Null };
    json!({"metadata": {"name": format!("{name}.1"), "namespace": "default"}, "eventTime": time,
        "reportingController": REPORTING_CONTROLLER, "type": if kind == "Pod" { "Warning" } else { "Normal" },
        "reason": "Said", "note": note, "regarding": {"kind": kind, "name": name, "namespace": namespace}})
}

pub fn lease(holder: &str, renewed: &str) -> Value {
    json!({"metadata": {"name": "poolwright-controller", "namespace": "poolwright"},
        "spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}})
}

pub const UP: [(&str, &str, &str); 3] =
    [("Launched", "True", "runs"), ("Registered", "True", "joined"), ("Initialized", "True", "is ready")];

/// Returns the conditions of an open node, and more.
pub fn up(
    more: &[(&'static str, &'static str, &'static str)],
) -> Vec<(&'static str, &'static str, &'static str)> {
    UP.iter().chain(more).copied().collect()
}

/// Returns the reading of a cluster in which everything happens at once.
pub fn reading() -> Reading {
    let ready = [("Ready", "True", "all is well")];
    let mut unknown = claim("gpu-old", "gpu", &up(&[]));
    unknown["status"]["price"] = Value::Null;
    unknown["metadata"]["creationTimestamp"] = json!("2026-02-25T12:00:00Z");
    let refused = [("Launched", "False", "g5.xlarge is out of stock in us-east-1a; the next is tried")];
    let closed = [
        ("Registered", "True", ""),
        ("Launched", "True", ""),
        ("Initialized", "False", "node gpu-c is not ready"),
    ];
    let drained = ("Drained", "False", "node gpu-e still runs 1 pod (ml/e); eviction is under way");
    let leaves = ("Disrupting", "True", "its work costs $0.5000/h less elsewhere");
    let terminating =
        ("InstanceTerminating", "True", "no work is left on its node; its instance is being terminated");
    Reading {
        pools: Ok(objects(vec![
            pool("cpu", json!({}), &[("Ready", "False", "node class `cpu` does not exist")]),
            pool("gpu", json!({"weight": 10, "limits": {"nodes": 10, "usdPerHour": "40"}}), &ready),
            pool("idle", json!({}), &ready),
        ])),
        claims: Ok(objects(vec![
            claim("gpu-a", "gpu", &refused),
            claim("gpu-b", "gpu", &[("Launched", "True", "runs")]),
            claim("gpu-c", "gpu", &closed),
            claim("cpu-d", "cpu", &up(&[("Unhealthy", "True", "condition GpuHealthy=False of node cpu-d")])),
            deleted(claim("gpu-e", "gpu", &up(&[leaves, drained]))),
            deleted(claim("gpu-f", "gpu", &up(&[terminating]))),
            claim("gpu-g", "gpu", &up(&[leaves])),
            unknown,
        ])),
        nodes: Ok(objects(
            ["gpu-c", "cpu-d", "gpu-e", "gpu-f", "gpu-g", "gpu-old", "somebodys"].map(node).to_vec(),
        )),
        pods: Ok(objects(vec![
            pod("e", Some("gpu-e")),
            pod("old", Some("gpu-old")),
            pod("new", None),
            unschedulable("large"),
            unschedulable("larger"),
            gated("held"),
        ])),
        events: Ok(objects(vec![
            event("2026-03-01T11:59:10.000000Z", "NodeClaim", "gpu-b", "g5.xlarge runs as kwok://gpu-b"),
            event(
                "2026-03-01T11:59:55.000000Z",
                "Pod",
                "large",
                "no offering fits\nPod ml/large asks for 1 GPU.",
            ),
        ])),
        leases: Ok(objects(vec![lease("poolwright-0", "2026-03-01T11:59:57.000000Z")])),
        ..nothing()
    }
}

/// Returns the view of a cluster with all namespaces.
pub fn view(cluster: &str, reading: &Reading) -> View {
    model::view(cluster, reading, None)
}

/// Returns the view of this cluster.
pub fn busy() -> View {
    view("prod", &reading())
}

pub fn names(rows: &[&NodeRow]) -> Vec<String> {
    rows.iter().map(|row| row.name.clone()).collect()
}
