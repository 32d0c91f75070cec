//! Limits of namespaces, kept by the real controller in a simulated world.

use std::time::Duration;

use poolwright_sim::cluster::JobPlan;
use poolwright_terms::keys::LIMIT_GPUS_ANNOTATION;
use serde_json::{Value, json};

use crate::kit;

/// A Job whose pods take one GPU each, and never end.
fn job(namespace: &str, pods: u32) -> JobPlan {
    let plan = JobPlan::new(format!("train-{namespace}"), Duration::from_secs(1), pods, kit::gpu_pod(1));
    JobPlan { namespace: namespace.to_owned(), ..plan }
}

#[test]
fn a_namespace_gets_nodes_up_to_its_limit_and_another_gets_all_of_its_own() {
    let namespace = |name: &str, annotations: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}});
    let limited = namespace("ml", json!({(LIMIT_GPUS_ANNOTATION): "8"}));
    let replay = kit::replay(
        &["g4dn.xlarge"],
        None,
        vec![limited, namespace("web", json!({}))],
        vec![job("ml", 100), job("web", 20)],
    );
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
