//! Limits of namespaces, kept by the real controller in a simulated world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{ResourceName, builtin};
use poolwright_sim::accidents::Rates;
use poolwright_sim::cloud::{NODE_CLASS, NODE_CLASS_KIND, SIM_NODE_CLASS};
use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::Replay;
use poolwright_terms::keys::LIMIT_GPUS_ANNOTATION;
use serde_json::{Value, json};

/// A Job whose pods take one GPU each, and never end.
fn job(namespace: &str, pods: u32) -> JobPlan {
    let amounts = json!({"cpu": "2", "memory": "8Gi", (ResourceName::NVIDIA_GPU): "1"});
    let container =
        json!({"name": "work", "image": "work", "resources": {"requests": amounts, "limits": amounts}});
    let spec = json!({"restartPolicy": "Never", "containers": [container],
        "tolerations": [{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}]});
    let plan = JobPlan::new(format!("train-{namespace}"), Duration::from_secs(1), pods, spec);
    JobPlan { namespace: namespace.to_owned(), ..plan }
}

#[test]
fn a_namespace_gets_nodes_up_to_its_limit_and_another_gets_all_of_its_own() {
    let catalogue = builtin().filtered(|kind, offering| {
        kind.name.as_str() == "g4dn.xlarge" && offering.id.zone.as_str() == "us-east-1a"
    });
    let class = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": NODE_CLASS_KIND,
        "metadata": {"name": NODE_CLASS}, "spec": {}});
    let pool = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": NODE_CLASS_KIND, "name": NODE_CLASS},
            "requirements": [{"key": poolwright_terms::labels::CAPACITY_TYPE, "operator": "In",
                "values": ["on-demand"]}]}}}});
    let namespace = |name: &str, annotations: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}});
    let limited = namespace("ml", json!({(LIMIT_GPUS_ANNOTATION): "8"}));
    let replay = Replay {
        seed: 1,
        rates: Rates::NONE,
        catalogue: Arc::new(catalogue),
        classes: vec![SIM_NODE_CLASS],
        sold: BTreeMap::new(),
        objects: vec![class, pool, limited, namespace("web", json!({}))],
        jobs: vec![job("ml", 100), job("web", 20)],
        min_values: poolwright_core::plan::MinValuesPolicy::Strict,
        default_usd_per_hour: None,
        length: Duration::from_mins(30),
    };
    let history = replay.run(&mut |_| true).expect("it is played");
    let running = |namespace: &str| {
        let theirs = history.pods.iter().filter(|pod| pod.model.key.namespace() == namespace);
        theirs.filter(|pod| pod.bound.is_some()).count()
    };
    assert_eq!((running("ml"), running("web")), (8, 20));
    assert_eq!(history.machines.len(), 28, "nobody spends for others");
    let told = history.waiting.iter().find(|told| told.reason.as_deref() == Some("NamespaceLimitReached"));
    let example = &told.expect("the pods that wait are told why").example;
    assert!(example.contains("limit gpus = 8 of namespace `ml` is reached"), "{example}");
}
