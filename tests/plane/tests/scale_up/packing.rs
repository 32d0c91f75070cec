//! Scale-up from pending to running pods and back to nothing, as users see it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cluster;
use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Node, Pod, Toleration};
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{
    WITHIN, condition, is_running, is_true, node_class, node_pool, pod, taint_keys, usd_per_hour,
};
use poolwright_plane::{unique, wait_for};
use serde_json::json;

#[tokio::test]
async fn two_gpu_pods_get_two_g5_xlarge_and_scale_down_to_nothing() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("karpenter-case"), cluster.namespace("karpenter-case").await.unwrap());
    let taint = json!({"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"});
    let pool = node_pool(
        &name,
        json!({"template": {"metadata": {"labels": {"team": "vision"}}, "spec": {"taints": [taint]}}}),
    );
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    let pods = ["one", "two"].map(|pod_name| {
        let mut pod = pod(pod_name, &name, json!({"cpu": "1", "memory": "2Gi", "nvidia.com/gpu": "1"}));
        pod["spec"]["tolerations"] = json!([{"key": "nvidia.com/gpu", "operator": "Exists"}]);
        pod
    });
    cluster.create_pods(&namespace, &pods).await.unwrap();

    let running = cluster.wait_running(&namespace, 2).await.unwrap();
    let homes: BTreeMap<String, String> = running
        .iter()
        .map(|pod| (pod.spec.as_ref().unwrap().node_name.clone().unwrap(), pod.name_any()))
        .collect();
    assert_eq!(homes.len(), 2, "each has a node of its own: {homes:?}");

    // The claims say what was bought, for how much, and why.
    let claims = wait_for("both claims to be initialized", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.iter().all(|claim| is_true(claim, "Initialized")), "{claims:?}");
        Ok(claims)
    })
    .await
    .unwrap();
    assert_eq!(claims.len(), 2);
    assert_eq!(usd_per_hour(&claims).unwrap(), 2_012_000, "two g5.xlarge at $1.01/h");
    for claim in &claims {
        let status = claim.status.as_ref().unwrap();
        let offering = status.offering.as_ref().unwrap();
        assert_eq!(offering.instance_type, "g5.xlarge", "not one g5.12xlarge for both");
        for kind in ["Launched", "Registered", "Initialized"] {
            let found = condition(&status.conditions, kind).unwrap_or_else(|| panic!("{kind} is missing"));
            assert_eq!(found.status, "True", "{found:?}");
            assert!(!found.reason.is_empty() && found.message.contains(' '), "a reason and words: {found:?}");
        }
        assert_eq!(claim.spec.pods.len(), 1, "planned for one pod each: {:?}", claim.spec.pods);
        let launched = cluster.wait_said("NodeClaim", &claim.name_any(), "Launched").await.unwrap();
        assert!(launched.contains("g5.xlarge") && launched.contains("1.006"), "{launched}");
        cluster.wait_said("NodeClaim", &claim.name_any(), "Initialized").await.unwrap();
    }

    // The nodes have what was promised, under the usual label names, and are open to all once their pods are there.
    let nodes = wait_for("the nodes to have the pool's taint and no other", WITHIN, async || {
        let nodes = cluster.nodes(&name).await?;
        for node in &nodes {
            ensure!(taint_keys(node) == ["nvidia.com/gpu"], "{:?}", taint_keys(node));
        }
        Ok(nodes)
    })
    .await
    .unwrap();
    assert_eq!(nodes.len(), 2);
    for node in &nodes {
        let claim = claims
            .iter()
            .find(|claim| claim.status.as_ref().unwrap().node_name.as_deref() == Some(&node.name_any()))
            .expect("every node is a claim's");
        let status = claim.status.as_ref().unwrap();
        assert_eq!(node.spec.as_ref().unwrap().provider_id, status.provider_id);
        let offering = status.offering.as_ref().unwrap();
        let (node_name, claim_name) = (node.name_any(), claim.name_any());
        let expected = [
            ("team", "vision"),
            ("node.kubernetes.io/instance-type", "g5.xlarge"),
            ("topology.kubernetes.io/zone", &offering.zone),
            ("topology.kubernetes.io/region", "us-east-1"),
            ("kubernetes.io/hostname", &node_name),
            ("kubernetes.io/arch", "amd64"),
            ("poolwright.dev/capacity-type", "on-demand"),
            ("poolwright.dev/gpu-model", "a10g"),
            ("poolwright.dev/gpu-count", "1"),
            ("poolwright.dev/nodeclaim", &claim_name),
        ];
        for (key, value) in expected {
            assert_eq!(node.labels().get(key).map(String::as_str), Some(value), "label {key}");
        }
        let allocatable = node.status.as_ref().unwrap().allocatable.as_ref().unwrap();
        for (resource, promised) in &status.allocatable {
            let advertised = allocatable.get(resource).map(|amount| amount.0.as_str());
            assert_eq!(advertised, Some(promised.0.as_str()), "{resource} is what was promised");
        }
        assert_eq!(allocatable["nvidia.com/gpu"].0, "1");
    }
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 2);

    // The pods have events, and the pool's status has the right sums.
    for pod in ["one", "two"] {
        let note = cluster.wait_said("Pod", pod, "NodePlanned").await.unwrap();
        assert!(note.contains("g5.xlarge"), "{note}");
    }
    cluster.wait_pool_condition(&name, "Ready", "True").await.unwrap();
    wait_for("the pool's sums", WITHIN, async || {
        let status = cluster.pool(&name).await?.status.context("no status")?;
        let gpus = status.resources.get("nvidia.com/gpu").map(|amount| amount.0.clone());
        ensure!(
            status.nodes == Some(2)
                && status.usd_per_hour.as_deref() == Some("2.012")
                && gpus.as_deref() == Some("2"),
            "{status:?}"
        );
        Ok(())
    })
    .await
    .unwrap();

    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
    wait_for("the pool to cost nothing", WITHIN, async || {
        let status = cluster.pool(&name).await?.status.context("no status")?;
        let cost = status.usd_per_hour.as_deref().map(str::parse::<f64>);
        ensure!(status.nodes == Some(0) && cost == Some(Ok(0.0)), "{status:?}");
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn pods_with_anti_affinity_get_one_node_each() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("apart"), cluster.namespace("apart").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let selector = json!({"matchLabels": {"app": "apart"}});
    let apart = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}]}});
    let small = |pod_name: &str| pod(pod_name, &name, json!({"cpu": "100m", "nvidia.com/gpu": "1"}));
    let mut pods = Vec::new();
    for pod_name in ["apart-1", "apart-2"] {
        let mut pod = small(pod_name);
        pod["metadata"]["labels"] = json!({"app": "apart"});
        pod["spec"]["affinity"] = apart.clone();
        pods.push(pod);
    }
    for pod_name in ["port-1", "port-2"] {
        let mut pod = small(pod_name);
        pod["spec"]["containers"][0]["ports"] = json!([{"containerPort": 8080, "hostPort": 8080}]);
        pods.push(pod);
    }
    cluster.create_pods(&namespace, &pods).await.unwrap();
    let running = cluster.wait_running(&namespace, 4).await.unwrap();
    for kind in ["apart-", "port-"] {
        let homes: Vec<String> = running
            .iter()
            .filter(|pod| pod.name_any().starts_with(kind))
            .map(|pod| pod.spec.as_ref().unwrap().node_name.clone().unwrap())
            .collect();
        assert!(homes.len() == 2 && homes[0] != homes[1], "{kind}: {homes:?}");
    }
    cluster.delete_pods(&namespace).await.unwrap();
    cluster.wait_nothing_left(&name).await.unwrap();
}

#[tokio::test]
async fn a_node_opens_to_its_own_pods_after_its_startup_taint_is_removed() {
    const DRIVER: &str = "example.com/driver-not-ready";
    let cluster = cluster().await;
    let (name, namespace) = (unique("startup"), cluster.namespace("startup").await.unwrap());
    let taint = json!({"key": DRIVER, "effect": "NoSchedule"});
    let pool = node_pool(&name, json!({"template": {"spec": {"startupTaints": [taint]}}}));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();

    // Record every version of every node of the pool, from before the first one exists.
    let opened_early: Arc<Mutex<Vec<String>>> = Arc::default();
    let api: Api<Node> = Api::all(cluster.client.clone());
    let config = watcher::Config::default().labels(&format!("poolwright.dev/nodepool={name}"));
    let mut versions = watcher(api.clone(), config).default_backoff().applied_objects().boxed();
    let reserved: Arc<Mutex<Vec<bool>>> = Arc::default();
    let (found, opened) = (opened_early.clone(), reserved.clone());
    let watch = tokio::spawn(async move {
        while let Ok(Some(node)) = versions.try_next().await {
            let open = node.spec.as_ref().and_then(|spec| spec.unschedulable) != Some(true);
            let keys = taint_keys(&node);
            let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
            if open && opened.is_empty() && node.labels().contains_key("poolwright.dev/registered") {
                opened.push(keys.iter().any(|key| key == "poolwright.dev/reserved"));
            }
            let unregistered = keys.iter().any(|key| key == "poolwright.dev/unregistered");
            if open && !unregistered && keys.iter().any(|key| key == DRIVER) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{keys:?}"));
            }
        }
    });
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
    cluster
        .apply(&namespace, &[pod("train", &name, json!({"cpu": "1", "nvidia.com/gpu": "1"}))])
        .await
        .unwrap();

    let node = wait_for("the node to be registered and to wait for its driver", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        let [claim] = claims.as_slice() else { anyhow::bail!("{} claims", claims.len()) };
        let conditions = claim.status.as_ref().context("no status")?.conditions.clone();
        let initialized = condition(&conditions, "Initialized").context("nothing said yet")?;
        ensure!(initialized.reason == "StartupTaintsPresent", "{initialized:?}");
        ensure!(initialized.message.contains(DRIVER), "the taint is named: {initialized:?}");
        claim.status.as_ref().and_then(|status| status.node_name.clone()).context("no node")
    })
    .await
    .unwrap();
    let closed = api.get(&node).await.unwrap();
    assert_eq!(closed.spec.as_ref().unwrap().unschedulable, Some(true), "cordoned by us");
    assert!(closed.annotations().contains_key("poolwright.dev/cordoned-until"), "and it says by whom");
    assert!(!is_running(&pods.get("train").await.unwrap()));

    let lifted = json!({"spec": {"taints": null}});
    api.patch(&node, &PatchParams::default(), &Patch::Merge(lifted)).await.unwrap();
    let running = cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(running[0].spec.as_ref().unwrap().node_name.as_deref(), Some(node.as_str()));
    watch.abort();
    let claims = cluster.claims(&name).await.unwrap();
    let tolerations = running[0].spec.as_ref().unwrap().tolerations.clone().unwrap_or_default();
    let own = |toleration: &Toleration| toleration.value.as_deref() == Some(&claims[0].name_any());
    assert!(tolerations.iter().any(own), "it was let onto its own node: {tolerations:?}");
    let reserved = reserved.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(reserved, [true], "it was reserved in the write that opened it");
    let early = opened_early.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(early.is_empty(), "the node was open to pods with these taints: {early:?}");
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "one pod, one node");
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_late_pod_shares_a_node_that_is_starting() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("share"), cluster.namespace("share").await.unwrap());
    let class = node_class(&name, json!({"registrationDelay": "4s"}));
    cluster.apply("", &[class, node_pool(&name, json!({}))]).await.unwrap();
    let requests = || json!({"cpu": "1", "memory": "1Gi"});
    let mut first = pod("first", &name, requests());
    first["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = json!("1");
    first["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = json!("1");
    cluster.apply(&namespace, &[first]).await.unwrap();
    wait_for("the claim for the first pod", WITHIN, async || {
        let claims = cluster.claims(&name).await?;
        ensure!(claims.iter().any(|claim| is_true(claim, "Launched")), "{} claims", claims.len());
        Ok(())
    })
    .await
    .unwrap();
    cluster.apply(&namespace, &[pod("second", &name, requests())]).await.unwrap();
    let pods = cluster.wait_running(&namespace, 2).await.unwrap();
    let homes: Vec<_> = pods.iter().map(|pod| pod.spec.as_ref().unwrap().node_name.clone()).collect();
    assert_eq!(homes[0], homes[1], "the room on its way is used before anything is bought");
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1);
    cluster.delete_pods(&namespace).await.unwrap();
}
