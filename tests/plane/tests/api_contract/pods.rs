//! Contract cases about pods: allowed changes, bindings, graceful deletion, evictions.

use serde_json::{Value, json};

use super::ask::Asker;
use super::compare;

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {
        "automountServiceAccountToken": false,
        "containers": [{"name": "main", "image": "example.com/image:1", "imagePullPolicy": "Always",
            "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}}]}})
}

#[tokio::test]
async fn the_server_defaults_pods_and_rejects_changes_of_immutable_fields() {
    compare("pods", |mut ask: Asker| async move {
        let pods = ask.core("pods");
        let one = format!("{pods}/one");
        ask.post(&pods, pod("one")).await;
        let tolerations = ask.get(&one).await.object["spec"]["tolerations"].clone();
        let mut more = tolerations.as_array().cloned().unwrap_or_default();
        more.push(json!({"key": "mine", "operator": "Exists", "effect": "NoSchedule"}));
        ask.merge(&one, json!({"spec": {"tolerations": more}})).await;
        ask.merge(&one, json!({"spec": {"tolerations": tolerations}})).await;
        ask.merge(&one, json!({"spec": {"nodeSelector": {"a": "b"}}})).await;
        ask.merge(&one, json!({"metadata": {"annotations": {"note": "1"}}})).await;
        ask.merge(&format!("{one}/status"), json!({"status": {"nominatedNodeName": "node"}})).await;
        ask.merge(&format!("{one}/status"), json!({"status": {"nominatedNodeName": null}})).await;
        // Writes the status to the pod itself, and the spec to the status subresource.
        ask.merge(&one, json!({"status": {"phase": "Running"}})).await;
        ask.merge(&format!("{one}/status"), json!({"spec": {"priority": 7}, "status": {"message": "hello"}}))
            .await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_pod_binds_once_and_only_without_scheduling_gates() {
    compare("binding", |mut ask: Asker| async move {
        let pods = ask.core("pods");
        let binding = |pod: &str, node: &str| {
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        };
        ask.post(&pods, pod("one")).await;
        ask.post(&format!("{pods}/one/binding"), binding("one", "node-a")).await;
        let bound = ask.get(&format!("{pods}/one")).await;
        ask.note("it is there", bound.object["spec"]["nodeName"].clone());
        ask.post(&format!("{pods}/one/binding"), binding("one", "node-b")).await;
        ask.post(&format!("{pods}/absent/binding"), binding("absent", "node-b")).await;
        let mut gated = pod("gated");
        gated["spec"]["schedulingGates"] = json!([{"name": "example.com/wait"}]);
        ask.post(&pods, gated).await;
        ask.post(&format!("{pods}/gated/binding"), binding("gated", "node-a")).await;
        let gates = |gates: Value| json!({"spec": {"schedulingGates": gates}});
        ask.merge(&format!("{pods}/gated"), gates(json!([{"name": "example.com/more"}]))).await;
        ask.merge(&format!("{pods}/gated"), gates(json!([]))).await;
        ask.post(&format!("{pods}/gated/binding"), binding("gated", "node-a")).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_running_pod_ends_gracefully_and_a_waiting_pod_ends_at_once() {
    compare("grace", |mut ask: Asker| async move {
        let pods = ask.core("pods");
        let on_node = |name: &str| {
            let mut pod = pod(name);
            pod["spec"]["nodeName"] = json!("node-a");
            pod
        };
        ask.post(&pods, pod("waits")).await;
        ask.delete(&format!("{pods}/waits"), json!({})).await;
        ask.get(&format!("{pods}/waits")).await;
        ask.post(&pods, on_node("runs")).await;
        let one = format!("{pods}/runs");
        ask.delete(&one, json!({"gracePeriodSeconds": 60})).await;
        ask.delete(&one, json!({"gracePeriodSeconds": 90})).await;
        ask.delete(&one, json!({"gracePeriodSeconds": 20})).await;
        ask.delete(&one, json!({"gracePeriodSeconds": 0})).await;
        ask.get(&one).await;
        ask.post(&pods, on_node("done")).await;
        ask.merge(&format!("{pods}/done/status"), json!({"status": {"phase": "Succeeded"}})).await;
        ask.delete(&format!("{pods}/done"), json!({})).await;
        ask.get(&format!("{pods}/done")).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn evictions_respect_disruption_budgets() {
    compare("evictions", |mut ask: Asker| async move {
        let pods = ask.core("pods");
        let budgets = format!("/apis/policy/v1/namespaces/{}/poddisruptionbudgets", ask.namespace);
        let selector = json!({"matchLabels": {"app": "web"}});
        let budget = |name: &str| json!({"metadata": {"name": name}, "spec": {"minAvailable": 1, "selector": selector}});
        ask.post(&budgets, budget("first")).await;
        for name in ["a", "b", "c", "d"] {
            let mut running = pod(name);
            running["spec"]["nodeName"] = json!("node-a");
            ask.post(&pods, running).await;
        }
        let running = |ready: &str| {
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}})
        };
        for (name, ready) in [("a", "True"), ("b", "True"), ("d", "False")] {
            ask.merge(&format!("{pods}/{name}/status"), running(ready)).await;
        }
        let evict = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
        // A budget without a status allows no eviction. Then it allows one.
        ask.post(&format!("{pods}/a/eviction"), evict("a")).await;
        let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2,
            "desiredHealthy": 1, "expectedPods": 2}});
        ask.merge(&format!("{budgets}/first/status"), status).await;
        ask.post(&format!("{pods}/a/eviction"), evict("a")).await;
        ask.post(&format!("{pods}/b/eviction"), evict("b")).await;
        let spent = ask.get(&format!("{budgets}/first")).await;
        ask.note("one was taken", spent.object["status"]["disruptionsAllowed"].clone());
        // Evicting a pod that is not ready takes nothing from the budget.
        ask.post(&format!("{pods}/d/eviction"), evict("d")).await;
        // A pod that is being deleted, one that is not running yet, one that does not exist, and one with two budgets.
        ask.post(&format!("{pods}/a/eviction"), evict("a")).await;
        ask.post(&format!("{pods}/c/eviction"), evict("c")).await;
        ask.post(&format!("{pods}/absent/eviction"), evict("absent")).await;
        ask.post(&budgets, budget("second")).await;
        ask.post(&format!("{pods}/b/eviction"), evict("b")).await;
        ask.transcript
    })
    .await;
}
