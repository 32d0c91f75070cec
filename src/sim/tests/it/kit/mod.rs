//! Replays of Jobs on on-demand GPU nodes of one zone, and waiting in worlds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use poolwright_catalog::{ResourceName, builtin};
use poolwright_core::plan::MinValuesPolicy;
use poolwright_sim::accidents::Rates;
use poolwright_sim::cloud::{NODE_CLASS, NODE_CLASS_KIND, SIM_NODE_CLASS};
use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::Replay;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

/// Returns the spec of a pod that takes this many GPUs.
pub fn gpu_pod(gpus: u64) -> Value {
    let amounts = json!({"cpu": "2", "memory": "8Gi", (ResourceName::NVIDIA_GPU): gpus.to_string()});
    let container =
        json!({"name": "work", "image": "work", "resources": {"requests": amounts, "limits": amounts}});
    json!({"restartPolicy": "Never", "containers": [container],
        "tolerations": [{"key": ResourceName::NVIDIA_GPU, "operator": "Exists"}]})
}

/// Returns a replay of Jobs with one pool of these instance types, whose nodes are terminated this long after their last pod.
pub fn replay(kinds: &[&str], after: Option<&str>, more: Vec<Value>, jobs: Vec<JobPlan>) -> Replay {
    let catalogue = builtin().filtered(|kind, offering| {
        kinds.contains(&kind.name.as_str()) && offering.id.zone.as_str() == "us-east-1a"
    });
    let class = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": NODE_CLASS_KIND,
        "metadata": {"name": NODE_CLASS}, "spec": {}});
    let mut pool = json!({"apiVersion": poolwright_terms::API_VERSION, "kind": "NodePool", "metadata": {"name": "gpu"},
        "spec": {"template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": NODE_CLASS_KIND, "name": NODE_CLASS},
            "requirements": [{"key": poolwright_terms::labels::CAPACITY_TYPE, "operator": "In",
                "values": ["on-demand"]}]}}}});
    if let Some(after) = after {
        pool["spec"]["scaleToZero"] = json!({"after": after});
    }
    Replay {
        seed: 1,
        rates: Rates::NONE,
        catalogue: Arc::new(catalogue),
        classes: vec![SIM_NODE_CLASS],
        sold: BTreeMap::new(),
        objects: [class, pool].into_iter().chain(more).collect(),
        jobs,
        min_values: MinValuesPolicy::Strict,
        default_usd_per_hour: None,
        length: Duration::from_mins(30),
    }
}

/// Waits until a state is reached, and fails if that takes longer than `limit`.
pub async fn wait_until(what: &str, limit: Duration, reached: impl Fn() -> bool) {
    let waiting = async {
        while !reached() {
            sleep(Duration::from_millis(100)).await;
        }
    };
    assert!(timeout(limit, waiting).await.is_ok(), "not within {limit:?}: {what}");
}
