//! EC2's listings lack instances that run.

use anyhow::{Context, ensure};
use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::aws::Sight;
use poolwright_plane::trial::{Cluster, WITHIN, is_true, pod, taint_keys};
use poolwright_plane::wait_for;
use poolwright_terms::keys::DISRUPTED_TAINT;
use serde_json::json;

use super::cloud::{Cloud, work};
use super::scene::{POOL, Scene};

/// The number of pods at the start. Each needs a node.
const NODES: usize = 3;
/// The number of calls by which a controller has listed the instances, and looked each of them up, several times.
const SEVERAL: usize = 4 * (1 + NODES);

/// Makes all claims look as if they had been launched long ago. An instance may be missing in the listings of its first half minute.
async fn make_old(cluster: &Cluster) {
    let api: Api<NodeClaim> = Api::all(cluster.client.clone());
    wait_for("the launch of each claim to be long ago", WITHIN, async || {
        for claim in cluster.claims(POOL).await? {
            ensure!(is_true(&claim, "Initialized"), "{} is not initialized", claim.name_any());
            let mut conditions = claim.status.as_ref().context("no status")?.conditions.clone();
            let launched = conditions.iter_mut().find(|one| one.type_ == "Launched");
            launched.context("it is not launched")?.last_transition_time.0 = Timestamp::UNIX_EPOCH;
            // With its version, so that no write of the controller is lost.
            let version = &claim.metadata.resource_version;
            let old = Patch::Merge(
                json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}}),
            );
            api.patch_status(&claim.name_any(), &PatchParams::default(), &old).await?;
        }
        Ok(())
    })
    .await
    .unwrap();
}

/// Returns what is there and well: claims, nodes that are not emptied, and instances that run.
async fn well(cloud: &Cloud, cluster: &Cluster) -> [Vec<String>; 3] {
    let mut claims = cluster.claims(POOL).await.unwrap();
    claims.retain(|claim| is_true(claim, "Initialized") && claim.metadata.deletion_timestamp.is_none());
    let mut nodes = cluster.nodes(POOL).await.unwrap();
    nodes.retain(|node| {
        node.metadata.deletion_timestamp.is_none()
            && !taint_keys(node).iter().any(|key| key == DISRUPTED_TAINT)
    });
    let machines = cloud.front.machines();
    [
        claims.iter().map(ResourceExt::name_any).collect(),
        nodes.iter().map(ResourceExt::name_any).collect(),
        machines.into_iter().map(|machine| machine.id).collect(),
    ]
}

#[tokio::test]
async fn while_ec2_shows_no_instances_nothing_is_launched_or_terminated_and_then_it_goes_on() {
    let on_ec2 = json!({"template": {"spec": {"nodeClassRef": {"kind": "EC2NodeClass"}}}});
    let mut scene = Scene::start(on_ec2, |_| {}).await;
    scene.cluster.apply(&scene.namespace, &[work("train", POOL, NODES)]).await.unwrap();
    scene.wait_running(NODES).await;
    make_old(&scene.cluster).await;
    // A controller remembers what it launched a moment ago. Its successor knows only what EC2 shows.
    scene.cloud.front.show(Sight::ById);
    scene.replace_controller();
    let Scene { cloud, cluster, controller, namespace, .. } = &mut scene;
    let before = well(cloud, cluster).await;
    assert!(before.iter().all(|some| some.len() == NODES), "{before:?}");

    wait_for("the controller to find by their ids what no listing has", WITHIN, async || {
        let unlisted = controller.metric("poolwright_instances_unlisted").await?;
        ensure!(unlisted >= NODES as f64, "it has found {unlisted}");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(well(cloud, cluster).await, before);

    cloud.front.show(Sight::Nothing);
    let doubted = cluster.wait_pool_condition(POOL, "NodeClassReady", "False").await.unwrap();
    assert!(doubted.message.contains("the cloud knows 3 of 3 instances"), "{doubted:?}");
    let late = pod("late", POOL, json!({"cpu": "500m", "nvidia.com/gpu": 1}));
    cluster.create_pods(namespace, &[late]).await.unwrap();
    let note = cluster.wait_said("Pod", "late", "NoUsablePool").await.unwrap();
    assert!(note.contains("the cloud knows 3 of 3 instances"), "{note}");
    let asked = || cloud.front.calls().get("ec2:DescribeInstances").copied().unwrap_or_default();
    let until = asked() + SEVERAL;
    wait_for("EC2 to be asked several more times", WITHIN, async || {
        ensure!(asked() >= until, "it was asked {} times of {until}", asked());
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(well(cloud, cluster).await, before, "nothing is launched, terminated or emptied");
    assert_eq!(cloud.front.launches().len(), NODES);

    cloud.front.show(Sight::All);
    cluster.wait_pool_condition(POOL, "NodeClassReady", "True").await.unwrap();
    cluster.wait_running(namespace, NODES + 1).await.unwrap();
    let after = well(cloud, cluster).await;
    for (before, after) in before.iter().zip(&after) {
        assert!(before.iter().all(|one| after.contains(one)), "of {before:?}, {after:?} are left");
    }
    assert_eq!(cloud.front.launches().len(), NODES + 1, "the pod that waited has one node");
    controller.ensure_running().unwrap();
}
