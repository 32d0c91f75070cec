//! Contract cases about watches.

use serde_json::{Value, json};

use super::ask::Asker;
use super::{compare, in_memory};

/// Returns the resource version of a list.
async fn version(ask: &mut Asker, path: &str) -> String {
    let list = ask.get(path).await;
    let _ = ask.transcript.pop();
    list.version().to_owned()
}

#[tokio::test]
async fn a_watch_reports_all_later_changes_in_order() {
    compare("watch", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        let since = version(&mut ask, &maps).await;
        let one = format!("{maps}/one");
        ask.post(&maps, json!({"metadata": {"name": "one", "labels": {"tier": "front"}}})).await;
        ask.merge(&one, json!({"data": {"k": "1"}})).await;
        ask.merge(&one, json!({"data": {"k": "1"}})).await;
        ask.merge(&one, json!({"metadata": {"labels": {"tier": "back"}}})).await;
        ask.merge(&one, json!({"metadata": {"labels": {"tier": "front"}}})).await;
        ask.delete(&one, json!({})).await;
        let from = format!("{maps}?watch=true&resourceVersion={since}&labelSelector=app!%3Dnobody,tier");
        ask.watch(&from, 5).await;
        // A selecting watch reports objects that begin to match as added, and objects that no longer match as deleted.
        let from = format!("{maps}?watch=true&resourceVersion={since}&labelSelector=tier%3Dfront");
        let events = ask.watch(&from, 5).await;
        let what: Vec<Value> = events.iter().map(|event| event["type"].clone()).collect();
        ask.note("what it saw", what);
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_watch_reports_deletions_of_pods_and_of_objects_with_finalizers() {
    compare("going", |mut ask: Asker| async move {
        let (maps, pods) = (ask.core("configmaps"), ask.core("pods"));
        let (since, of_pods) = (version(&mut ask, &maps).await, version(&mut ask, &pods).await);
        let labels = json!({"mine": "yes"});
        let held = json!({"metadata": {"name": "held", "labels": labels, "finalizers": ["example.com/mine"]}});
        ask.post(&maps, held).await;
        ask.delete(&format!("{maps}/held"), json!({})).await;
        ask.merge(&format!("{maps}/held"), json!({"metadata": {"finalizers": null}})).await;
        ask.watch(&format!("{maps}?watch=true&resourceVersion={since}&labelSelector=mine"), 3).await;
        for (name, node) in [("waits", None), ("runs", Some("node-a"))] {
            let mut pod = json!({"metadata": {"name": name, "labels": labels}, "spec": {
                "automountServiceAccountToken": false,
                "containers": [{"name": "main", "image": "example.com/image:1", "imagePullPolicy": "Always"}]}});
            if let Some(node) = node {
                pod["spec"]["nodeName"] = json!(node);
            }
            ask.post(&pods, pod).await;
            ask.delete(&format!("{pods}/{name}"), json!({})).await;
        }
        ask.delete(&format!("{pods}/runs"), json!({"gracePeriodSeconds": 0})).await;
        let events =
            ask.watch(&format!("{pods}?watch=true&resourceVersion={of_pods}&labelSelector=mine"), 7).await;
        let what: Vec<Value> = events.iter().map(|event| event["type"].clone()).collect();
        ask.note("what it saw", what);
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    compare("streamed", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        for name in ["a", "b"] {
            ask.post(&maps, json!({"metadata": {"name": name, "labels": {"mine": "yes"}}})).await;
        }
        let query = "watch=true&labelSelector=mine&sendInitialEvents=true&allowWatchBookmarks=true";
        ask.watch(&format!("{maps}?{query}&resourceVersionMatch=NotOlderThan"), 3).await;
        // A watch from version 0 starts with the existing objects, without a bookmark.
        ask.watch(&format!("{maps}?watch=true&labelSelector=mine&resourceVersion=0"), 2).await;
        ask.transcript
    })
    .await;
}

#[tokio::test]
async fn the_server_rejects_an_invalid_or_future_version() {
    compare("versions", |mut ask: Asker| async move {
        let maps = ask.core("configmaps");
        ask.get(&format!("{maps}?resourceVersion=soon")).await;
        ask.get(&format!("{maps}?resourceVersion=999999999999")).await;
        ask.transcript
    })
    .await;
}

/// Tests only the server in memory, because a real one compacts in its own time.
#[tokio::test]
async fn compaction_expires_older_versions() {
    let server = in_memory();
    let mut ask = Asker::new(server.client(), "compaction").await;
    let maps = ask.core("configmaps");
    let since = version(&mut ask, &maps).await;
    ask.post(&maps, json!({"metadata": {"name": "one"}})).await;
    server.compact();
    let events = ask.watch(&format!("{maps}?watch=true&resourceVersion={since}"), 1).await;
    assert_eq!(events[0]["type"], "ERROR");
    assert_eq!(events[0]["object"]["code"], 410);
    assert_eq!(events[0]["object"]["reason"], "Expired");
}
