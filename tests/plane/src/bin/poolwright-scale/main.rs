//! Measures what a large cluster costs the controller: memory, and time from a change to a decision.
//!
//! Creates `NODES` nodes and `PODS` pods on them through the API of a real etcd and kube-apiserver. No kubelet, scheduler or KWOK
//! runs: two cores could not carry that many, and the controller cannot tell who writes the objects. Then makes `CHANGES` rounds
//! of changes, one after the other: a pod waits and is bound, an old pod goes, a node becomes not ready and ready again, another
//! node goes.

#![expect(clippy::disallowed_methods, reason = "measuring time is what this program is for")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Binding, Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use poolwright_plane::measurement::{self, Times, peak_mib, resident_mib};
use poolwright_plane::trial::{Controller, node_class, node_pool};
use poolwright_plane::{ControlPlane, Options, apply, install_crds, wait_for};
use serde_json::{Value, json};

/// The number of concurrent calls to the API server.
const CONCURRENCY: usize = 32;
const WITHIN: Duration = Duration::from_mins(10);
/// The goals for a large cluster: memory, and the 99th percentile of the time from a change to a decision.
const MOST_MIB: u64 = 400;
const MOST_SECONDS: f64 = 0.05;

#[tokio::main]
async fn main() -> ExitCode {
    measurement::end(measure().await)
}

/// Runs the measurement. Returns whether the goals were reached.
async fn measure() -> anyhow::Result<bool> {
    let (nodes, pods) = (measurement::variable("NODES", 5_000)?, measurement::variable("PODS", 50_000)?);
    let changes = measurement::variable("CHANGES", 100)?;
    let plane = ControlPlane::start(Options::api_server_only()).await?;
    let client = plane.client()?;
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await?;
    for object in [node_class("scale", json!({})), node_pool("scale", json!({}))] {
        apply(&client, "", &object.to_string()).await?;
    }
    let began = Instant::now();
    fill(&client, nodes, pods).await?;
    println!("{nodes} nodes and {pods} pods created in {:.0} s", began.elapsed().as_secs_f64());
    let mut controller = Controller::start(&plane, "controller", &[])?;
    let began = Instant::now();
    wait_for("the controller to lead and to have listed everything", WITHIN, async || {
        controller.ensure_running()?;
        for kind in ["Pod", "Node", "NodePool", "NodeClaim"] {
            let synced = controller.metric(&format!("poolwright_watch_synced{{kind=\"{kind}\"}}")).await?;
            ensure!(synced > 0.0, "{kind} is not listed");
        }
        let plans = controller.metric("poolwright_plan_duration_seconds_count").await?;
        ensure!(plans > 0.0, "nothing is planned");
        Ok(())
    })
    .await?;
    let pid = controller.process().id();
    println!("listed and planned once after {:.1} s; {}", began.elapsed().as_secs_f64(), memory(pid)?);
    change(&client, &controller, nodes, changes).await?;
    println!("after {} changes; {}", 6 * changes, memory(pid)?);
    let mut reached = peak_mib(pid)? <= MOST_MIB;
    for (what, name) in [
        ("from an object to the index", "poolwright_index_duration_seconds"),
        ("from a snapshot to decisions about claims", "poolwright_decision_duration_seconds"),
        ("from a snapshot to a plan", "poolwright_plan_duration_seconds"),
    ] {
        let Times { count, mean, p99 } = Times::of(&controller, name).await?;
        reached &= p99 <= MOST_SECONDS;
        println!("{what:<44} {count:>7} times, mean {:8.3} ms, p99 <= {:8.3} ms", mean * 1e3, p99 * 1e3);
    }
    let goal = format!("at most {MOST_MIB} MiB, p99 of each at most {:.0} ms", MOST_SECONDS * 1e3);
    println!("Goal ({goal}): {}", if reached { "reached" } else { "missed" });
    Ok(reached)
}

fn node(at: usize) -> Value {
    let name = format!("node-{at:05}");
    let zone = ["a", "b", "c", "d"][at % 4];
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": "us-east-1", "topology.kubernetes.io/zone": format!("us-east-1{zone}"),
            "node.kubernetes.io/instance-type": "m5.4xlarge", "karpenter.sh/capacity-type": "on-demand",
        }},
        "spec": {"providerID": format!("fake:///{name}"), "podCIDR": "10.0.0.0/24"},
        "status": {
            "allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"},
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "100Gi"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

/// Returns a pod as a Deployment makes it. The rules are mixed as in the planner's benchmark, each for a fifth of the pods.
fn pod(name: &str, at: usize, node: Option<&str>) -> Value {
    let app = format!("app-{}", at % 200);
    let labels = json!({"app": app, "pod-template-hash": format!("{:08x}", at % 200), "team": "x"});
    let selector = json!({"matchLabels": {"app": app}});
    let mut spec = json!({
        "containers": [{
            "name": "main", "image": "registry.example/team/service:1.2.3",
            "env": [{"name": "LOG", "value": "info"}, {"name": "REGION", "value": "us-east-1"}],
            "resources": {"requests": {"cpu": "250m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
        }],
    });
    let term = |key: &str| json!({"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": selector}]});
    let spread = |key: &str| json!([{"maxSkew": 5, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
    match at % 5 {
        1 => spec["topologySpreadConstraints"] = spread("topology.kubernetes.io/zone"),
        2 => spec["topologySpreadConstraints"] = spread("kubernetes.io/hostname"),
        3 => spec["affinity"] = json!({"podAffinity": term("topology.kubernetes.io/zone")}),
        4 => spec["affinity"] = json!({"podAntiAffinity": term("kubernetes.io/hostname")}),
        _ => {}
    }
    if let Some(node) = node {
        spec["nodeName"] = json!(node);
    }
    json!({"metadata": {"name": name, "labels": labels}, "spec": spec})
}

async fn fill(client: &Client, nodes: usize, pods: usize) -> anyhow::Result<()> {
    let (all, how) = (Api::<Node>::all(client.clone()), PostParams::default());
    stream::iter(0..nodes)
        .map(|at| async move { anyhow::Ok(serde_json::from_value::<Node>(node(at))?) })
        .buffered(1)
        .map_ok(|object| {
            let (all, how) = (all.clone(), how.clone());
            async move { anyhow::Ok(all.create(&how, &object).await.map(drop)?) }
        })
        .try_buffer_unordered(CONCURRENCY)
        .try_for_each(async |()| Ok(()))
        .await
        .context("creating nodes")?;
    let all = Api::<Pod>::namespaced(client.clone(), "default");
    stream::iter(0..pods)
        .map(|at| {
            let (all, how) = (all.clone(), how.clone());
            async move {
                let node = format!("node-{:05}", at % nodes);
                let object: Pod = serde_json::from_value(pod(&format!("pod-{at:05}"), at, Some(&node)))?;
                anyhow::Ok(all.create(&how, &object).await.map(drop)?)
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_for_each(async |()| Ok(()))
        .await
        .context("creating pods")
}

/// Makes the rounds of changes. Each starts when the plan for the pod of the round before was made.
async fn change(
    client: &Client,
    controller: &Controller,
    nodes: usize,
    changes: usize,
) -> anyhow::Result<()> {
    let pods = Api::<Pod>::namespaced(client.clone(), "default");
    let all = Api::<Node>::all(client.clone());
    let (create, patch, delete) = (PostParams::default(), PatchParams::default(), DeleteParams::default());
    let ready = |status: &str| {
        Patch::Strategic(json!({"status": {"conditions": [{"type": "Ready", "status": status}]}}))
    };
    for at in 0..changes {
        let plans = controller.metric("poolwright_plan_duration_seconds_count").await?;
        let name = format!("new-{at:05}");
        pods.create(&create, &serde_json::from_value(pod(&name, at, None))?).await?;
        let waits = json!({"status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0 nodes"}]}});
        pods.patch_status(&name, &patch, &Patch::Strategic(waits)).await?;
        wait_for("a plan", WITHIN, async || {
            let now = controller.metric("poolwright_plan_duration_seconds_count").await?;
            ensure!(now > plans, "{now} plans");
            Ok(())
        })
        .await?;
        let home = format!("node-{:05}", at % nodes);
        let binding: Binding = serde_json::from_value(json!({
            "metadata": {"name": name}, "target": {"kind": "Node", "name": home}}))?;
        let _: Value = pods.create_subresource("binding", &name, &create, &binding).await?;
        pods.delete(&format!("pod-{at:05}"), &delete.clone().grace_period(0)).await?;
        all.patch_status(&home, &patch, &ready("False")).await?;
        all.patch_status(&home, &patch, &ready("True")).await?;
        all.delete(&format!("node-{:05}", nodes - 1 - at), &delete).await?;
    }
    Ok(())
}

fn memory(pid: u32) -> anyhow::Result<String> {
    Ok(format!("resident {} MiB, at most {} MiB so far", resident_mib(pid)?, peak_mib(pid)?))
}
