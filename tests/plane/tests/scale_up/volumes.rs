//! Pods with volumes, on the real scheduler and the real volume controller.

use crate::cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{Cluster, WITHIN, node_class, node_pool, pod};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

const ZONE: &str = "topology.kubernetes.io/zone";

fn with_claim(name: &str, pool: &str, claim: &str) -> Value {
    let mut pod = pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

fn claim(name: &str, class: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": class,
        "resources": {"requests": {"storage": "1Gi"}},
    }})
}

/// Returns a volume in one zone, reserved for a claim.
fn volume(name: &str, zone: &str, class: &str, namespace: &str, claim: &str) -> Value {
    let term = json!({"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]});
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": class, "capacity": {"storage": "1Gi"},
        "csi": {"driver": "disks.example.com", "volumeHandle": name},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": claim},
    }})
}

/// Returns the zones of a pool's nodes.
async fn zones(cluster: &Cluster, pool: &str) -> Vec<String> {
    let nodes = cluster.nodes(pool).await.unwrap();
    nodes.iter().map(|node| node.labels()[ZONE].clone()).collect()
}

/// Returns a zone other than the one that the planner chooses when all cost the same.
async fn last_zone(cluster: &Cluster, pool: &str, namespace: &str) -> String {
    cluster
        .apply(namespace, &[pod("anywhere", pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))])
        .await
        .unwrap();
    cluster.wait_running(namespace, 1).await.unwrap();
    let chosen = zones(cluster, pool).await.remove(0);
    cluster.delete_pods(namespace).await.unwrap();
    cluster.wait_nothing_left(pool).await.unwrap();
    if chosen.ends_with('b') { "us-east-1a".to_owned() } else { "us-east-1b".to_owned() }
}

#[tokio::test]
async fn a_pod_gets_a_node_in_the_zone_of_its_volume() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("zonal"), cluster.namespace("zonal").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let zone = last_zone(&cluster, &name, &namespace).await;
    let volume = volume(&unique("zonal-volume"), &zone, "", &namespace, "data");
    cluster
        .apply(&namespace, &[volume, claim("data", ""), with_claim("reader", &name, "data")])
        .await
        .unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(zones(&cluster, &name).await, [zone]);
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "one node, at once in the right zone");
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_wait_for_first_consumer_volume_is_created_in_an_allowed_zone() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("made"), cluster.namespace("made").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let zone = last_zone(&cluster, &name, &namespace).await;
    let class_name = unique("made-class");
    let class = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": class_name},
        "provisioner": "disks.example.com", "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}]});
    cluster
        .apply(&namespace, &[class, claim("data", &class_name), with_claim("writer", &name, "data")])
        .await
        .unwrap();
    // Does what a provisioner does: waits until the scheduler chooses a node, and makes the volume there.
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(cluster.client.clone(), &namespace);
    let node = wait_for("the scheduler to choose a node for the claim", WITHIN, async || {
        let claim = claims.get("data").await?;
        claim.annotations().get("volume.kubernetes.io/selected-node").cloned().context("none chosen yet")
    })
    .await
    .unwrap();
    assert_eq!(zones(&cluster, &name).await, std::slice::from_ref(&zone));
    let volume = volume(&unique("made-volume"), &zone, &class_name, &namespace, "data");
    cluster.apply("", &[volume]).await.unwrap();
    let running = cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(running[0].spec.as_ref().unwrap().node_name.as_ref(), Some(&node));
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "no second node while the volume was made");
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_pod_with_a_missing_volume_buys_nothing_until_the_volume_exists() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("missing"), cluster.namespace("missing").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[with_claim("reader", &name, "data")]).await.unwrap();
    let note = cluster.wait_said("Pod", "reader", "VolumeUnusable").await.unwrap();
    assert_eq!(
        note.lines().next().unwrap_or_default(),
        format!(
            "uses PersistentVolumeClaim `data`, which does not exist in namespace `{namespace}`; create it, or correct the name"
        )
    );
    assert!(cluster.claims(&name).await.unwrap().is_empty());
    // Once claim and volume exist, nothing else is needed.
    let volume = volume(&unique("missing-volume"), "us-east-1a", "", &namespace, "data");
    cluster.apply(&namespace, &[volume, claim("data", "")]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    wait_for("the one node of the pod", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.len() == 1, "{claims:?}");
        Ok(())
    })
    .await
    .unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}
