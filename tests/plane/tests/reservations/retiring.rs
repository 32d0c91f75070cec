//! A node that retires is closed like a reserved one. What becomes of it when its controller ends: stopped, or killed.

use std::process::Command;

use anyhow::{Context, bail, ensure};
use kube::ResourceExt;
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Controller, Trial, WITHIN, condition, is_true, node_class, node_pool, pod, taint_keys,
};
use poolwright_plane::{ControlPlane, poolwright_binary, wait_for};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::EXPECTED_DURATION_ANNOTATION;
use serde_json::{Value, json};

use super::RESERVED;

/// The pool, and its node class.
const POOL: &str = "gpu";

/// Returns a pod that declares how long it runs.
fn lasting(name: &str, gpus: &str, duration: &str) -> Value {
    let mut pod = pod(name, POOL, json!({"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": gpus}));
    pod["metadata"]["annotations"] = json!({(EXPECTED_DURATION_ANNOTATION): duration});
    pod
}

/// Starts a controller. One with the identity of a killed leader leads at once.
fn start(plane: &ControlPlane, identity: &str) -> Controller {
    let flags =
        ["--identity", identity, "--batch-idle", "200ms", "--lease-duration", "6s", "--list-interval", "1s"];
    Controller::start(plane, &format!("controller-{identity}"), &flags).unwrap()
}

/// Stops a controller as Kubernetes does, and waits until it has ended.
async fn stop(mut controller: Controller) {
    let status = controller.process().terminate(WITHIN).await.unwrap();
    assert!(status.success(), "{status}");
}

/// Returns the names of the nodes that admit only planned pods.
async fn closed(cluster: &Cluster) -> anyhow::Result<Vec<String>> {
    let mut nodes = cluster.nodes(POOL).await?;
    nodes.retain(|node| taint_keys(node).iter().any(|key| key == RESERVED));
    Ok(nodes.iter().map(ResourceExt::name_any).collect())
}

async fn wait_closed(cluster: &Cluster, controller: &mut Controller, expected: &[&str]) {
    wait_for(&format!("exactly these nodes to be closed: {expected:?}"), WITHIN, async || {
        controller.ensure_running()?;
        let closed = closed(cluster).await?;
        ensure!(closed == expected, "closed are {closed:?}");
        Ok(())
    })
    .await
    .unwrap();
}

/// Opens all closed nodes by hand, and returns the output. That fails until the Lease of the killed leader has expired.
async fn open_by_hand(plane: &ControlPlane) -> String {
    wait_for("`poolwright open --all` to succeed", WITHIN, async || {
        let mut command = Command::new(poolwright_binary()?);
        let output = command.args(["open", "--all"]).env("KUBECONFIG", plane.kubeconfig_path()).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_retiring_node_is_opened_by_a_stopped_controller_and_by_hand_or_the_successor_after_a_kill() {
    let plane = Trial::plane_without_controller().await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("retiring").await.unwrap();
    let requirements = json!([
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge", "g5.12xlarge"]},
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
    ]);
    let pool = node_pool(POOL, json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[node_class(POOL, json!({})), pool]).await.unwrap();
    // They wait before the first controller starts, so one plan buys for both: a large and a small node. Another pod like the
    // long one would keep the large node for days.
    let pods = [lasting("large", "3", "1h"), lasting("long", "1", "100h")];
    cluster.create_pods(&namespace, &pods).await.unwrap();

    // A plan decides again after a minute which nodes retire, but the first plan of a leader decides at once.
    let first = start(&plane, "first");
    cluster.wait_running(&namespace, 2).await.unwrap();
    let claims = cluster.claims(POOL).await.unwrap();
    let large = format!("{namespace}/large");
    let claim =
        claims.iter().find(|claim| claim.spec.pods.contains(&large)).expect("it has a node of its own");
    let claim = claim.name_any();
    let [one, other] = claims.as_slice() else { panic!("{} claims", claims.len()) };
    assert_ne!(one.spec.pods, other.spec.pods);
    stop(first).await;

    let mut second = start(&plane, "second");
    let retiring = async || -> anyhow::Result<Vec<NodeClaim>> {
        let mut claims = cluster.claims(POOL).await?;
        claims.retain(|claim| is_true(claim, ConditionType::Retiring.as_str()));
        Ok(claims)
    };
    let node = wait_for("the claim to say that its node retires", WITHIN, async || {
        second.ensure_running()?;
        let all = retiring().await?;
        let [retires] = all.as_slice() else { bail!("{} retire", all.len()) };
        ensure!(retires.name_any() == claim, "{} retires", retires.name_any());
        let status = retires.status.clone().unwrap_or_default();
        let why =
            condition(&status.conditions, ConditionType::Retiring.as_str()).map(|one| one.reason.clone());
        ensure!(why.as_deref() == Some("CheaperElsewhere"), "{why:?}");
        status.node_name.context("it has no node")
    })
    .await
    .unwrap();
    wait_closed(&cluster, &mut second, &[&node]).await;
    for (kind, name) in [("NodeClaim", &claim), ("Node", &node)] {
        let said = cluster.wait_said(kind, name, "CheaperElsewhere").await.unwrap();
        assert!(said.starts_with("admits only planned pods, because "), "{said}");
    }
    wait_for("the controller to count the node", WITHIN, async || {
        let counted =
            second.metric(&format!("poolwright_nodepool_retiring_nodes{{nodepool=\"{POOL}\"}}")).await?;
        ensure!(counted > 0.5, "it counts {counted}");
        Ok(())
    })
    .await
    .unwrap();
    stop(second).await;
    assert_eq!(closed(&cluster).await.unwrap(), [""; 0], "it was opened before the process ended");

    // The next leader closes the node again. Killed, it leaves it so, until somebody opens it by hand.
    let mut third = start(&plane, "third");
    wait_closed(&cluster, &mut third, &[&node]).await;
    third.kill();
    assert_eq!(closed(&cluster).await.unwrap(), [node.as_str()]);
    let said = open_by_hand(&plane).await;
    assert_eq!(said, format!("Node {node} is open now.\n"));
    assert_eq!(closed(&cluster).await.unwrap(), [""; 0]);

    // The successor renews the decision. It is killed too, and no recent pod would keep the node longer when it comes back.
    let mut fourth = start(&plane, "fourth");
    wait_closed(&cluster, &mut fourth, &[&node]).await;
    fourth.kill();
    cluster.delete_pod(&namespace, "long").await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(closed(&cluster).await.unwrap(), [node.as_str()], "nobody was there to open it");
    let mut fourth = start(&plane, "fourth");
    wait_closed(&cluster, &mut fourth, &[]).await;
    for (kind, name) in [("NodeClaim", &claim), ("Node", &node)] {
        cluster.wait_said(kind, name, "RoomIsCheap").await.unwrap();
    }
    assert!(retiring().await.unwrap().is_empty());
    cluster.wait_running(&namespace, 1).await.unwrap();

    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(POOL).await.unwrap();
    fourth.ensure_running().unwrap();
}
