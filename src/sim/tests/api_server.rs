//! What no real server is asked: that the same requests have the same answers, and what happens to objects over time.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use poolwright_api::crds;
use poolwright_sim::api::ApiServer;
use serde_json::{Value, json};

fn server() -> ApiServer {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
    ApiServer::new(&crds(), Arc::new(move || now))
}

fn object<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).expect("it is such an object")
}

fn map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}}))
}

async fn create<K>(api: &Api<K>, made: K) -> K
where
    K: Clone + serde::de::DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    api.create(&PostParams::default(), &made).await.expect("it is created")
}

#[tokio::test]
async fn the_same_requests_are_answered_alike_to_the_last_byte() {
    async fn all(client: Client) -> String {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        let generated = object(json!({"metadata": {"generateName": "some-"}}));
        let mut told = vec![create(&maps, map("one")).await, create(&maps, generated).await];
        told.extend(maps.list(&kube::api::ListParams::default()).await.expect("a list"));
        serde_json::to_string(&told).expect("JSON")
    }
    assert_eq!(all(server().client()).await, all(server().client()).await);
}

#[tokio::test]
async fn what_loses_its_last_owner_is_collected_once_the_finalizers_are_gone() {
    let server = server();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    let owners = [create(&maps, map("a")).await, create(&maps, map("b")).await];
    let reference = |owner: &ConfigMap| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": owner.name_any(), "uid": owner.uid()});
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": owners.each_ref().map(reference)}});
    create(&maps, object(owned)).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/mine"],
        "ownerReferences": [reference(&owners[0])]}});
    create(&maps, object(held)).await;

    maps.delete("a", &DeleteParams::default()).await.expect("it is deleted");
    assert!(server.collect_garbage());
    assert!(maps.get_opt("owned").await.expect("an answer").is_some(), "one owner is left");
    let held = maps.get("held").await.expect("its finalizer keeps it");
    assert!(held.metadata.deletion_timestamp.is_some());
    assert!(!server.collect_garbage(), "there is nothing more to do");

    maps.delete("b", &DeleteParams::default()).await.expect("it is deleted");
    assert!(server.collect_garbage());
    assert!(maps.get_opt("owned").await.expect("an answer").is_none());
}

#[tokio::test]
async fn a_namespace_that_ends_takes_its_objects_along_and_lets_in_no_more() {
    let server = server();
    let namespaces: Api<Namespace> = Api::all(server.client());
    create(&namespaces, object(json!({"metadata": {"name": "brief"}}))).await;
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "brief");
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/mine"]}});
    create(&maps, object(held)).await;
    create(&maps, map("plain")).await;
    namespaces.delete("brief", &DeleteParams::default()).await.expect("it is deleted");
    let refused = maps.create(&PostParams::default(), &map("late")).await;
    assert!(matches!(refused, Err(kube::Error::Api(status)) if status.code == 403));
    while server.collect_garbage() {}
    assert!(namespaces.get_opt("brief").await.expect("an answer").is_some(), "something is still in it");
    let left = maps.list(&kube::api::ListParams::default()).await.expect("a list");
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["held"]);
    let release = kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("held", &kube::api::PatchParams::default(), &release).await.expect("it is released");
    while server.collect_garbage() {}
    assert!(namespaces.get_opt("brief").await.expect("an answer").is_none());
}

#[tokio::test]
async fn the_clients_watcher_starts_anew_after_a_compaction_and_misses_nothing() {
    let server = server();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    create(&maps, map("before")).await;
    for streamed in [true, false] {
        let config = watcher::Config::default();
        let config = if streamed { config.streaming_lists() } else { config };
        let events = watcher(maps.clone(), config);
        let mut seen = events.applied_objects().map_ok(|found| found.name_any()).boxed();
        assert_eq!(seen.next().await.expect("an event").expect("an object"), "before");
        let late = format!("late-{streamed}");
        // While nobody looks, the watch ends and the history is cut.
        server.drop_watches();
        create(&maps, map(&late)).await;
        server.compact();
        loop {
            match seen.next().await.expect("the watcher does not end") {
                Ok(name) if name == late => break,
                Ok(_) | Err(watcher::Error::WatchError(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        maps.delete(&late, &DeleteParams::default()).await.expect("it is deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_hears_how_far_it_is_every_minute_and_ends_in_time() {
    let server = server();
    let pods: Api<Pod> = Api::namespaced(server.client(), "default");
    let params = kube::api::WatchParams::default().timeout(150);
    let events = pods.watch(&params, "0").await.expect("a watch");
    let events: Vec<_> = events.try_collect().await.expect("it can be read");
    let bookmarks = events.iter().filter(|event| matches!(event, kube::core::WatchEvent::Bookmark(_)));
    assert_eq!((bookmarks.count(), events.len()), (2, 2));
}
