//! Contract cases about lists.

use axum::http::Method;
use serde_json::{Value, json};

use super::ask::Asker;
use super::compare;

async fn some_maps(ask: &mut Asker) -> String {
    let maps = ask.core("configmaps");
    for (name, tier) in [("a", "front"), ("b", "back"), ("c", "front"), ("d", "front")] {
        ask.post(&maps, json!({"metadata": {"name": name, "labels": {"tier": tier}}})).await;
    }
    maps
}

#[tokio::test]
async fn all_pages_of_a_list_show_the_same_version() {
    compare("pages", |mut ask: Asker| async move {
        let maps = some_maps(&mut ask).await;
        let first = ask.get(&format!("{maps}?limit=2&labelSelector=tier")).await;
        let metadata = first.object["metadata"].clone();
        ask.post(&maps, json!({"metadata": {"name": "e", "labels": {"tier": "front"}}})).await;
        let token = metadata["continue"].as_str().unwrap_or_default().to_owned();
        let second = ask.get(&format!("{maps}?limit=2&labelSelector=tier&continue={token}")).await;
        let same = metadata["resourceVersion"] == second.object["metadata"]["resourceVersion"];
        ask.note("both pages are of one version", same);
        ask.get(&format!("{maps}?limit=10&labelSelector=tier")).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_list_contains_only_selected_objects() {
    compare("selectors", |mut ask: Asker| async move {
        let maps = some_maps(&mut ask).await;
        for query in [
            "labelSelector=tier%3Dfront",
            "labelSelector=tier%20in%20(back,side)",
            "labelSelector=tier!%3Dfront,tier",
            "fieldSelector=metadata.name%3Db",
            "fieldSelector=data.k%3Db",
            "labelSelector=a%20b",
        ] {
            ask.get(&format!("{maps}?{query}")).await;
        }
        let pods = ask.core("pods");
        for (name, node) in [("one", "node-a"), ("two", "")] {
            let mut pod = json!({"metadata": {"name": name}, "spec": {"automountServiceAccountToken": false,
                "containers": [{"name": "main", "image": "example.com/image:1", "imagePullPolicy": "Always"}]}});
            if !node.is_empty() {
                pod["spec"]["nodeName"] = json!(node);
            }
            ask.post(&pods, pod).await;
        }
        ask.merge(&format!("{pods}/one/status"), json!({"status": {"phase": "Failed"}})).await;
        for query in [
            "fieldSelector=spec.nodeName%3Dnode-a",
            "fieldSelector=spec.nodeName%3D",
            "fieldSelector=status.phase!%3DSucceeded,status.phase!%3DFailed",
        ] {
            ask.get(&format!("{pods}?{query}")).await;
        }
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_client_can_read_only_metadata() {
    compare("metadata", |mut ask: Asker| async move {
        let maps = some_maps(&mut ask).await;
        let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        let one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        ask.ask_for(list, Method::GET, &format!("{maps}?labelSelector=tier%3Dback"), ("", Value::Null)).await;
        ask.ask_for(one, Method::GET, &format!("{maps}/a"), ("", Value::Null)).await;
        ask.transcript
    })
    .await;
}
