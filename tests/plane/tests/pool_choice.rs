//! The choice of pool and type: weights, limits, taints and the overhead of DaemonSets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{Cluster, Trial, node_class, node_pool, pod};
use poolwright_plane::unique;
use serde_json::{Value, json};

async fn cluster() -> Cluster {
    Trial::shared(&["--batch-idle", "500ms"]).await.unwrap().cluster().unwrap()
}

fn types(instance_types: &[&str]) -> Value {
    json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": instance_types},
    ])
}

fn bought(claims: &[NodeClaim]) -> Vec<String> {
    let kind = |claim: &NodeClaim| {
        let offering = claim.status.as_ref().and_then(|status| status.offering.as_ref());
        offering.map(|offering| offering.instance_type.clone()).unwrap_or_default()
    };
    claims.iter().map(kind).collect()
}

#[tokio::test]
async fn pools_with_a_higher_weight_buy_first_up_to_their_limit() {
    let cluster = cluster().await;
    let (heavy, light) = (unique("heavy"), unique("light"));
    let namespace = cluster.namespace("weights").await.unwrap();
    let pool = |name: &str, spec: Value| {
        let mut pool = node_pool(name, spec);
        pool["spec"]["template"]["metadata"] = json!({"labels": {"example.com/team": heavy}});
        pool
    };
    let dear = json!({"weight": 50, "limits": {"nodes": 1}, "template": {"spec": {"requirements": types(&["g5.2xlarge"])}}});
    let cheap = json!({"weight": 1, "template": {"spec": {"requirements": types(&["g5.xlarge"])}}});
    let classes = [node_class(&heavy, json!({})), node_class(&light, json!({}))];
    cluster.apply("", &classes).await.unwrap();
    cluster.apply("", &[pool(&heavy, dear), pool(&light, cheap)]).await.unwrap();
    let pods = ["a", "b", "c"].map(|name| {
        let mut pod = pod(name, "", json!({"cpu": "2", "nvidia.com/gpu": "1"}));
        pod["spec"]["nodeSelector"] = json!({"example.com/team": heavy});
        pod
    });
    cluster.create_pods(&namespace, &pods).await.unwrap();
    cluster.wait_running(&namespace, 3).await.unwrap();
    let claims = cluster.claims(&heavy).await.unwrap();
    assert_eq!(bought(&claims), ["g5.2xlarge"], "the heavier pool, up to its limit, although it is dearer");
    let claims = cluster.claims(&light).await.unwrap();
    assert_eq!(bought(&claims), ["g5.xlarge", "g5.xlarge"], "the rest");
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn the_overhead_of_daemonsets_excludes_the_smallest_type() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("overhead"), cluster.namespace("overhead").await.unwrap());
    let pool = node_pool(
        &name,
        json!({"template": {"spec": {"requirements": types(&["g5.xlarge", "g5.2xlarge"])}}}),
    );
    // A g5.xlarge has 3.92 cores: enough for the pod, but not for the pod and 0.5 cores.
    let daemonset = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "nodeSelector": {"poolwright.dev/nodepool": name},
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "agent", "image": "none", "resources": {"requests": {"cpu": "500m"}}}],
                },
            },
        },
    });
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    cluster.apply(&namespace, &[daemonset]).await.unwrap();
    cluster
        .apply(&namespace, &[pod("train", &name, json!({"cpu": "3500m", "nvidia.com/gpu": "1"}))])
        .await
        .unwrap();
    let pods = cluster.wait_running(&namespace, 2).await.unwrap();
    let homes: BTreeMap<String, String> = pods.iter().map(|pod: &Pod| (pod.name_any(), home(pod))).collect();
    assert_eq!(
        homes["train"],
        *homes.values().next().unwrap(),
        "the pod and the agent share a node: {homes:?}"
    );
    assert_eq!(bought(&cluster.claims(&name).await.unwrap()), ["g5.2xlarge"], "one node that holds both");
    cluster.delete_pod(&namespace, "train").await.unwrap();
}

fn home(pod: &Pod) -> String {
    pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default()
}

#[tokio::test]
async fn a_tainted_pool_buys_only_for_tolerating_pods_and_tells_the_rest_why() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("tainted"), cluster.namespace("tainted").await.unwrap());
    let taint = json!({"key": "example.com/dedicated", "value": "research", "effect": "NoSchedule"});
    let pool = node_pool(&name, json!({"template": {"spec": {"taints": [taint]}}}));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    let requests = json!({"cpu": "1", "nvidia.com/gpu": "1"});
    cluster.apply(&namespace, &[pod("stranger", &name, requests.clone())]).await.unwrap();
    let note = cluster.wait_said("Pod", "stranger", "NoOfferingFits").await.unwrap();
    assert!(note.contains("example.com/dedicated") && note.contains(&name), "{note}");
    assert!(note.contains("toleration"), "it says what to do: {note}");
    assert!(cluster.claims(&name).await.unwrap().is_empty(), "and nothing was bought");

    let mut friend = pod("friend", &name, requests);
    friend["spec"]["tolerations"] = json!([{"key": "example.com/dedicated", "operator": "Equal", "value": "research", "effect": "NoSchedule"}]);
    cluster.delete_pod(&namespace, "stranger").await.unwrap();
    cluster.apply(&namespace, &[friend]).await.unwrap();
    poolwright_plane::wait_for("the tolerating pod to run", poolwright_plane::trial::WITHIN, async || {
        let pods = cluster.pods(&namespace).await?;
        let friend = pods.iter().find(|pod| pod.name_any() == "friend");
        anyhow::ensure!(
            friend.is_some_and(poolwright_plane::trial::is_running),
            "{:?}",
            friend.map(|pod| &pod.status)
        );
        Ok(())
    })
    .await
    .unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn commitments_are_used_first_and_counted_once() {
    // Covers what one g5.2xlarge uses.
    let file = std::env::temp_dir().join(format!("{}.yaml", unique("commitments")));
    std::fs::write(&file, "commitments: [{name: plan, usdPerHour: 0.5, rates: {g5.2xlarge: 0.5}}]").unwrap();
    let trial =
        Trial::start(&["--batch-idle", "500ms", "--commitments", file.to_str().unwrap()]).await.unwrap();
    let cluster = trial.cluster().unwrap();
    let (name, namespace) = (unique("committed"), cluster.namespace("committed").await.unwrap());
    let either = json!({"template": {"spec": {"requirements": types(&["g5.xlarge", "g5.2xlarge"])}}});
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, either)]).await.unwrap();
    let mut seen = Vec::new();
    for pods in 1..=2 {
        let pod = pod(&format!("train-{pods}"), &name, json!({"cpu": "2", "nvidia.com/gpu": "1"}));
        cluster.create_pods(&namespace, &[pod]).await.unwrap();
        cluster.wait_running(&namespace, pods).await.unwrap();
        let mut all = bought(&cluster.claims(&name).await.unwrap());
        all.sort();
        seen.push(all);
    }
    assert_eq!(seen, [vec!["g5.2xlarge"], vec!["g5.2xlarge", "g5.xlarge"]]);
    cluster.delete_pods(&namespace).await.unwrap();
    std::fs::remove_file(&file).unwrap();
}
