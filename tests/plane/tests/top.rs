//! `poolwright top --once` on a real cluster: it shows the nodes, what Poolwright does now, and why.

use std::process::Command;

use anyhow::{Context, ensure};
use kube::ResourceExt;
use poolwright_plane::trial::{Trial, WITHIN, node_class, node_pool, pod};
use poolwright_plane::{ControlPlane, poolwright_binary, unique, wait_for};
use serde_json::{Value, json};

/// Returns the output of `poolwright top --once` with these additional arguments.
fn top(plane: &ControlPlane, more: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(poolwright_binary()?);
    let output =
        command.args(["top", "--once"]).args(more).env("KUBECONFIG", plane.kubeconfig_path()).output()?;
    ensure!(output.status.success(), "poolwright top: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

fn document(plane: &ControlPlane) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&top(plane, &["-o", "json"])?)?)
}

/// Returns the first item of a list whose field has this value.
fn find<'a>(list: &'a Value, field: &str, says: &str) -> anyhow::Result<&'a Value> {
    let all = list.as_array().context("no list")?;
    all.iter().find(|one| one[field] == json!(says)).with_context(|| format!("no {says} in {list}"))
}

#[tokio::test]
async fn top_shows_a_node_while_it_starts_and_ends() {
    let trial = Trial::shared(&["--batch-idle", "300ms", "--list-interval", "1s"]).await.unwrap();
    let (plane, cluster) = (trial.plane(), trial.cluster().unwrap());
    let empty = top(plane, &[]).unwrap();
    assert!(empty.contains("Poolwright has no nodes."), "{empty}");

    let (name, namespace) = (unique("top"), cluster.namespace("top").await.unwrap());
    let spec = json!({"weight": 7, "limits": {"nodes": 3, "usdPerHour": "40"}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, spec)]).await.unwrap();
    let gpu = pod("train", &name, json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    cluster.create_pods(&namespace, &[gpu]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    let large = pod("large", &name, json!({"cpu": "1000", "nvidia.com/gpu": "1"}));
    cluster.create_pods(&namespace, &[large]).await.unwrap();
    let large = format!("{namespace}/large");
    cluster.wait_said("Pod", "large", "NoOfferingFits").await.unwrap();

    let claim = cluster.claims(&name).await.unwrap()[0].name_any();
    let shown = wait_for("the open node, its pod, and the pod that nothing fits", WITHIN, async || {
        trial.ensure_running()?;
        let shown = document(plane)?;
        let node = find(&shown["nodes"], "name", &claim)?;
        ensure!(node["stage"] == "Initialized" && node["doing"] == "runs 1 pod", "{node}");
        ensure!(shown["podsWaiting"]["unschedulable"] == 1, "{}", shown["podsWaiting"]);
        ensure!(find(&shown["pools"], "name", &name)?["ready"] == true, "{}", shown["pools"]);
        let said = find(&shown["events"], "object", &large)?;
        ensure!(said["about"] == "Pod" && said["reason"] == "NoOfferingFits", "{said}");
        Ok(shown)
    })
    .await
    .unwrap();
    assert_eq!(
        (shown["apiVersion"].as_str(), shown["kind"].as_str()),
        (Some("poolwright.dev/v1alpha1"), Some("Top"))
    );
    assert_eq!(shown["leader"]["leads"], true, "{}", shown["leader"]);
    assert_eq!(shown["unreadable"], json!({}));
    let node = find(&shown["nodes"], "name", &claim).unwrap();
    assert_eq!((&node["pool"], &node["capacityType"]), (&json!(name), &json!("on-demand")));
    assert_eq!((&node["gpus"], &node["gpusInUse"], &node["pods"]), (&json!(1), &json!(1), &json!(1)));
    let pool = find(&shown["pools"], "name", &name).unwrap();
    assert_eq!((&pool["weight"], &pool["nodesReady"], &pool["gpusInUse"]), (&json!(7), &json!(1), &json!(1)));
    assert_eq!(pool["limits"], json!({"nodes": "3", "usdPerHour": "40"}));
    assert_eq!(pool["usdPerHour"], node["usdPerHour"]);
    assert!(node["usdPerHour"].as_f64().is_some_and(|price| price > 0.0), "{node}");
    assert!(find(&shown["events"], "object", &claim).is_ok(), "{}", shown["events"]);

    let text = top(plane, &[]).unwrap();
    assert!(!text.contains('\u{1b}'), "{text}");
    for part in ["Cluster     plane, read at ", " leads, renewed ", "1 unschedulable", "3 nodes, $40.00/h"] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let line = text.lines().find(|line| line.starts_with(&claim)).expect("a line for the node");
    assert!(line.contains("Initialized") && line.ends_with("runs 1 pod"), "{line}");
    println!("{text}");

    cluster.delete_pods(&namespace).await.unwrap();
    wait_for("the node to be said to go, and why", WITHIN, async || {
        let shown = document(plane)?;
        let node = find(&shown["nodes"], "name", &claim)?;
        ensure!(node["stage"] == "Disrupting", "{node}");
        let why = node["doing"].as_str().unwrap_or_default();
        ensure!(
            why.contains("its node is closed, and terminated unless a pod was bound to it before"),
            "{why}"
        );
        let pool = find(&shown["pools"], "name", &name)?;
        ensure!(pool["nodesLeaving"] == 1, "{pool}");
        Ok(())
    })
    .await
    .unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
    let text = top(plane, &[]).unwrap();
    assert!(text.contains("Poolwright has no nodes."), "{text}");
}
