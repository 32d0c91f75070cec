//! Requests that Poolwright cannot fulfil, and how users learn why.

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use poolwright_plane::trial::{Cluster, Controller, Trial, WITHIN, is_running, node_class, node_pool, pod};
use poolwright_plane::{ControlPlane, Options, apply, install_crds, unique, wait_for};
use serde_json::{Value, json};
use std::path::Path;

async fn cluster() -> Cluster {
    Trial::shared(&["--batch-idle", "300ms"]).await.unwrap().cluster().unwrap()
}

fn gpu_pod(name: &str, pool: &str) -> Value {
    pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))
}

#[tokio::test]
async fn a_pool_and_its_pod_report_a_missing_node_class() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("classless"), cluster.namespace("classless").await.unwrap());
    cluster.apply("", &[node_pool(&name, json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("waits-for-class", &name)]).await.unwrap();
    let class = cluster.wait_pool_condition(&name, "NodeClassReady", "False").await.unwrap();
    assert!(class.message.contains(&name) && class.message.contains("create it"), "{class:?}");
    let ready = cluster.wait_pool_condition(&name, "Ready", "False").await.unwrap();
    assert!(ready.message.contains(&name), "{ready:?}");
    let note = cluster.wait_said("Pod", "waits-for-class", "NoUsablePool").await.unwrap();
    assert!(note.contains(&name) && note.contains("does not exist"), "{note}");
    assert!(cluster.claims(&name).await.unwrap().is_empty());

    // Once the class exists, neither the pool nor the pod has to be changed.
    cluster.apply("", &[node_class(&name, json!({}))]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    cluster.wait_pool_condition(&name, "Ready", "True").await.unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_pool_with_contradicting_requirements_buys_nothing_and_names_them() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("contradiction"), cluster.namespace("contradiction").await.unwrap());
    let requirements = json!([
        {"key": "poolwright.dev/instance-family", "operator": "In", "values": ["g5"]},
        {"key": "poolwright.dev/instance-family", "operator": "NotIn", "values": ["g5"]},
    ]);
    let pool = node_pool(&name, json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("contradicted", &name)]).await.unwrap();
    let valid = cluster.wait_pool_condition(&name, "ValidationSucceeded", "False").await.unwrap();
    assert!(valid.message.contains("poolwright.dev/instance-family"), "the requirement is named: {valid:?}");
    cluster.wait_pool_condition(&name, "Ready", "False").await.unwrap();
    let note = cluster.wait_said("Pod", "contradicted", "NoUsablePool").await.unwrap();
    assert!(note.contains(&name) && note.contains("poolwright.dev/instance-family"), "{note}");
    assert!(cluster.claims(&name).await.unwrap().is_empty());
    cluster.delete_pods(&namespace).await.unwrap();
}

async fn only_one_is_bought(limit: Value, named: &str) {
    let cluster = cluster().await;
    let (name, namespace) = (unique("limited"), cluster.namespace("limited").await.unwrap());
    // Only one type is allowed, because the pods would otherwise share one larger node.
    let requirements = json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]},
    ]);
    let template = json!({"spec": {"requirements": requirements}});
    let pool = node_pool(&name, json!({"limits": limit, "template": template}));
    cluster.apply("", &[node_class(&name, json!({})), pool]).await.unwrap();
    let pods: Vec<Value> = (0..3).map(|number| gpu_pod(&format!("{name}-{number}"), &name)).collect();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    let limited = cluster.wait_pool_condition(&name, "LimitReached", "True").await.unwrap();
    assert!(limited.message.contains(named) && limited.message.contains(&name), "{limited:?}");
    let pods = wait_for("one pod to run", WITHIN, async || {
        let pods = cluster.pods(&namespace).await?;
        ensure!(pods.iter().any(is_running), "none runs");
        Ok(pods)
    })
    .await
    .unwrap();
    for waiting in pods.iter().filter(|pod| !is_running(pod)).map(ResourceExt::name_any) {
        let note = cluster.wait_said("Pod", &waiting, "LimitReached").await.unwrap();
        assert!(note.contains(named) && note.contains(&name) && note.contains("raise"), "{note}");
    }
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "what fits is bought, and no more");
    assert_eq!(pods.iter().filter(|pod| is_running(pod)).count(), 1);

    // A reached limit is not final: the first node goes with its pod, and the next pod gets a node.
    let first = pods.iter().find(|pod| is_running(pod)).map(ResourceExt::name_any).unwrap();
    cluster.delete_pod(&namespace, &first).await.unwrap();
    wait_for("another pod to run in its place", WITHIN, async || {
        let running: Vec<String> = cluster
            .pods(&namespace)
            .await?
            .iter()
            .filter(|pod| is_running(pod))
            .map(ResourceExt::name_any)
            .collect();
        ensure!(!running.is_empty() && !running.contains(&first), "{running:?}");
        Ok(())
    })
    .await
    .unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_pool_buys_up_to_its_node_limit_and_reports_the_limit() {
    only_one_is_bought(json!({"nodes": 1}), "nodes = 1").await;
}

#[tokio::test]
async fn a_pool_buys_up_to_its_cost_limit_and_reports_the_limit() {
    only_one_is_bought(json!({"usdPerHour": "1.9"}), "usdPerHour = 1.9").await;
}

#[tokio::test]
async fn unsatisfiable_pod_affinity_is_reported_and_other_pods_get_nodes() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("company"), cluster.namespace("company").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let selector = json!({"matchLabels": {"app": "nobody"}});
    let over_racks = json!([{"maxSkew": 1, "topologyKey": "example.com/rack",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]);
    let with_nobody = json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": selector, "topologyKey": "topology.kubernetes.io/zone"}]}});
    let rules = [
        ("racks", "topologySpreadConstraints", over_racks, "`example.com/rack`", "add the label to a pool"),
        ("lonely", "affinity", with_nobody, "`topology.kubernetes.io/zone`", "create those pods first"),
    ];
    let elsewhere = cluster.namespace("served").await.unwrap();
    cluster.create_pods(&elsewhere, &[gpu_pod("fine", &name)]).await.unwrap();
    let mut pods = Vec::new();
    for (pod_name, field, rule, ..) in &rules {
        let mut pod = gpu_pod(pod_name, &name);
        pod["spec"][*field] = rule.clone();
        pods.push(pod);
    }
    cluster.create_pods(&namespace, &pods).await.unwrap();
    for (pod, _, _, what, next) in &rules {
        let note = cluster.wait_said("Pod", pod, "TopologyRule").await.unwrap();
        assert!(note.contains(what) && note.contains(next), "{pod}: {note}");
    }
    cluster.wait_running(&elsewhere, 1).await.unwrap();
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "for the pod that is fine");
}

#[tokio::test]
async fn a_pod_with_an_unmodelled_rule_is_ignored_and_an_event_names_the_rule() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("rules"), cluster.namespace("rules").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let rules = [
        (
            "names-disk",
            "volumes",
            json!([{"name": "data", "gcePersistentDisk": {"pdName": "data"}}]),
            "spec.volumes[0].gcePersistentDisk",
            "a disk by name",
        ),
        (
            "claims-device",
            "resourceClaims",
            json!([{"name": "gpu", "resourceClaimName": "gpu"}]),
            "spec.resourceClaims",
            "dynamic resource allocation",
        ),
    ];
    // Without the claim the scheduler would not even try its pod.
    let device = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "gpu"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}});
    let class = json!({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass",
        "metadata": {"name": "gpu.example.com"}, "spec": {}});
    cluster.apply(&namespace, &[class, device]).await.unwrap();
    let pods: Vec<Value> = rules
        .iter()
        .map(|(pod_name, field, rule, ..)| {
            let mut pod = gpu_pod(pod_name, &name);
            pod["spec"][*field] = rule.clone();
            pod
        })
        .collect();
    cluster.create_pods(&namespace, &pods).await.unwrap();
    for (pod, _, _, field, rule) in &rules {
        let note = cluster.wait_said("Pod", pod, "UnmodelledRule").await.unwrap();
        assert!(note.contains(field) && note.contains(rule), "{pod}: {note}");
    }
    assert!(
        cluster.claims(&name).await.unwrap().is_empty(),
        "nothing is bought as if the rule were not there"
    );
    assert!(!cluster.pods(&namespace).await.unwrap().iter().any(is_running));
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn an_event_tells_an_unplaceable_pod_the_nearest_miss() {
    let cluster = cluster().await;
    let (name, namespace) = (unique("miss"), cluster.namespace("miss").await.unwrap());
    cluster.apply("", &[node_class(&name, json!({})), node_pool(&name, json!({}))]).await.unwrap();
    let mut model = pod("wants-h100", &name, json!({"cpu": "1", "nvidia.com/gpu": "8"}));
    model["spec"]["nodeSelector"]["poolwright.dev/gpu-model"] = json!("h100");
    let large = pod("wants-much", &name, json!({"cpu": "500"}));
    cluster.apply(&namespace, &[model, large]).await.unwrap();
    let note = cluster.wait_said("Pod", "wants-h100", "NoOfferingFits").await.unwrap();
    let lines: Vec<&str> = note.lines().collect();
    let needs = format!("needs 8 x h100 in one node; pool `{name}` allows only a10g");
    let advice = "; widen the pool's requirements so that it may buy p5.48xlarge ($";
    assert!(lines[0].starts_with(&(needs + advice)), "{}", lines[0]);
    let story = ["8 x nvidia.com/gpu", "Considered ", "Ruled out: ", "Nearest miss: "];
    for (line, part) in lines[1..].iter().zip(story) {
        assert!(line.contains(part), "{part} in {note}");
    }
    assert_eq!(lines.len(), 1 + story.len(), "{note}");
    assert!(lines[4].contains("To change that: "), "it says what to do: {note}");
    let note = cluster.wait_said("Pod", "wants-much", "NoOfferingFits").await.unwrap();
    assert!(note.contains("needs 500 cpu in one node") && note.contains("g5.48xlarge"), "{note}");
    assert!(cluster.claims(&name).await.unwrap().is_empty());
    cluster.delete_pods(&namespace).await.unwrap();
}

/// Installs our CRDs with a schema that accepts everything, like an old version of the CRDs might.
async fn install_lax_crds(plane: &ControlPlane, crds: &Path) {
    let client = plane.client().unwrap();
    install_crds(&client, crds).await.unwrap();
    let api: Api<CustomResourceDefinition> = Api::all(client);
    for name in ["nodepools.poolwright.dev", "nodeclaims.poolwright.dev"] {
        let mut crd = api.get(name).await.unwrap();
        for version in &mut crd.spec.versions {
            version.schema = serde_json::from_value(
                json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
            )
            .unwrap();
        }
        api.replace(name, &PostParams::default(), &crd).await.unwrap();
    }
}

#[tokio::test]
async fn unreadable_objects_do_not_stop_the_controller() {
    let plane = ControlPlane::start(Options::everything()).await.unwrap();
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    install_lax_crds(&plane, &crds).await;
    let cluster = Cluster::new(plane.client().unwrap());
    let malformed = [
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "no-pool"},
            "spec": {"template": "none", "weight": "heavy"}}),
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodeClaim", "metadata": {"name": "no-claim"},
            "spec": {"offerings": 7}}),
    ];
    for object in &malformed {
        wait_for("the lax schema to be served", WITHIN, async || {
            apply(&cluster.client, "", &object.to_string()).await
        })
        .await
        .unwrap();
    }
    install_crds(&cluster.client, &crds).await.unwrap();
    let node: Node = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "absurd"},
        "status": {"allocatable": {"cpu": "9E", "memory": "9223372036854775807", "nvidia.com/gpu": "1", "pods": "110"}},
    }))
    .unwrap();
    Api::all(cluster.client.clone()).create(&PostParams::default(), &node).await.unwrap();

    let mut controller = Controller::start(&plane, "controller", &["--batch-idle", "300ms"]).unwrap();
    let namespace = cluster.namespace("malformed").await.unwrap();
    cluster.apply("", &[node_class("good", json!({})), node_pool("good", json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("fine", "good")]).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), &namespace);
    wait_for("the pod of the good pool to run", WITHIN, async || {
        controller.ensure_running()?;
        ensure!(is_running(&pods.get("fine").await?), "it waits");
        Ok(())
    })
    .await
    .unwrap();
    for (kind, name) in [("NodePool", "no-pool"), ("NodeClaim", "no-claim")] {
        let series = format!(r#"poolwright_malformed_objects_total{{kind="{kind}"}}"#);
        assert!(controller.metric(&series).await.unwrap() >= 1.0, "{kind} is counted");
        let note = cluster.wait_said(kind, name, "Unreadable").await.unwrap();
        assert!(note.contains("leaves it out"), "{note}");
    }

    // The same for an object created while the controller runs, and for one that was valid before.
    let claim: Value = serde_json::to_value(
        cluster.claims("good").await.unwrap().first().context("the good pool has a claim").unwrap(),
    )
    .unwrap();
    assert_eq!(claim["status"]["offering"]["instanceType"], json!("g5.xlarge"));
    cluster.apply(&namespace, &[gpu_pod("fine-too", "good")]).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();
    controller.ensure_running().unwrap();
}
