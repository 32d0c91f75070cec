//! Spot capacity on a whole cluster.

use anyhow::ensure;
use poolwright_plane::aws::Front;
use poolwright_plane::trial::WITHIN;
use poolwright_plane::wait_for;
use poolwright_provider_contract::{CloudProvider, Instance};
use poolwright_terms::CapacityType;
use serde_json::{Value, json};

use super::cloud::work;
use super::scene::{POOL, Scene, id_of, take_back};

/// Returns a pool of one family that may use spot.
pub fn spot_pool() -> Value {
    json!({"template": {"spec": {
        "nodeClassRef": {"kind": "EC2NodeClass"},
        "requirements": [
            {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["spot", "on-demand"]},
            {"key": "poolwright.dev/instance-family", "operator": "In", "values": ["g5"]},
        ],
    }}})
}

/// Sells spot in one zone at two prices. On-demand costs three times as much.
pub fn spot_market(front: &Front) {
    front.sell_spot([("g5.xlarge", "us-east-1a", "0.30"), ("g5.2xlarge", "us-east-1a", "0.36")]);
}

#[tokio::test]
async fn reclaimed_spot_nodes_are_replaced_until_only_on_demand_is_left() {
    let mut scene = Scene::start(spot_pool(), spot_market).await;
    scene.cluster.apply(&scene.namespace, &[work("train", POOL, 1)]).await.unwrap();
    scene.wait_running(1).await;
    let only = async |scene: &Scene| -> anyhow::Result<Instance> {
        let mut listed = scene.looker.list().await?;
        ensure!(listed.len() == 1, "there are {listed:?}");
        Ok(listed.remove(0))
    };
    let bought = only(&scene).await.unwrap();
    assert_eq!(bought.offering.to_string(), "g5.xlarge/us-east-1a/spot");

    let replaced = async |scene: &mut Scene, taken: &Instance| {
        take_back(&scene.cloud, &[id_of(&taken.provider_id)]).await.unwrap();
        let instead = wait_for("another to be there instead", WITHIN, async || {
            let left = only(scene).await?;
            ensure!(left.provider_id != taken.provider_id, "it is still there");
            Ok(left)
        })
        .await
        .unwrap();
        scene.wait_running(1).await;
        instead
    };
    // The reclaimed offering counts as dearer for a while.
    let second = replaced(&mut scene, &bought).await;
    assert_eq!(second.offering.to_string(), "g5.2xlarge/us-east-1a/spot");
    // The quota of the account now rules out all remaining spot offerings.
    let pools = ["g5.xlarge", "g5.2xlarge"].map(|kind| (kind.to_owned(), "us-east-1a".to_owned(), true));
    scene.cloud.front.refuse(pools.map(|pool| (pool, "MaxSpotInstanceCountExceeded".to_owned())));
    let third = replaced(&mut scene, &second).await;
    assert_eq!(third.offering.capacity_type, CapacityType::OnDemand);
}
