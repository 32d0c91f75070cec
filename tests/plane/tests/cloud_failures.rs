//! Failures of a cloud, and how Poolwright handles them.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, ensure};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, ResourceExt};
use poolwright_api::NodeClaim;
use poolwright_plane::trial::{
    Cluster, Trial, WITHIN, condition, is_true, node_class, node_pool, pod, taint_keys,
};
use poolwright_plane::{unique, wait_for};
use serde_json::{Value, json};

const FLAGS: [&str; 4] = ["--batch-idle", "300ms", "--stock-out-backoff", "5s"];

async fn trial() -> (&'static Trial, Cluster) {
    let trial = Trial::shared(&FLAGS).await.unwrap();
    (trial, trial.cluster().unwrap())
}

fn only(instance_types: &[&str], zones: &[&str]) -> Value {
    json!([
        {"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": instance_types},
        {"key": "topology.kubernetes.io/zone", "operator": "In", "values": zones},
    ])
}

fn gpu_pod(name: &str, pool: &str) -> Value {
    pod(name, pool, json!({"cpu": "1", "nvidia.com/gpu": "1"}))
}

/// Returns the type of each of a pool's claims, and whether it is initialized.
async fn bought(cluster: &Cluster, pool: &str) -> anyhow::Result<Vec<(String, bool)>> {
    let claims = cluster.claims(pool).await?;
    Ok(claims
        .iter()
        .map(|claim| {
            let offering = claim.status.as_ref().and_then(|status| status.offering.as_ref());
            let kind = offering.map(|offering| offering.instance_type.clone()).unwrap_or_default();
            (kind, is_true(claim, "Initialized"))
        })
        .collect())
}

/// Returns the events about claims of a pool, including deleted claims.
async fn said_of_claims(cluster: &Cluster, pool: &str, reason: &str) -> anyhow::Result<Vec<String>> {
    let api: Api<Event> = Api::all(cluster.client.clone());
    let fields = format!("regarding.kind=NodeClaim,reason={reason}");
    let events = api.list(&ListParams::default().fields(&fields)).await?;
    let of_pool = |event: &Event| {
        let about = event.regarding.as_ref().and_then(|about| about.name.as_deref());
        about.is_some_and(|name| name.starts_with(&format!("{pool}-")))
    };
    Ok(events.into_iter().filter(of_pool).filter_map(|event| event.note).collect())
}

#[tokio::test]
async fn a_claim_launches_the_next_cheapest_offering_after_a_stock_out() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("next-best"), cluster.namespace("next-best").await.unwrap());
    // 0.9776 and $1.01/h: near enough to replace each other.
    let requirements = only(&["g6.2xlarge", "g5.xlarge"], &["us-east-1a", "us-east-1b"]);
    let class = node_class(&name, json!({"faults": {"stockOuts": [{"instanceType": "g6.2xlarge"}]}}));
    let pool = node_pool(&name, json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[class, pool]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("train", &name)]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();

    let claims = cluster.claims(&name).await.unwrap();
    let [claim] = claims.as_slice() else { panic!("{} claims", claims.len()) };
    let status = claim.status.as_ref().unwrap();
    assert_eq!(claim.spec.offerings[0].instance_type, "g6.2xlarge", "planned");
    assert_eq!(status.offering.as_ref().unwrap().instance_type, "g5.xlarge", "launched");
    assert_eq!(status.price.as_ref().unwrap().usd_per_hour, "1.006", "what is paid, not what was planned");
    let launched = condition(&status.conditions, "Launched").unwrap();
    assert!(
        launched.message.contains("g5.xlarge") && launched.message.contains("g6.2xlarge"),
        "it says what was launched and what could not be had: {launched:?}"
    );
    let said = said_of_claims(&cluster, &name, "Launched").await.unwrap();
    assert!(said.iter().any(|note| note.contains("g6.2xlarge")), "{said:?}");
    let gone = said_of_claims(&cluster, &name, "StockOut").await.unwrap();
    assert!(gone.is_empty(), "no claim had to be given up for it: {gone:?}");
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_preferred_type_is_bought_while_cheap_enough_and_in_stock() {
    let (_, cluster) = trial().await;
    let namespace = cluster.namespace("preferred").await.unwrap();
    let (stocked, empty) = (unique("stocked"), unique("empty"));
    // 0.8048 and $1.21/h: the preferred type is dearer, but not twice as dear.
    let requirements = only(&["g6.xlarge", "g5.2xlarge"], &["us-east-1a", "us-east-1b"]);
    let pool = |name: &str| node_pool(name, json!({"template": {"spec": {"requirements": requirements}}}));
    let none = json!({"faults": {"stockOuts": [{"instanceType": "g5.2xlarge"}]}});
    let classes = [node_class(&stocked, json!({})), node_class(&empty, none)];
    cluster.apply("", &classes).await.unwrap();
    cluster.apply("", &[pool(&stocked), pool(&empty)]).await.unwrap();
    let preferring = |name: &str, pool: &str| {
        let mut pod = gpu_pod(name, pool);
        let wanted = |key: &str, value: &str| json!({"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]});
        pod["spec"]["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = json!([
            {"weight": 90, "preference": wanted("node.kubernetes.io/instance-type", "g5.2xlarge")},
            {"weight": 10, "preference": wanted("topology.kubernetes.io/zone", "us-east-1b")},
        ]);
        pod
    };
    let pods = [preferring("wish", &stocked), preferring("comfort", &empty)];
    cluster.apply(&namespace, &pods).await.unwrap();
    cluster.wait_running(&namespace, 2).await.unwrap();

    let kinds = async |pool: &str| {
        let claims = cluster.claims(pool).await.unwrap();
        let of = |claim: &NodeClaim| claim.status.as_ref().and_then(|status| status.offering.clone());
        claims.iter().filter_map(of).map(|of| format!("{}/{}", of.instance_type, of.zone)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&stocked).await, ["g5.2xlarge/us-east-1b"], "what is preferred");
    let bought = kinds(&empty).await;
    assert!(bought.len() == 1 && bought[0].starts_with("g6.xlarge/"), "what can be had, once: {bought:?}");
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_complete_stock_out_leaves_nothing_behind_and_ends_by_itself() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("sold-out"), cluster.namespace("sold-out").await.unwrap());
    let class = |faults: Value| node_class(&name, json!({"faults": faults}));
    let requirements = only(&["g5.xlarge"], &["us-east-1a", "us-east-1b"]);
    let pool = node_pool(&name, json!({"template": {"spec": {"requirements": requirements}}}));
    cluster.apply("", &[class(json!({"stockOuts": [{}]})), pool]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("waits", &name)]).await.unwrap();

    let note = cluster.wait_said("Pod", "waits", "OfferingsHeldBack").await.unwrap();
    assert!(note.contains("g5.xlarge") && note.contains(&name), "{note}");
    let said = said_of_claims(&cluster, &name, "StockOut").await.unwrap();
    assert!(said.iter().any(|note| note.contains("g5.xlarge/us-east-1a")), "{said:?}");
    wait_for("no claim to be left", WITHIN, async || {
        let left = cluster.claims(&name).await?.len();
        ensure!(left == 0, "{left} claims");
        Ok(())
    })
    .await
    .unwrap();
    assert!(cluster.instances(&name).await.unwrap().is_empty());

    cluster.apply("", &[class(json!({"stockOuts": []}))]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(cluster.instances(&name).await.unwrap().len(), 1);
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_node_that_lacks_a_gpu_never_opens_and_is_replaced() {
    let (trial, cluster) = trial().await;
    let (name, namespace) = (unique("missing-gpu"), cluster.namespace("missing-gpu").await.unwrap());
    let class = |missing: u32| node_class(&name, json!({"faults": {"missingGpus": missing}}));
    let pool = node_pool(
        &name,
        json!({"template": {"spec": {
            "requirements": only(&["g5.12xlarge"], &["us-east-1a", "us-east-1b", "us-east-1c"]),
            "deadlines": {"initialization": "2s"},
        }}}),
    );
    cluster.apply("", &[class(1), pool]).await.unwrap();
    let opened = watch_for_open_nodes_without(&cluster, &name, "4");
    // The pod needs two of the four GPUs. With three advertised, the scheduler would place it if the node were open.
    cluster
        .apply(&namespace, &[pod("train", &name, json!({"cpu": "1", "nvidia.com/gpu": "2"}))])
        .await
        .unwrap();

    let note = wait_for("the first node to be given up", WITHIN, async || {
        let said = said_of_claims(&cluster, &name, "InitializationTimeout").await?;
        said.into_iter().next().context("nothing said yet")
    })
    .await
    .unwrap();
    assert!(note.contains("nvidia.com/gpu: 4 promised, 3 advertised"), "{note}");
    let series = r#"poolwright_offerings_failed_total{instance_type="g5.12xlarge",reason="after-launch"}"#;
    wait_for("the offering to be held back", WITHIN, async || {
        ensure!(trial.metric(series).await? >= 1.0, "it is not");
        Ok(())
    })
    .await
    .unwrap();

    cluster.apply("", &[class(0)]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();
    wait_for("the bad nodes to be gone", WITHIN, async || {
        let (bought, instances) = (bought(&cluster, &name).await?, cluster.instances(&name).await?.len());
        ensure!(
            bought == [("g5.12xlarge".to_owned(), true)] && instances == 1,
            "{bought:?}, {instances} instances"
        );
        Ok(())
    })
    .await
    .unwrap();
    let early = opened.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(early.is_empty(), "open with too few GPUs: {early:?}");
    cluster.delete_pods(&namespace).await.unwrap();
}

/// Collects versions of the pool's nodes that are open to pods and do not advertise this many GPUs.
fn watch_for_open_nodes_without(
    cluster: &Cluster,
    pool: &str,
    gpus: &'static str,
) -> Arc<Mutex<Vec<String>>> {
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let api: Api<Node> = Api::all(cluster.client.clone());
    let config = watcher::Config::default().labels(&format!("poolwright.dev/nodepool={pool}"));
    let mut versions = watcher(api, config).default_backoff().applied_objects().boxed();
    let kept = found.clone();
    tokio::spawn(async move {
        while let Ok(Some(node)) = versions.try_next().await {
            let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
            // A reserved node counts as open, because it is open to its own pods.
            let closes =
                |key: &String| key.starts_with("poolwright.dev/") && key != "poolwright.dev/reserved";
            let tainted = taint_keys(&node).iter().any(closes);
            let advertised = node.status.as_ref().and_then(|status| status.allocatable.clone());
            let advertised = advertised.unwrap_or_default().remove("nvidia.com/gpu").map(|amount| amount.0);
            if !cordoned && !tainted && advertised.as_deref() != Some(gpus) {
                let text = format!("{} with {advertised:?} GPUs", node.name_any());
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(text);
            }
        }
    });
    found
}

#[tokio::test]
async fn a_node_that_never_joins_is_replaced_with_another_offering() {
    let (_, cluster) = trial().await;
    let (name, namespace) = (unique("never-joins"), cluster.namespace("never-joins").await.unwrap());
    let class = node_class(&name, json!({"faults": {"neverRegister": [{"instanceType": "g6.2xlarge"}]}}));
    let pool = node_pool(
        &name,
        json!({"template": {"spec": {
            "requirements": only(&["g6.2xlarge", "g5.xlarge"], &["us-east-1a"]),
            "deadlines": {"registration": "2s"},
        }}}),
    );
    cluster.apply("", &[class, pool]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("train", &name)]).await.unwrap();
    cluster.wait_running(&namespace, 1).await.unwrap();

    let said = said_of_claims(&cluster, &name, "RegistrationTimeout").await.unwrap();
    assert!(said.iter().any(|note| note.contains("g6.2xlarge") && note.contains("2 s")), "{said:?}");
    wait_for("the silent instance to be given back", WITHIN, async || {
        let (bought, instances) = (bought(&cluster, &name).await?, cluster.instances(&name).await?.len());
        ensure!(
            bought == [("g5.xlarge".to_owned(), true)] && instances == 1,
            "{bought:?}, {instances} instances"
        );
        Ok(())
    })
    .await
    .unwrap();
    cluster.delete_pods(&namespace).await.unwrap();
}

#[tokio::test]
async fn a_throttled_and_failing_launch_is_repeated_until_one_instance_exists() {
    let (trial, cluster) = trial().await;
    let (name, namespace) = (unique("throttled"), cluster.namespace("throttled").await.unwrap());
    let class = |error: Option<&str>| match error {
        Some(error) => node_class(&name, json!({"faults": {"launchError": error}})),
        None => node_class(&name, json!({})),
    };
    cluster.apply("", &[class(Some("Throttled")), node_pool(&name, json!({}))]).await.unwrap();
    cluster.apply(&namespace, &[gpu_pod("train", &name)]).await.unwrap();
    for (error, next) in [("throttled", Some("Transient")), ("transient", None)] {
        let series =
            format!(r#"poolwright_provider_errors_total{{call="launch",error="{error}",provider="kwok"}}"#);
        wait_for(&format!("a launch to be {error}"), WITHIN, async || {
            ensure!(trial.metric(&series).await? >= 1.0, "not yet");
            Ok(())
        })
        .await
        .unwrap();
        cluster.apply("", &[class(next)]).await.unwrap();
    }
    cluster.wait_running(&namespace, 1).await.unwrap();
    assert_eq!(cluster.claims(&name).await.unwrap().len(), 1, "the claim is the one made first");
    assert_eq!(
        cluster.instances(&name).await.unwrap().len(),
        1,
        "one instance, however often it was asked for"
    );
    cluster.delete_pods(&namespace).await.unwrap();
}
