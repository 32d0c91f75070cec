//! Contract cases about the scale subresource.

use axum::http::Method;
use serde_json::{Value, json};

use super::ask::Asker;
use super::compare;

fn workload(kind: &str) -> Value {
    let expressions = json!([{"key": "tier", "operator": "In", "values": ["b", "a"]},
        {"key": "extra", "operator": "DoesNotExist"}, {"key": "app", "operator": "Exists"}]);
    let selector = json!({"matchLabels": {"app": "web"}, "matchExpressions": expressions});
    let container = json!({"name": "main", "image": "none"});
    let template =
        json!({"metadata": {"labels": {"app": "web", "tier": "a"}}, "spec": {"containers": [container]}});
    let mut spec = json!({"replicas": 2, "selector": selector, "template": template});
    if kind == "StatefulSet" {
        spec["serviceName"] = json!("web");
    }
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn the_scale_subresource_changes_only_replicas() {
    compare("scale", |mut ask: Asker| async move {
        for (plural, kind) in
            [("deployments", "Deployment"), ("replicasets", "ReplicaSet"), ("statefulsets", "StatefulSet")]
        {
            let all = format!("/apis/apps/v1/{}", ask.core(plural).trim_start_matches("/api/v1/"));
            let (one, scale) = (format!("{all}/web"), format!("{all}/web/scale"));
            ask.post(&all, workload(kind)).await;
            // The created object is not compared, because its defaults are not the subject here.
            let _ = ask.transcript.pop();
            let first = ask.get(&scale).await;
            let mut wanted = first.object.clone();
            wanted["spec"]["replicas"] = json!(5);
            ask.put(&scale, wanted.clone()).await;
            // The version is outdated by now.
            wanted["spec"]["replicas"] = json!(6);
            ask.put(&scale, wanted.clone()).await;
            wanted["metadata"] = json!({"name": "web"});
            ask.put(&scale, wanted.clone()).await;
            ask.merge(&scale, json!({"spec": {"replicas": 3}})).await;
            ask.patch(&scale, json!([{"op": "replace", "path": "/spec/replicas", "value": 4}])).await;
            ask.merge(&format!("{scale}?dryRun=All"), json!({"spec": {"replicas": 9}})).await;
            let now = ask.get(&one).await;
            let _ = ask.transcript.pop();
            ask.note("replicas", now.object["spec"]["replicas"].clone());
            ask.note("generation", now.object["metadata"]["generation"].clone());
            // Zero replicas, a negative number, another name, and a missing workload.
            ask.merge(&scale, json!({"spec": {"replicas": 0}})).await;
            ask.merge(&scale, json!({"spec": {"replicas": -1}})).await;
            ask.put(&scale, json!({"metadata": {"name": "other"}, "spec": {"replicas": 1}})).await;
            ask.get(&format!("{all}/absent/scale")).await;
            ask.merge(&format!("{all}/absent/scale"), json!({"spec": {"replicas": 1}})).await;
            ask.ask(Method::POST, &scale, "application/json", json!({})).await;
        }
        let maps = ask.core("configmaps");
        ask.post(&maps, json!({"metadata": {"name": "one"}})).await;
        ask.get(&format!("{maps}/one/scale")).await;
        ask.transcript
    })
    .await;
}
