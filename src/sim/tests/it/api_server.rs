//! Tests that only the simulated server can run: equal requests have equal responses, and objects change over time.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use k8s_openapi::api::scheduling::v1alpha2::PodGroup;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use poolwright_provider_contract::crds;
use poolwright_sim::api::ApiServer;
use poolwright_sim::cloud::SIM_NODE_CLASS;
use serde_json::{Value, json};

fn server() -> ApiServer {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a constant");
    ApiServer::new(&crds([SIM_NODE_CLASS]), Arc::new(move || now))
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
async fn an_orphan_is_collected_after_its_finalizers_are_removed() {
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
        // The watch ends and the history is compacted while the client is away.
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

/// Returns a client whose watches begin this many changes behind.
fn behind(server: &ApiServer, changes: u64) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: axum::http::Request<kube::client::Body>| {
        let server = server.clone();
        async move {
            let late = std::time::Duration::from_secs(3);
            Ok::<_, std::convert::Infallible>(server.serve_behind(request, (changes, late)).await)
        }
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_server_that_is_behind_begins_with_what_was_and_hears_of_the_rest_later() {
    let server = server();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    for name in ["first", "gone"] {
        create(&maps, map(name)).await;
    }
    maps.delete("gone", &DeleteParams::default()).await.expect("it is deleted");
    create(&maps, map("new")).await;

    let late: Api<ConfigMap> = Api::namespaced(behind(&server, 2), "default");
    let mut events = watcher(late.clone(), watcher::Config::default().streaming_lists()).boxed();
    let began = tokio::time::Instant::now();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    while later.len() < 2 {
        match events.try_next().await.expect("no error").expect("it goes on") {
            watcher::Event::InitApply(one) => first.push(one.name_any()),
            watcher::Event::Apply(one) => later.push(format!("{} comes", one.name_any())),
            watcher::Event::Delete(one) => later.push(format!("{} goes", one.name_any())),
            watcher::Event::Init => {}
            watcher::Event::InitDone => {
                assert_eq!(began.elapsed().as_secs(), 0, "the first state is told at once");
            }
        }
    }
    assert_eq!(first, ["first", "gone"]);
    assert_eq!(later, ["gone goes", "new comes"]);
    assert_eq!(began.elapsed().as_secs(), 3);
    // Lists without a version are never behind.
    let listed = late.list(&kube::api::ListParams::default()).await.expect("a list");
    assert_eq!(listed.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["first", "new"]);
}

#[tokio::test]
async fn an_object_that_cannot_be_read_is_served_beside_the_others() {
    let server = server();
    let maps: Api<ConfigMap> = Api::namespaced(server.client(), "default");
    create(&maps, map("sound")).await;
    let broken = json!({"metadata": {"name": "broken"}, "data": "no map"});
    assert!(server.plant("/api/v1/namespaces/default/configmaps", broken));
    assert!(!server.plant("/api/v1/namespaces/default/nothings", json!({"metadata": {"name": "a"}})));
    assert!(maps.list(&kube::api::ListParams::default()).await.is_err(), "whoever wants all to be sound");
    let guarded: Api<kube::core::DeserializeGuard<ConfigMap>> = Api::namespaced(server.client(), "default");
    let listed = guarded.list(&kube::api::ListParams::default()).await.expect("a list");
    let sound: Vec<bool> = listed.iter().map(|one| one.0.is_ok()).collect();
    assert_eq!(sound, [false, true]);
}

#[tokio::test]
async fn pod_groups_exist_only_where_they_are_served_and_discovery_says_so() {
    let server = server();
    let client = server.client();
    let discover = || client.list_api_group_resources("scheduling.k8s.io/v1alpha2");
    assert!(matches!(discover().await, Err(kube::Error::Api(status)) if status.code == 404));
    server.serve_pod_groups();
    let served = discover().await.expect("the group is served");
    assert_eq!(served.resources.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["podgroups"]);
    let groups: Api<PodGroup> = Api::namespaced(client.clone(), "default");
    let policy = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let made = create(&groups, object(json!({"metadata": {"name": "train"}, "spec": policy}))).await;
    assert_eq!(made.spec.scheduling_policy.gang.map(|gang| gang.min_count), Some(2));
}
