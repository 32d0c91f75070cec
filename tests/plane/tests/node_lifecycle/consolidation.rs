//! Disruption of healthy nodes: replacements are open before pods are evicted.

use crate::{cluster, initialized_claim};
use anyhow::{Context, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_plane::trial::{
    Cluster, WITHIN, condition, is_running, is_true, node_class, node_pool, pod, usd_per_hour,
};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

/// Returns a Deployment of pods with this number of GPUs each.
fn deployment(name: &str, pool: &str, replicas: u32, gpus: u32) -> Value {
    let mut pod = pod("-", pool, json!({"cpu": "1", "nvidia.com/gpu": gpus.to_string()}));
    pod["metadata"] = json!({"labels": {"app": name}});
    let template = json!({"metadata": pod["metadata"], "spec": pod["spec"]});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}})
}

async fn remove(cluster: &Cluster, namespace: &str, name: &str) {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), namespace);
    deployments.delete(name, &DeleteParams::default()).await.unwrap();
}

/// Gives the nodes of a pool another label, so that they drift.
async fn relabel(cluster: &Cluster, pool: &str) {
    let pools: Api<NodePool> = Api::all(cluster.client.clone());
    let change = Patch::Merge(json!({"spec": {"template": {"metadata": {"labels": {"generation": "two"}}}}}));
    pools.patch(pool, &PatchParams::default(), &change).await.unwrap();
}

fn node_of(pod: &Pod) -> Option<String> {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
}

/// Waits until this claim is deleted. Until another claim is open, it must not be.
async fn wait_until_it_goes_for_another(cluster: &Cluster, pool: &str, old: &NodeClaim) {
    wait_for("the claim to be deleted, when another is open", WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        let found = claims.iter().find(|claim| claim.name_any() == old.name_any());
        let goes = found.is_none_or(|claim| claim.metadata.deletion_timestamp.is_some());
        let is_open =
            |claim: &&NodeClaim| claim.name_any() != old.name_any() && is_true(claim, "Initialized");
        let open = claims.iter().filter(is_open).count();
        assert!(!goes || open > 0, "it goes before there is another");
        ensure!(goes, "{:?}", found.and_then(|claim| claim.status.as_ref()).map(|status| &status.conditions));
        Ok(())
    })
    .await
    .unwrap();
    wait_for("the claim to be gone", WITHIN, async || {
        let claims = cluster.claims(pool).await?;
        ensure!(claims.iter().all(|claim| claim.name_any() != old.name_any()), "it is there");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn consolidation_moves_pods_to_an_open_smaller_node() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("smaller"), cluster.namespace("smaller").await.unwrap());
    let spec =
        json!({"disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "1s"}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, spec)]).await.unwrap();
    let both = [deployment("large", &name, 1, 3), deployment("small", &name, 1, 1)];
    cluster.apply(&namespace, &both).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    let large = initialized_claim(&cluster, &name).await;
    let before = usd_per_hour(std::slice::from_ref(&large)).unwrap();
    remove(&cluster, &namespace, "large").await;
    wait_until_it_goes_for_another(&cluster, &name, &large).await;
    let pods = cluster.wait_running(&namespace, 1).await.unwrap();
    let small = initialized_claim(&cluster, &name).await;
    let home = small.status.as_ref().and_then(|status| status.node_name.clone());
    assert_eq!(node_of(&pods[0]), home);
    let after = usd_per_hour(&[small]).unwrap();
    assert!(after * 2 < before, "{after} instead of {before}");
    let said = cluster.wait_said("NodeClaim", &large.name_any(), "Underutilized").await.unwrap();
    assert!(said.contains("/h now and") && said.contains("its pods go to new"), "{said}");
    remove(&cluster, &namespace, "small").await;
    cluster.wait_nothing_left(&name).await.unwrap();
}

/// Returns a Deployment of pods with one GPU that only the large type can run.
fn only_large(name: &str, pool: &str) -> Value {
    let mut deployment = deployment(name, pool, 1, 1);
    deployment["spec"]["template"]["spec"]["nodeSelector"]["node.kubernetes.io/instance-type"] =
        json!("g5.12xlarge");
    deployment
}

/// Waits until this many pods run on open nodes of these types, and nothing else is there. Returns the claims.
async fn wait_for_nodes(
    cluster: &Cluster,
    (pool, namespace): (&str, &str),
    pods: usize,
    types: &[&str],
) -> Vec<NodeClaim> {
    wait_for("the pods to run on nodes of these types", WITHIN * 2, async || {
        let claims = cluster.claims(pool).await?;
        let mut found: Vec<String> = cluster
            .nodes(pool)
            .await?
            .iter()
            .filter_map(|node| node.labels().get("node.kubernetes.io/instance-type").cloned())
            .collect();
        found.sort();
        ensure!(found == types && claims.len() == types.len(), "{found:?}");
        ensure!(claims.iter().all(|claim| is_true(claim, "Initialized")), "not all are open");
        let there = cluster.pods(namespace).await?;
        ensure!(there.len() == pods && there.iter().all(is_running), "not all pods run");
        Ok(claims)
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn pods_that_run_anywhere_give_way_to_pods_that_need_their_node() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("room"), cluster.namespace("room").await.unwrap());
    let at = (name.as_str(), namespace.as_str());
    let pool = |after: &str| {
        node_pool(&name, json!({"disruption": {"consolidateAfter": after, "budgets": [{"nodes": "100%"}]}}))
    };
    cluster.apply("", &[node_class(&name, json!({})), pool("1h")]).await.unwrap();
    let mut first = only_large("first", &name);
    first["spec"]["template"]["metadata"]["annotations"] = json!({"poolwright.dev/do-not-disrupt": "true"});
    cluster.apply(&namespace, &[first]).await.unwrap();
    let before = wait_for_nodes(&cluster, at, 1, &["g5.12xlarge"]).await;
    let bystander = pod("bystander", &name, json!({"cpu": "1"}));
    cluster.apply(&namespace, &[deployment("anywhere", &name, 3, 1), bystander]).await.unwrap();
    wait_for_nodes(&cluster, at, 5, &["g5.12xlarge"]).await;
    // The others are too young to give way, so another large node is bought.
    cluster.apply(&namespace, &[only_large("second", &name)]).await.unwrap();
    let claims = wait_for_nodes(&cluster, at, 6, &["g5.12xlarge", "g5.12xlarge"]).await;
    let dear = claims.iter().find(|claim| claim.name_any() != before[0].name_any()).unwrap();

    // Consolidation empties it, because one of the others gives way.
    cluster.apply("", &[pool("1s")]).await.unwrap();
    // After a change of the pods, the search is soon repeated.
    cluster.delete_pod(&namespace, "bystander").await.unwrap();
    let said = cluster.wait_said("NodeClaim", &dear.name_any(), "Underutilized").await.unwrap();
    assert!(said.contains(", in the room of ") && said.contains("(g5.xlarge/"), "{said}");
    let claims = wait_for_nodes(&cluster, at, 5, &["g5.12xlarge", "g5.xlarge"]).await;
    let large = claims.iter().find(|claim| claim.name_any() == before[0].name_any()).unwrap();
    let moved: Vec<Pod> = cluster.pods(&namespace).await.unwrap();
    let second = moved.iter().find(|pod| pod.name_any().starts_with("second")).unwrap();
    assert_eq!(node_of(second), large.status.as_ref().and_then(|status| status.node_name.clone()));
    let said = cluster.wait_said("Pod", &second.name_any(), "RoomMade").await.unwrap();
    assert!(said.starts_with("it gets the room of other pods on node "), "{said}");

    // Another pod that needs the large type gets the room of another one.
    cluster.apply(&namespace, &[only_large("third", &name)]).await.unwrap();
    wait_for_nodes(&cluster, at, 6, &["g5.12xlarge", "g5.xlarge", "g5.xlarge"]).await;
    for name in ["first", "anywhere", "second", "third"] {
        remove(&cluster, &namespace, name).await;
    }
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn drifted_nodes_are_replaced_one_by_one_while_pods_keep_running() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("drift"), cluster.namespace("drift").await.unwrap());
    let spec = json!({"disruption": {"budgets": [{"nodes": "1"}]}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, spec)]).await.unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "served"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "served"}}}});
    cluster.apply(&namespace, &[budget, deployment("served", &name, 2, 1)]).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    relabel(&cluster, &name).await;
    let old: Vec<String> = cluster.claims(&name).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(old.len(), 2);
    let mut most = 0;
    wait_for("both nodes to be replaced", WITHIN * 2, async || {
        let claims = cluster.claims(&name).await?;
        let leaves = |claim: &&NodeClaim| {
            let status = claim.status.as_ref();
            let disrupting = status.and_then(|status| condition(&status.conditions, "Disrupting"));
            disrupting.is_some_and(|one| one.status == "True" && one.reason == "Drifted")
        };
        most = most.max(claims.iter().filter(leaves).count());
        let running = cluster.pods(&namespace).await?.iter().filter(|pod| is_running(pod)).count();
        assert!(running >= 1, "the budget of the pods is broken");
        ensure!(claims.iter().all(|claim| !old.contains(&claim.name_any())), "{} claims", claims.len());
        ensure!(running == 2, "{running} pods run");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(most, 1, "one at a time");
    for node in cluster.nodes(&name).await.unwrap() {
        assert_eq!(node.labels().get("generation").map(String::as_str), Some("two"));
    }
    remove(&cluster, &namespace, "served").await;
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_protected_pod_blocks_the_replacement_of_its_node() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("stays"), cluster.namespace("stays").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let mut guarded = deployment("guarded", &name, 1, 1);
    guarded["spec"]["template"]["metadata"]["annotations"] = json!({"poolwright.dev/do-not-disrupt": "true"});
    cluster.apply(&namespace, &[guarded]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    let claim = initialized_claim(&cluster, &name).await;
    relabel(&cluster, &name).await;
    let said = cluster.wait_said("NodeClaim", &claim.name_any(), "DisruptionBlocked").await.unwrap();
    assert!(said.contains("is protected by poolwright.dev/do-not-disrupt=true"), "{said}");
    let drifted = wait_for("the claim to say that it drifted", WITHIN, async || {
        let status = initialized_claim(&cluster, &name).await.status.context("no status")?;
        let drifted = condition(&status.conditions, "Drifted").context("nothing said")?.clone();
        ensure!(drifted.status == "True", "{drifted:?}");
        Ok(drifted.message)
    })
    .await
    .unwrap();
    assert_eq!(drifted, "label generation=`two` was added");
    assert_eq!(initialized_claim(&cluster, &name).await.name_any(), claim.name_any());
    remove(&cluster, &namespace, "guarded").await;
    cluster.wait_nothing_left(&name).await.unwrap();
}
