//! Plans follow the configuration file of kube-scheduler. The scheduler of the control plane reads the same file.

use std::collections::BTreeMap;

use anyhow::ensure;
use kube::ResourceExt;
use poolwright_plane::trial::{
    Cluster, Controller, Trial, WITHIN, is_running, node_class, node_pool, run_plan,
};
use poolwright_plane::{Options, wait_for};
use serde_json::{Value, json};

/// Profiles that spread pods over zones by default, and keep them on nodes of their team.
const PROFILES: &str = "\
- schedulerName: default-scheduler
  pluginConfig:
  - name: PodTopologySpread
    args:
      defaultingType: List
      defaultConstraints:
      - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms:
          - matchExpressions: [{key: example.com/team, operator: In, values: [web]}]
";

fn pool(name: &str, kind: &str, labels: Value) -> Value {
    let requirements = json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind]},
    ]);
    node_pool(
        name,
        json!({"template": {"metadata": {"labels": labels}, "spec": {"requirements": requirements}}}),
    )
}

fn deployment(name: &str, replicas: u32) -> Value {
    let container =
        json!({"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]},
            },
        },
    })
}

#[tokio::test]
async fn the_plan_follows_default_spreading_and_added_affinity_of_the_scheduler() {
    let options = Options::everything().with_profiles(PROFILES);
    let plane = Trial::plane_with(options).await.unwrap();
    let cluster = Cluster::new(plane.client().unwrap());
    let namespace = cluster.namespace("profiles").await.unwrap();
    let pools = [
        pool("cheap", "g5.xlarge", json!({})),
        pool("team", "g5.2xlarge", json!({"example.com/team": "web"})),
    ];
    cluster.apply("", &[node_class("cheap", json!({})), node_class("team", json!({}))]).await.unwrap();
    cluster.apply("", &pools).await.unwrap();
    cluster.apply(&namespace, &[deployment("web", 3)]).await.unwrap();

    let kubeconfig = plane.kubeconfig_path().display().to_string();
    let config = plane.scheduler_config_path().display().to_string();
    let plan = wait_for("a plan for all pods, once the scheduler has given them up", WITHIN, async || {
        let plan = run_plan(&["--scheduler-config", &config], &[("KUBECONFIG", &kubeconfig)])?;
        ensure!(plan["pods"] == json!({"total": 3, "placed": 3, "unplaced": 0}), "{plan}");
        Ok(plan)
    })
    .await
    .unwrap();
    let planned: BTreeMap<String, &str> = plan["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| (node["zone"].as_str().unwrap().to_owned(), node["instanceType"].as_str().unwrap()))
        .collect();
    assert_eq!(planned.len(), 3, "a zone for each pod: {plan}");
    assert!(planned.values().all(|kind| *kind == "g5.2xlarge"), "the dearer pool has the label: {plan}");

    let flags = ["--batch-idle", "300ms", "--scheduler-config", &config];
    let mut controller = Controller::start(&plane, "controller", &flags).unwrap();
    wait_for("the pods to run", WITHIN, async || {
        controller.ensure_running()?;
        let running = cluster.pods(&namespace).await?.iter().filter(|pod| is_running(pod)).count();
        ensure!(running == 3, "{running} run");
        Ok(())
    })
    .await
    .unwrap();
    let nodes = cluster.nodes("team").await.unwrap();
    let mut zones: Vec<String> =
        nodes.iter().map(|node| node.labels()["topology.kubernetes.io/zone"].clone()).collect();
    zones.sort();
    assert_eq!(zones, planned.keys().cloned().collect::<Vec<_>>(), "the zones of the plan, one node in each");
    assert!(cluster.claims("cheap").await.unwrap().is_empty(), "nothing without the label");
    assert_eq!(cluster.claims("team").await.unwrap().len(), 3, "and nothing twice");
    let homes: Vec<_> = cluster
        .pods(&namespace)
        .await
        .unwrap()
        .iter()
        .filter_map(|pod| pod.spec.as_ref()?.node_name.clone())
        .collect();
    assert!(nodes.iter().all(|node| homes.contains(&node.name_any())), "a pod on each: {homes:?}");
}
