//! The controller on a real control plane, in the test's process: pods get nodes, and both end. Without one of its tasks, it ends. With
//! a planner that has a bug, it goes on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_controller::{Config, Environment, PlanFailure};
use poolwright_core::plan::{Plan, PlanOptions, StopSignal, plan};
use poolwright_core::{PodKey, Snapshot};
use poolwright_plane::trial::Cluster;
use poolwright_plane::{
    CONTROLLER_BINDINGS, ControlPlane, Options, apply, create_namespace, install_crds, poolwright_binary,
    unique, wait_for,
};
use poolwright_provider_contract::Connected;
use poolwright_provider_kwok::{KwokProvider, Settings};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const SOON: Duration = Duration::from_secs(90);

const POOL: &str = r"
apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {name: default}
spec: {provider: aws, registrationDelay: 0s}
---
apiVersion: poolwright.dev/v1alpha1
kind: NodePool
metadata: {name: gpu}
spec:
  scaleToZero: {after: 3s}
  template:
    spec:
      nodeClassRef: {group: poolwright.dev, kind: KwokNodeClass, name: default}
      requirements:
      - {key: poolwright.dev/capacity-type, operator: In, values: [on-demand]}
";

fn now() -> poolwright_provider_contract::Clock {
    #[expect(clippy::disallowed_methods, reason = "the cloud of this test lives in real time")]
    Arc::new(Timestamp::now)
}

struct Running {
    stop: oneshot::Sender<()>,
    controller: JoinHandle<anyhow::Result<()>>,
    cloud: JoinHandle<()>,
}

/// Returns a client with the rights of deploy/rbac.yaml and no others.
async fn limited(plane: &ControlPlane, admin: &Client) -> anyhow::Result<Client> {
    let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: poolwright}}";
    let rights = include_str!("../../../deploy/rbac.yaml");
    for yaml in [namespace, rights, CONTROLLER_BINDINGS] {
        apply(admin, "poolwright", yaml).await?;
    }
    let mut config = plane.config().clone();
    config.auth_info.impersonate = Some("poolwright-controller".to_owned());
    Ok(Client::try_from(config)?)
}

/// Starts a controller whose cloud has this background task.
fn start(client: &Client, limited: &Client, background: Option<BoxFuture<'static, ()>>) -> Running {
    start_in(Environment::default(), None, (client, limited), background)
}

/// Starts a controller in this environment, which saves inputs of failed plans in this directory.
fn start_in(
    environment: Environment,
    save_failures: Option<PathBuf>,
    (client, limited): (&Client, &Client),
    background: Option<BoxFuture<'static, ()>>,
) -> Running {
    let catalogue = Arc::new(poolwright_catalog::builtin());
    let provider = Arc::new(KwokProvider::new(client.clone(), catalogue, now(), Settings::default()));
    let cloud = tokio::spawn({
        let provider = provider.clone();
        async move { provider.run(std::future::pending()).await }
    });
    let mut config = Config::new("controller-basic", "poolwright");
    config.http = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.save_failures = save_failures;
    let (stop, stopped) = oneshot::channel::<()>();
    let providers = vec![Connected { provider, background }];
    let client = limited.clone();
    let controller = tokio::spawn(async move {
        poolwright_controller::run_in(environment, config, client, providers, async {
            let _ = stopped.await;
        })
        .await
    });
    Running { stop, controller, cloud }
}

async fn create_pods(client: &Client, namespace: &str, count: usize) -> anyhow::Result<()> {
    for number in 0..count {
        create_pod(client, namespace, &format!("train-{number}")).await?;
    }
    Ok(())
}

async fn create_pod(client: &Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "train", "resources": {
            "requests": {"cpu": "2", "memory": "4Gi"}, "limits": {"nvidia.com/gpu": 1, "cpu": "2", "memory": "4Gi"},
        }}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_gpu_pods_get_the_cheapest_nodes_and_leave_nothing_behind() {
    let plane = ControlPlane::start(Options::everything()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    let namespace = create_namespace(&client, "basic").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let claims: Api<NodeClaim> = Api::all(client.clone());
    let nodes: Api<Node> = Api::all(client.clone());
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "poolwright-kwok");
    let all = ListParams::default();

    create_pods(&client, &namespace, 2).await.unwrap();
    let limited = limited(&plane, &client).await.unwrap();
    let running = start(&client, &limited, None);
    apply(&client, &namespace, POOL).await.unwrap();

    let bound = wait_for("both pods to run on a node", SOON, async || {
        let list = pods.list(&all).await?.items;
        let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
        let bound: Vec<String> = list.iter().filter_map(node).collect();
        ensure!(bound.len() == 2, "bound to {bound:?}; claims: {:#?}", status(&claims).await?);
        Ok(bound)
    })
    .await
    .unwrap();

    let bought = claims.list(&all).await.unwrap().items;
    let prices: Vec<f64> = bought
        .iter()
        .map(|claim| claim.status.as_ref().unwrap().price.as_ref().unwrap().usd_per_hour.parse().unwrap())
        .collect();
    let cheapest = cheapest_gpu();
    let cost: f64 = prices.iter().sum();
    assert!(
        cost <= 2.0 * cheapest + 1e-9,
        "{cost:#} for {bound:?}, two nodes of one GPU cost {}",
        2.0 * cheapest
    );

    wait_for("the claims to be initialized", SOON, async || {
        for claim in claims.list(&all).await? {
            let conditions = claim.status.clone().unwrap_or_default().conditions;
            let ready = conditions.iter().any(|c| c.type_ == "Initialized" && c.status == "True");
            ensure!(ready, "{}: {conditions:?}", claim.name_any());
        }
        Ok(())
    })
    .await
    .unwrap();

    wait_for("the launch to be told, and the pool to say what it costs", SOON, async || {
        let events: Api<Event> = Api::namespaced(client.clone(), "default");
        let events = events.list(&all).await?.items;
        let told = events.iter().any(|event| event.reason.as_deref() == Some("Launched"));
        ensure!(told, "{events:?}");
        let pool = Api::<NodePool>::all(client.clone()).get("gpu").await?.status.unwrap_or_default();
        let ready = pool.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True");
        let cost = pool.usd_per_hour.as_deref().unwrap_or_default().parse::<f64>();
        ensure!(ready && cost.is_ok_and(|cost| cost > 0.0), "{pool:?}");
        Ok(())
    })
    .await
    .unwrap();

    pods.delete_collection(&DeleteParams::default().grace_period(0), &all).await.unwrap();
    wait_for("nothing to be left", SOON, async || {
        let left = claims.list(&all).await?.items.len();
        let nodes = nodes.list(&all).await?.items.len();
        let instances =
            maps.list(&ListParams::default().fields("metadata.name!=kube-root-ca.crt")).await?.items.len();
        ensure!(
            (left, nodes, instances) == (0, 0, 0),
            "{left} claims, {nodes} nodes, {instances} instances; {:#?}",
            status(&claims).await?
        );
        Ok(())
    })
    .await
    .unwrap();

    running.stop.send(()).unwrap();
    running.controller.await.unwrap().unwrap();
    running.cloud.abort();
    let leases: Api<Lease> = Api::namespaced(client.clone(), "poolwright");
    let lease = leases.get("poolwright-controller").await.unwrap();
    assert_eq!(lease.spec.unwrap().holder_identity, None, "the lease is released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_ends_with_the_background_task_of_its_cloud_and_releases_its_lease() {
    let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    let limited = limited(&plane, &client).await.unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let background: BoxFuture<'static, ()> = Box::pin(async move {
        let _ = ended.await;
    });
    let running = start(&client, &limited, Some(background));
    let leases: Api<Lease> = Api::namespaced(client.clone(), "poolwright");
    let holder = async || -> anyhow::Result<Option<String>> {
        Ok(leases.get("poolwright-controller").await?.spec.and_then(|spec| spec.holder_identity))
    };
    wait_for("the controller to lead", SOON, async || {
        let holder = holder().await?;
        ensure!(holder.as_deref() == Some("controller-basic"), "{holder:?} leads");
        Ok(())
    })
    .await
    .unwrap();

    end.send(()).unwrap();
    let why = running.controller.await.unwrap().unwrap_err();
    assert_eq!(why.to_string(), "the task `kwok` ended; this is a bug");
    assert_eq!(holder().await.unwrap(), None, "its successor need not wait");
    running.cloud.abort();
}

/// Plans as the planner does, but has a bug: it panics while the pod `poison` waits.
fn poisoned(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, stop: &mut dyn StopSignal) -> Plan {
    assert!(snapshot.pods.iter().all(|(key, _)| key.name() != "poison"), "a bug of this test's planner");
    plan(snapshot, now, options, stop)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_with_which_planning_panics_is_set_aside_and_saved_and_the_others_get_nodes() {
    let plane = ControlPlane::start(Options::everything()).await.unwrap();
    let client = plane.client().unwrap();
    install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
    let namespace = create_namespace(&client, "poisoned").await.unwrap();
    apply(&client, &namespace, POOL).await.unwrap();
    let limited = limited(&plane, &client).await.unwrap();
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique("failures"));
    let environment = Environment { plan: Arc::new(poisoned), ..Environment::default() };
    let running = start_in(environment, Some(directory.clone()), (&client, &limited), None);
    create_pod(&client, &namespace, "poison").await.unwrap();
    create_pods(&client, &namespace, 3).await.unwrap();

    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    wait_for("the three other pods to run on a node", SOON, async || {
        let list = pods.list(&ListParams::default()).await?.items;
        let is_bound = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let mut bound: Vec<String> = list.iter().filter(is_bound).map(ResourceExt::name_any).collect();
        bound.sort();
        ensure!(bound == ["train-0", "train-1", "train-2"], "bound are {bound:?}");
        Ok(())
    })
    .await
    .unwrap();
    let note = Cluster::new(client.clone()).wait_said("Pod", "poison", "PlanFailed").await.unwrap();

    let file = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    assert!(note.contains(&file.display().to_string()), "{note}");
    let saved = PlanFailure::read(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((saved.repeats, &saved.pods[..]), (true, &[PodKey::new(&namespace, "poison")][..]));
    let mut replan = Command::new(poolwright_binary().unwrap());
    let replan = replan.args(["debug", "replan"]).arg(&file).output().unwrap();
    let said = String::from_utf8(replan.stdout).unwrap();
    assert!(said.contains(&format!("a plan with them failed: {namespace}/poison.")), "{said}");
    assert!(said.contains("This version plans them."), "it has no such bug: {said}");

    running.stop.send(()).unwrap();
    running.controller.await.unwrap().unwrap();
    running.cloud.abort();
    std::fs::remove_dir_all(&directory).unwrap();
}

/// Describes the claims, for failure messages.
async fn status(claims: &Api<NodeClaim>) -> anyhow::Result<Vec<String>> {
    let list = claims.list(&ListParams::default()).await?;
    Ok(list.iter().map(|claim| format!("{}: {:?}", claim.name_any(), claim.status)).collect())
}

/// Returns the price of the cheapest on-demand offering with a GPU that holds one of the pods.
fn cheapest_gpu() -> f64 {
    let catalogue = poolwright_catalog::builtin();
    let prices = catalogue.offerings().iter().filter(|offering| {
        let kind = &catalogue.types()[&offering.id.instance_type];
        kind.provider.as_str() == "aws"
            && offering.id.capacity_type == poolwright_terms::CapacityType::OnDemand
            && kind.allocatable.get("nvidia.com/gpu") >= 1
            && kind.allocatable.get("cpu") >= 2000
            && kind.allocatable.get("memory") >= 4 << 30
    });
    let known = prices.filter_map(|offering| offering.price.known());
    known.min().expect("the built-in catalogue has GPUs").as_f64()
}
