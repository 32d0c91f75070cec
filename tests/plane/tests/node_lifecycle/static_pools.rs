//! Nodes without demand (static pools, buffers), and the conditions that starting and ending nodes wait for.

use std::collections::BTreeMap;

use crate::cluster;
use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::{VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_plane::trial::{Cluster, WITHIN, condition, is_true, node_class, node_pool, pod};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

fn gpu_pod(name: &str, pool: &str) -> Value {
    pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))
}

/// Waits until a pool has `count` claims, all initialized.
async fn open_nodes(cluster: &Cluster, pool: &str, count: usize) -> Vec<NodeClaim> {
    wait_for(&format!("{count} open nodes of {pool}"), WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        let open = claims.iter().filter(|claim| is_true(claim, "Initialized")).count();
        ensure!(claims.len() == count && open == count, "{} claims, {open} open", claims.len());
        Ok(claims)
    })
    .await
    .unwrap()
}

fn types(claims: &[NodeClaim]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for claim in claims {
        let offering = claim.status.as_ref().and_then(|status| status.offering.clone());
        let kind = offering.map(|offering| offering.instance_type).unwrap_or_default();
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

async fn remove_pool(cluster: &Cluster, name: &str) {
    let pools: Api<NodePool> = Api::all(cluster.client.clone());
    pools.delete(name, &DeleteParams::default()).await.unwrap();
    cluster.wait_nothing_left(name).await.unwrap();
}

/// Waits until a condition of the pool's only claim contains `words`, and returns its message.
async fn says(cluster: &Cluster, pool: &str, kind: &str, words: &str) -> String {
    wait_for(&format!("{kind} to say `{words}`"), WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        let claim = claims.first().context("there is no claim")?;
        let status = claim.status.as_ref();
        let said = status.and_then(|status| condition(&status.conditions, kind));
        let said = said.map(|one| one.message.clone()).unwrap_or_default();
        ensure!(said.contains(words), "it says `{said}`");
        Ok(said)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn a_static_pool_keeps_its_number_of_nodes_and_can_be_scaled() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("static"), cluster.namespace("static").await.unwrap());
    let pool = node_pool(&name, json!({"replicas": 2}));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    let claims = open_nodes(&cluster, &name, 2).await;
    assert_eq!(types(&claims), [("g5.xlarge".to_owned(), 2)].into(), "the cheapest that it may buy");
    // A claim is deleted by hand, and another one replaces it.
    let all: Api<NodeClaim> = Api::all(cluster.client.clone());
    let gone = claims[0].name_any();
    all.delete(&gone, &DeleteParams::default()).await.unwrap();
    wait_for("another in its place", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.len() == 2 && claims.iter().all(|claim| claim.name_any() != gone), "{}", claims.len());
        Ok(())
    })
    .await
    .unwrap();
    open_nodes(&cluster, &name, 2).await;
    // A pod runs there. When the pool is scaled down, the node without a pod goes.
    cluster.create_pods(&namespace, &[gpu_pod("work", &name)]).await.unwrap();
    let pods = cluster.wait_running(&namespace, 1).await.unwrap();
    let busy = pods[0].spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap();
    let pools: Api<NodePool> = Api::all(cluster.client.clone());
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let scaled = pools.patch_scale(&name, &PatchParams::default(), &scale).await.unwrap();
    assert_eq!(scaled.spec.and_then(|spec| spec.replicas), Some(1));
    let left = open_nodes(&cluster, &name, 1).await;
    let node = left[0].status.as_ref().and_then(|status| status.node_name.clone());
    assert_eq!(node, Some(busy));
    cluster.delete_pods(&namespace).await.unwrap();
    remove_pool(&cluster, &name).await;
}

#[tokio::test]
async fn a_pod_uses_a_buffer_at_once_and_the_buffer_is_restored() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("buffer"), cluster.namespace("buffer").await.unwrap());
    let units = json!([{"units": 1, "requests": {"nvidia.com/gpu": 1, "cpu": 1}}]);
    let pool = node_pool(&name, json!({ "buffer": units }));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    let first = open_nodes(&cluster, &name, 1).await.remove(0);
    assert_eq!(first.spec.pods, Vec::<String>::new(), "it is anybody's");
    cluster.create_pods(&namespace, &[gpu_pod("work", &name)]).await.unwrap();
    let pods = cluster.wait_running(&namespace, 1).await.unwrap();
    let node = pods[0].spec.as_ref().and_then(|spec| spec.node_name.clone());
    assert_eq!(node, first.status.and_then(|status| status.node_name), "the room was there already");
    open_nodes(&cluster, &name, 2).await;
    // The room is not kept twice: when the pod ends, one of the nodes goes.
    cluster.delete_pods(&namespace).await.unwrap();
    open_nodes(&cluster, &name, 1).await;
    let pools: Api<NodePool> = Api::all(cluster.client.clone());
    let none = Patch::Merge(json!({"spec": {"buffer": null}}));
    pools.patch(&name, &PatchParams::default(), &none).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the cluster of this test lives in real time")]
async fn a_new_node_opens_when_its_readiness_gate_is_true() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("gates"), cluster.namespace("gates").await.unwrap());
    let gates = json!({"template": {"spec": {"readinessGates": [{"conditionType": "GpuValidated"}]}}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, gates)]).await.unwrap();
    cluster.create_pods(&namespace, &[gpu_pod("work", &name)]).await.unwrap();
    says(&cluster, &name, "Initialized", "it does not have the condition GpuValidated yet").await;
    let node = cluster.nodes(&name).await.unwrap()[0].name_any();
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let report = async |status: &str| {
        let now = jiff::Timestamp::now().to_string();
        let condition = json!({"type": "GpuValidated", "status": status, "reason": "Validator", "message": "dcgm",
            "lastHeartbeatTime": now, "lastTransitionTime": now});
        let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
        nodes.patch_status(&node, &PatchParams::default(), &patch).await.unwrap();
    };
    report("False").await;
    says(&cluster, &name, "Initialized", "condition GpuValidated=False").await;
    report("True").await;
    cluster.wait_running(&namespace, 1).await.unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn an_instance_is_terminated_after_its_volumes_are_detached() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("attached"), cluster.namespace("attached").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    cluster.create_pods(&namespace, &[gpu_pod("work", &name)]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    let claim = open_nodes(&cluster, &name, 1).await.remove(0);
    let node = claim.status.as_ref().and_then(|status| status.node_name.clone()).unwrap();
    let attachments: Api<VolumeAttachment> = Api::all(cluster.client.clone());
    let attachment = VolumeAttachment {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        spec: VolumeAttachmentSpec {
            attacher: "ebs.csi.aws.com".to_owned(),
            node_name: node,
            source: VolumeAttachmentSource {
                persistent_volume_name: Some("data".to_owned()),
                ..VolumeAttachmentSource::default()
            },
        },
        status: None,
    };
    attachments.create(&PostParams::default(), &attachment).await.unwrap();
    let all: Api<NodeClaim> = Api::all(cluster.client.clone());
    all.delete(&claim.name_any(), &DeleteParams::default()).await.unwrap();
    says(&cluster, &name, "VolumesDetached", ": data; Poolwright waits for that until").await;
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1, "it runs as long as the volume is there");
    // The cluster's attach-detach controller may already have deleted it.
    let _ = attachments.delete(&name, &DeleteParams::default()).await;
    cluster.wait_nothing_left(&name).await.unwrap();
}
