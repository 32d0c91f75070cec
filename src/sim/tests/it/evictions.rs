//! The rule by which the planner knows which pods the API server evicts, against the rule of the simulated server. They share no code.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::Client;
use kube::api::{Api, EvictParams, Patch, PatchParams, PostParams};
use poolwright_core::rules::eviction::Eviction;
use poolwright_provider_contract::crds;
use poolwright_sim::api::ApiServer;
use poolwright_sim::cloud::SIM_NODE_CLASS;
use serde_json::{Value, json};

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("it is such an object")
}

/// A pod and the budgets that select it.
struct Case<'a> {
    /// The name of the pod.
    name: String,
    /// The status of the pod.
    pod: &'a Value,
    /// `unhealthyPodEvictionPolicy` of each budget.
    policy: Option<&'a str>,
    /// The status of each budget.
    budget: &'a Value,
    budgets: usize,
}

/// Returns whether the server evicts the pod, and whether the planner expects that.
async fn evicts(client: &Client, case: &Case<'_>) -> (bool, bool) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let guards: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "default");
    let (created, patched) = (PostParams::default(), PatchParams::default());
    let app = &case.name;
    let pod = json!({"metadata": {"name": app, "labels": {"app": app}},
        "spec": {"nodeName": "n", "containers": [{"name": "main", "image": "main"}]}});
    pods.create(&created, &object(pod)).await.expect("the pod is created");
    let status = Patch::Merge(json!({"status": case.pod}));
    let pod = pods.patch_status(app, &patched, &status).await.expect("the pod has a status");
    let mut selecting = Vec::new();
    for at in 0..case.budgets {
        let name = format!("{app}-{at}");
        let mut spec = json!({"selector": {"matchLabels": {"app": app}}, "maxUnavailable": 1});
        if let Some(policy) = case.policy {
            spec["unhealthyPodEvictionPolicy"] = json!(policy);
        }
        let budget = json!({"metadata": {"name": name}, "spec": spec});
        guards.create(&created, &object(budget)).await.expect("the budget is created");
        let status = Patch::Merge(json!({"status": case.budget}));
        let budget = guards.patch_status(&name, &patched, &status).await.expect("the budget has a status");
        selecting.push(poolwright_intake::budget(&budget).expect("a budget"));
    }
    let expected = match Eviction::of(&poolwright_intake::pod(&pod).expect("a pod"), &selecting) {
        Eviction::Free => true,
        Eviction::Takes(budget) => budget.allowed.unwrap_or(0) > 0,
        Eviction::Never(_) => false,
    };
    (pods.evict(app, &EvictParams::default()).await.is_ok(), expected)
}

#[tokio::test]
async fn the_planner_expects_exactly_the_evictions_that_the_api_server_grants() {
    let ready = |status: &str| json!([{"type": "Ready", "status": status}]);
    let pods = [
        json!({"phase": "Pending"}),
        json!({"phase": "Running", "conditions": ready("True")}),
        json!({"phase": "Running", "conditions": ready("False")}),
        json!({"phase": "Unknown", "conditions": ready("Unknown")}),
        json!({"phase": "Running"}),
        json!({"phase": "Succeeded"}),
    ];
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
    let client = ApiServer::new(&crds([SIM_NODE_CLASS]), Arc::new(move || now)).client();
    let (mut granted, mut refused) = (0, 0);
    for pod in &pods {
        for policy in [None, Some("IfHealthyBudget"), Some("AlwaysAllow")] {
            for (observed, allowed, healthy, desired) in
                [(1, 0, 1, 2), (1, 0, 2, 2), (1, 0, 0, 0), (1, 1, 3, 2), (0, 1, 3, 2), (0, 1, 1, 2)]
            {
                let budget = json!({"observedGeneration": observed, "disruptionsAllowed": allowed,
                    "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": 3});
                for budgets in 0..3 {
                    let name = format!("p{}", granted + refused);
                    let case = Case { name, pod, policy, budget: &budget, budgets };
                    let (is_evicted, is_expected) = evicts(&client, &case).await;
                    assert_eq!(is_evicted, is_expected, "{pod} {policy:?} {budget} {budgets}");
                    granted += usize::from(is_evicted);
                    refused += usize::from(!is_evicted);
                }
            }
        }
    }
    assert!(granted > 50 && refused > 50, "{granted} {refused}");
}
