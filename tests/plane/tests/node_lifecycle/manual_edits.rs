//! Manual edits of Poolwright's objects lose nothing, buy nothing and end nothing. Other pools are not affected.

use crate::{cluster, initialized_claim};
use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{Cluster, WITHIN, is_true, node_class, node_pool, pod};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

fn gpu_pod(name: &str, pool: &str) -> Value {
    pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))
}

/// Makes a pool with one node and a pod on it. Returns the initialized claim.
async fn one_node(cluster: &Cluster, name: &str, namespace: &str) -> NodeClaim {
    cluster.apply("", &[node_class(name, json!({})), node_pool(name, json!({}))]).await.unwrap();
    cluster.create_pods(namespace, &[gpu_pod("work", name)]).await.unwrap();
    cluster.wait_running(namespace, 1).await.unwrap();
    initialized_claim(cluster, name).await
}

#[tokio::test]
async fn a_claim_with_a_foreign_finalizer_terminates_its_instance_and_waits() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("finalizer"), cluster.namespace("finalizer").await.unwrap());
    let claim = one_node(&cluster, &name, &namespace).await;
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    let mut finalizers = claim.finalizers().to_vec();
    finalizers.push("example.com/inventory".to_owned());
    let theirs = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
    claims.patch(&claim.name_any(), &PatchParams::default(), &theirs).await.unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
    wait_for("the instance and the node to be gone", WITHIN, async || {
        let (nodes, instances) = (cluster.nodes(&name).await?, cluster.instances(&name).await?);
        ensure!(nodes.is_empty() && instances.is_empty(), "{} nodes, {}", nodes.len(), instances.len());
        Ok(())
    })
    .await
    .unwrap();
    let left = wait_for("our finalizer to be gone, theirs to stay", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        let [claim] = claims.as_slice() else { anyhow::bail!("{} claims", claims.len()) };
        ensure!(claim.finalizers() == ["example.com/inventory"], "{:?}", claim.finalizers());
        Ok(claim.clone())
    })
    .await
    .unwrap();
    // The remaining claim offers no room: a new pod gets a node of its own.
    cluster.create_pods(&namespace, &[gpu_pod("later", &name)]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1);
    cluster.delete_pods(&namespace).await.unwrap();
    let none = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    claims.patch(&left.name_any(), &PatchParams::default(), &none).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn removed_labels_of_a_node_and_its_claim_change_nothing() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("labels"), cluster.namespace("labels").await.unwrap());
    let claim = one_node(&cluster, &name, &namespace).await;
    let node = claim.status.as_ref().and_then(|status| status.node_name.clone()).unwrap();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let none = Patch::Merge(json!({"metadata": {"labels": {
        "poolwright.dev/nodeclaim": null, "poolwright.dev/nodepool": null, "poolwright.dev/registered": null,
        "node.kubernetes.io/instance-type": "made-up"}}}));
    nodes.patch(&node, &PatchParams::default(), &none).await.unwrap();
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    let none = Patch::Merge(json!({"metadata": {"labels": null}}));
    claims.patch(&claim.name_any(), &PatchParams::default(), &none).await.unwrap();
    // When another pool's node has come and gone, the controller has seen all of these edits.
    let other = unique("beside");
    let beside = cluster.namespace("beside").await.unwrap();
    one_node(&cluster, &other, &beside).await;
    cluster.delete_pods(&beside).await.unwrap();
    cluster.wait_nothing_left(&other).await.unwrap();
    let there = claims.get(&claim.name_any()).await.unwrap();
    assert_eq!(there.metadata.deletion_timestamp, None);
    assert!(nodes.get(&node).await.is_ok());
    assert_eq!(cluster.wait_running(&namespace, 1).await.unwrap().len(), 1);
    cluster.delete_pods(&namespace).await.unwrap();
    wait_for("the claim to go without work", WITHIN, async || {
        ensure!(claims.get_opt(&claim.name_any()).await?.is_none(), "it is there");
        ensure!(nodes.get_opt(&node).await?.is_none(), "its node is there");
        Ok(())
    })
    .await
    .unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn the_spec_of_a_claim_is_immutable_and_its_status_is_restored() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("edited"), cluster.namespace("edited").await.unwrap());
    let claim = one_node(&cluster, &name, &namespace).await;
    let claims: Api<NodeClaim> = Api::all(cluster.client.clone());
    let dearer = Patch::Merge(json!({"spec": {"pods": ["default/another"]}}));
    let refused = claims.patch(&claim.name_any(), &PatchParams::default(), &dearer).await.unwrap_err();
    assert!(refused.to_string().contains("the spec of a NodeClaim cannot change"), "{refused}");
    // Removes the recorded conditions. They are recorded again, and nothing is launched again.
    let none = Patch::Merge(json!({"status": {"conditions": null}}));
    claims.patch_status(&claim.name_any(), &PatchParams::default(), &none).await.unwrap();
    wait_for("its stages to be recorded again", WITHIN, async || {
        let claim = claims.get(&claim.name_any()).await?;
        ensure!(is_true(&claim, "Launched") && is_true(&claim, "Initialized"), "{:?}", claim.status);
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1);
    assert_eq!(cluster.wait_running(&namespace, 1).await.unwrap().len(), 1);
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_pool_with_an_unknown_node_class_kind_reports_it_and_other_pools_buy() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("kind"), cluster.namespace("kind").await.unwrap());
    let class =
        json!({"template": {"spec": {"nodeClassRef": {"group": "example.com", "kind": "MadeUpNodeClass"}}}});
    cluster.apply("", &[node_pool(&name, class)]).await.unwrap();
    let said = cluster.wait_pool_condition(&name, "NodeClassReady", "False").await.unwrap();
    assert!(said.message.contains("MadeUpNodeClass"), "{}", said.message);
    let other = unique("known");
    one_node(&cluster, &other, &namespace).await;
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&other).await.unwrap();
    let pools: Api<poolwright_api::NodePool> = Api::all(cluster.client.clone());
    pools.delete(&name, &DeleteParams::default()).await.unwrap();
}
