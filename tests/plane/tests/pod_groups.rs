//! PodGroups on a real API server, with a real scheduler that places gangs together.

use std::collections::BTreeSet;

use anyhow::ensure;
use k8s_openapi::api::scheduling::v1alpha2::PodGroup;
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{Cluster, Trial, WITHIN, is_running, node_class, node_pool, pod};
use poolwright_plane::{Options, unique, wait_for};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Returns the cluster that all tests share. Its controller reads PodGroups.
async fn cluster() -> Cluster {
    static SHARED: OnceCell<Trial> = OnceCell::const_new();
    let start = || Trial::start_on(Options::everything().with_gang_scheduling(), &[]);
    let trial = SHARED.get_or_try_init(start).await.unwrap();
    wait_for("PodGroups to be watched", WITHIN, async || {
        let synced = trial.metric("poolwright_watch_synced{kind=\"PodGroup\"}").await?;
        ensure!(synced > 0.0, "not listed yet");
        Ok(())
    })
    .await
    .unwrap();
    trial.cluster().unwrap()
}

fn group(name: &str, policy: Value) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy}})
}

/// Returns a pod of a group. Four of these pods fill a g5.12xlarge.
fn member(group: &str, at: usize, pool: &str) -> Value {
    let mut member = pod(&format!("{group}-{at}"), pool, json!({"cpu": "10", "nvidia.com/gpu": "1"}));
    member["spec"]["schedulingGroup"] = json!({"podGroupName": group});
    member
}

#[tokio::test]
async fn a_slowly_arriving_gang_gets_all_its_nodes_in_one_plan() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("podgroup"), cluster.namespace("podgroup").await.unwrap());
    let class = node_class(&name, json!({"registrationDelay": "3s"}));
    cluster.apply("", &[class, node_pool(&name, json!({"scaleToZero": {"after": "5m"}}))]).await.unwrap();
    cluster.apply(&namespace, &[group("train", json!({"gang": {"minCount": 8}}))]).await.unwrap();
    for burst in [0..3, 3..6] {
        let pods: Vec<Value> = burst.map(|at| member("train", at, &name)).collect();
        cluster.create_pods(&namespace, &pods).await.unwrap();
        // A pod without a group is created after them and runs, so the controller has seen the group's pods too.
        let witness = unique("witness");
        let small = pod(&witness, &name, json!({"cpu": "100m"}));
        cluster.create_pods(&namespace, &[small]).await.unwrap();
        wait_for("a pod of no group to run", WITHIN, async || {
            let pods = cluster.pods(&namespace).await?;
            ensure!(pods.iter().any(|pod| pod.name_any() == witness && is_running(pod)), "it does not");
            Ok(())
        })
        .await
        .unwrap();
        let claims = cluster.claims(&name).await.unwrap();
        let planned: Vec<&String> = claims.iter().flat_map(|claim| &claim.spec.pods).collect();
        assert!(planned.iter().all(|pod| !pod.contains("/train-")), "bought too early: {planned:?}");
        cluster.delete_pod(&namespace, &witness).await.unwrap();
    }
    let rest: Vec<Value> = (6..8).map(|at| member("train", at, &name)).collect();
    cluster.create_pods(&namespace, &rest).await.unwrap();
    let running = cluster.wait_running(&namespace, 8).await.unwrap();
    let claims = cluster.claims(&name).await.unwrap();
    let large: Vec<_> =
        claims.iter().filter(|one| one.spec.offerings[0].instance_type == "g5.12xlarge").collect();
    assert_eq!((large.len(), large[0].spec.pods.len(), large[1].spec.pods.len()), (2, 4, 4));
    let created: BTreeSet<_> = large.iter().map(|claim| claim.creation_timestamp().unwrap().0).collect();
    assert!(created.last().unwrap().duration_since(*created.first().unwrap()).as_secs() <= 2, "{created:?}");
    for claim in &large {
        let node = claim.status.as_ref().unwrap().node_name.clone();
        let mut there: Vec<String> = running
            .iter()
            .filter(|pod| pod.spec.as_ref().unwrap().node_name == node)
            .map(|pod| format!("{namespace}/{}", pod.name_any()))
            .collect();
        there.sort();
        assert_eq!(there, claim.spec.pods, "where they were planned");
    }
    let groups: Api<PodGroup> = Api::namespaced(cluster.client.clone(), &namespace);
    let scheduled =
        groups.get("train").await.unwrap().status.unwrap_or_default().conditions.unwrap_or_default();
    assert!(scheduled.iter().any(|one| one.type_ == "PodGroupScheduled" && one.status == "True"));
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn an_unplaceable_gang_buys_nothing_and_reports_why() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("part"), cluster.namespace("part").await.unwrap());
    let limited =
        |nodes: u32| node_pool(&name, json!({"limits": {"nodes": nodes}, "scaleToZero": {"after": "5m"}}));
    cluster.apply("", &[node_class(&name, json!({})), limited(1)]).await.unwrap();
    cluster.apply(&namespace, &[group(&name, json!({"gang": {"minCount": 12}}))]).await.unwrap();
    let pods: Vec<Value> = (0..12).map(|at| member(&name, at, &name)).collect();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    // The largest allowed node holds eight.
    let said = cluster.wait_said("Pod", &format!("{name}-0"), "GangIncomplete").await.unwrap();
    assert!(said.contains("12 pods of its PodGroup") && said.contains("has room for only 8"), "{said}");
    assert!(cluster.claims(&name).await.unwrap().is_empty());
    cluster.apply("", &[limited(2)]).await.unwrap();
    cluster.wait_running(&namespace, 12).await.unwrap();
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 2);
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn pods_of_a_missing_podgroup_wait_until_it_exists() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("missing"), cluster.namespace("missing").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    cluster.create_pods(&namespace, &[member(&name, 0, &name)]).await.unwrap();
    let said = cluster.wait_said("Pod", &format!("{name}-0"), "PodGroupMissing").await.unwrap();
    assert!(said.contains(&format!("PodGroup {namespace}/{name}")), "{said}");
    assert!(cluster.claims(&name).await.unwrap().is_empty());
    cluster.apply(&namespace, &[group(&name, json!({"basic": {}}))]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}
