//! Unhealthy nodes are replaced after the time that their pool allows.

use anyhow::ensure;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{Cluster, WITHIN, condition, node_class, node_pool, pod};
use poolwright_plane::{unique, wait_for};
use serde_json::json;

/// Reports a condition of a node, like node-problem-detector.
#[expect(clippy::disallowed_methods, reason = "the cluster of this test lives in real time")]
async fn report(cluster: &Cluster, node: &str, status: &str) {
    let now = jiff::Timestamp::now().to_string();
    let condition = json!({"type": "GpuHealthy", "status": status, "reason": "XidError", "message": "Xid 79",
        "lastHeartbeatTime": now, "lastTransitionTime": now});
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let patch = Patch::Strategic(json!({"status": {"conditions": [condition]}}));
    nodes.patch_status(node, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn a_node_with_an_unhealthy_gpu_is_replaced() {
    let trial = crate::trial().await;
    let cluster = trial.cluster().unwrap();
    let (name, namespace) = (unique("repair"), cluster.namespace("repair").await.unwrap());
    let rules = json!([{"condition": "GpuHealthy", "status": "False", "after": "3s"}]);
    let spec = json!({"disruption": {"repair": rules}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, spec)]).await.unwrap();
    let mut template = pod("-", &name, json!({"cpu": "1", "nvidia.com/gpu": "1"}));
    template["metadata"] = json!({"labels": {"app": "served"}});
    let served = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "served"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "served"}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]}}});
    cluster.apply(&namespace, &[served]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    let sick = cluster.claims(&name).await.unwrap()[0].name_any();
    report(&cluster, &sick, "True").await;
    report(&cluster, &sick, "False").await;
    wait_for("the claim to say that its node is sick, or to be gone", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        let Some(claim) = claims.iter().find(|claim| claim.name_any() == sick) else { return Ok(()) };
        let said = claim.status.as_ref().and_then(|status| condition(&status.conditions, "Unhealthy"));
        let said = said.map(|one| one.message.clone()).unwrap_or_default();
        ensure!(said.contains("the condition GpuHealthy=False since"), "{said}");
        Ok(())
    })
    .await
    .unwrap();
    let said = cluster.wait_said("NodeClaim", &sick, "NodeUnhealthy").await.unwrap();
    assert!(said.contains("longer than the 3 s that its pool allows, so it is replaced"), "{said}");
    wait_for("its work to run on another node, and it to be gone", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.iter().all(|claim| claim.name_any() != sick), "it is there");
        Ok(())
    })
    .await
    .unwrap();
    let pods = cluster.wait_running(&namespace, 1).await.unwrap();
    assert_ne!(pods[0].spec.as_ref().and_then(|spec| spec.node_name.clone()), Some(sick));
    let deployments: Api<k8s_openapi::api::apps::v1::Deployment> =
        Api::namespaced(cluster.client.clone(), &namespace);
    deployments.delete("served", &DeleteParams::default()).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}
