//! A whole cluster on AWS: pods wait, moto launches instances, and nodes join with their user data. EventBridge announces an
//! interruption, and Poolwright buys a replacement before it evicts pods. In the end nothing is left.

mod cloud;
mod rules;
mod scene;
mod spot;
mod troubled;
mod unseen;

use anyhow::{Context, ensure};
use cloud::work;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Node;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{WITHIN, taint_keys};
use poolwright_plane::wait_for;
use poolwright_provider_contract::CloudProvider;
use poolwright_terms::InterruptionKind;
use scene::{POOL, Scene, id_of, take_back};
use serde_json::json;

#[tokio::test]
async fn a_cluster_on_aws_scales_up_survives_an_interruption_and_scales_down() {
    let on_ec2 = json!({"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass"}}}});
    let mut scene = Scene::start(on_ec2, |_| {}).await;
    scene.cluster.apply(&scene.namespace, &[work("train", POOL, 3)]).await.unwrap();
    scene.wait_running(3).await;
    let Scene { cloud, looker, cluster, controller, namespace, .. } = &mut scene;
    let before = looker.list().await.unwrap();
    let claims = cluster.claims(POOL).await.unwrap();
    assert_eq!(before.len(), claims.len(), "one instance for each claim: {before:?}");
    for claim in &claims {
        let provider_id = claim.status.as_ref().and_then(|status| status.provider_id.clone());
        assert!(before.iter().any(|instance| Some(&instance.provider_id) == provider_id.as_ref()));
    }

    let taken = &before[0];
    take_back(cloud, &[id_of(&taken.provider_id)]).await.unwrap();
    let api: Api<NodeClaim> = Api::all(cluster.client.clone());
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let (interruption, node) = wait_for("what EC2 says to be recorded", WITHIN, async || {
        let status = api.get(&taken.claim).await?.status.context("no status")?;
        Ok((status.interruption.context("nothing is recorded")?, status.node_name.context("no node")?))
    })
    .await
    .unwrap();
    assert_eq!(interruption.kind, InterruptionKind::Reclaim);
    wait_for("the node to be closed, and something to be bought in its place", WITHIN, async || {
        if let Some(node) = nodes.get_opt(&node).await? {
            ensure!(taint_keys(&node).iter().any(|key| key == "poolwright.dev/disrupted"), "it is open");
        }
        let claims = cluster.claims(POOL).await?;
        let is_new = |claim: &&NodeClaim| before.iter().all(|instance| instance.claim != claim.name_any());
        ensure!(claims.iter().any(|claim| is_new(&claim)), "nothing is bought");
        Ok(())
    })
    .await
    .unwrap();
    wait_for("the instance to be given back, and its claim and node to go", WITHIN, async || {
        ensure!(api.get_opt(&taken.claim).await?.is_none(), "the claim is there");
        ensure!(nodes.get_opt(&node).await?.is_none(), "the node is there");
        let instances = looker.list().await?;
        ensure!(instances.iter().all(|one| one.provider_id != taken.provider_id), "the instance is there");
        Ok(())
    })
    .await
    .unwrap();
    for pod in cluster.wait_running(namespace, 3).await.unwrap() {
        assert_ne!(pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Some(node.as_str()));
    }

    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    deployments.delete("train", &DeleteParams::default()).await.unwrap();
    wait_for("everything to be given back", WITHIN, async || {
        let left = looker.list().await?;
        ensure!(left.is_empty(), "instances are left: {left:?}");
        ensure!(
            cluster.claims(POOL).await?.is_empty() && cluster.nodes(POOL).await?.is_empty(),
            "objects are left"
        );
        Ok(())
    })
    .await
    .unwrap();
    controller.ensure_running().unwrap();
}
