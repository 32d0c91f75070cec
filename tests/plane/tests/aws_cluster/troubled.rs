//! Three of ten calls to AWS fail in various ways, and the controller is killed meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::ensure;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::DeleteParams;
use poolwright_plane::aws::Trouble;
use poolwright_plane::trial::is_running;
use poolwright_plane::{seed, wait_for};
use poolwright_provider_contract::CloudProvider;
use serde_json::json;

use super::cloud::work;
use super::rules::Rules;
use super::scene::{POOL, Scene, id_of, take_back};
use super::spot::{spot_market, spot_pool};

/// The number of pods. Each needs a node.
const PODS: usize = 6;
/// The limit of nodes. Half of them are replaced at once, and buying all of them twice would exceed the limit.
const LIMIT: usize = 11;
/// Long compared with all failures: a failed call is repeated after up to a minute, perhaps several times.
const LONG: Duration = Duration::from_mins(8);

#[tokio::test]
async fn a_cluster_on_aws_works_although_three_of_ten_calls_fail() {
    let seed = seed("this trouble");
    let mut pool = spot_pool();
    pool["limits"] = json!({"nodes": LIMIT});
    let mut scene = Scene::start(pool, |front| {
        spot_market(front);
        let spot = |kind: &str| (kind.to_owned(), "us-east-1a".to_owned(), true);
        // Some claims get the planned offering, others the next best.
        front.set_stock([(spot("g5.xlarge"), 4), (spot("g5.2xlarge"), 3)]);
        front.show_late(1);
        front.trouble(Trouble { percent: 30, seed });
    })
    .await;
    let rules = Rules::watch(scene.cloud.clone(), &scene.cluster, &scene.namespace, LIMIT);
    scene.cluster.apply(&scene.namespace, &[work("train", POOL, PODS)]).await.unwrap();
    wait_for("the first instance", LONG, async || {
        ensure!(!scene.cloud.front.launches().is_empty(), "there is none");
        Ok(())
    })
    .await
    .unwrap();
    scene.replace_controller();
    all_run(&scene, &BTreeSet::new()).await;

    // Half of the instances are taken back at once, and the controller is killed when it has recorded the first.
    let claims = scene.cluster.claims(POOL).await.unwrap();
    let ids = claims.iter().filter_map(|claim| claim.status.as_ref()?.provider_id.clone());
    let taken: BTreeSet<String> = ids.take(PODS / 2).collect();
    let instances: Vec<&str> = taken.iter().map(|id| id_of(id)).collect();
    take_back(&scene.cloud, &instances).await.unwrap();
    wait_for("something of it to be recorded", LONG, async || {
        ensure!(!rules.seen().interrupted.is_empty(), "nothing is");
        Ok(())
    })
    .await
    .unwrap();
    scene.replace_controller();
    all_run(&scene, &taken).await;
    wait_for("what was taken back to be given back", LONG, async || {
        let launches = scene.cloud.front.launches();
        let left: Vec<_> =
            launches.iter().filter(|one| instances.contains(&one.id.as_str()) && !one.ended).collect();
        ensure!(left.is_empty(), "{left:?} run");
        Ok(())
    })
    .await
    .unwrap();
    let heard: BTreeSet<String> = rules.seen().interrupted.into_keys().collect();
    assert!(heard.is_superset(&taken), "{taken:?} was taken back, and {heard:?} recorded");

    let deployments: Api<Deployment> = Api::namespaced(scene.cluster.client.clone(), &scene.namespace);
    deployments.delete("train", &DeleteParams::default()).await.unwrap();
    wait_for("everything to be given back", LONG, async || {
        let launches = scene.cloud.front.launches();
        let left: Vec<_> = launches.iter().filter(|machine| !machine.ended).collect();
        ensure!(left.is_empty(), "instances are left: {left:?}");
        let claims = scene.cluster.claims(POOL).await?;
        ensure!(
            claims.is_empty() && scene.cluster.nodes(POOL).await?.is_empty(),
            "objects are left: {claims:?}"
        );
        Ok(())
    })
    .await
    .unwrap();
    scene.controller.ensure_running().unwrap();
    let front = &scene.cloud.front;
    let (wrong, calls) = (front.went_wrong(), front.calls().values().sum::<usize>());
    front.trouble(Trouble::default());
    front.show_late(0);
    assert_eq!(scene.looker.list().await.unwrap(), [], "EC2 shows what it was not asked to end");
    let seen = rules.seen();
    println!(
        "{wrong} of {calls} calls went wrong; {} instances were launched, {} at a time at most; looked {} times",
        front.launches().len(),
        seen.most,
        seen.looks
    );
    assert!(seen.broken.is_empty(), "{:#?}", seen.broken);
    let (launched, claims) = (front.launches().len(), seen.claims.len());
    assert!(launched <= claims, "{launched} instances were launched for {claims} claims");
    assert!(wrong * 5 > calls, "{wrong} of {calls} calls went wrong: that is no trouble");
}

/// Waits until all pods run, and none on a reclaimed instance.
async fn all_run(scene: &Scene, taken: &BTreeSet<String>) {
    let nodes: BTreeSet<String> = taken.iter().map(|id| format!("ip-{}", id_of(id))).collect();
    wait_for("all pods to run", LONG, async || {
        let pods = scene.cluster.pods(&scene.namespace).await?;
        let well = pods.iter().filter(|pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            is_running(pod)
                && pod.metadata.deletion_timestamp.is_none()
                && node.is_some_and(|node| !nodes.contains(node))
        });
        let well = well.count();
        ensure!(well == PODS, "{well} of {PODS} run");
        Ok(())
    })
    .await
    .unwrap();
}
