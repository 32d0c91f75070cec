//! The status of a node class on a real control plane, with exactly the rights of deploy/rbac.yaml.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{Api, Client};
use poolwright_controller::Config;
use poolwright_plane::trial::{Cluster, condition};
use poolwright_plane::{CONTROLLER_BINDINGS, ControlPlane, Options, apply, install_crds, wait_for};
use poolwright_provider_aws::KubeNodeClassObjects;
use poolwright_provider_aws::node_class::{EC2NodeClass, Ec2NodeClassStatus};
use poolwright_provider_contract::Connected;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::world::AwsWorld;

/// Enough for two checks of a class that is not ready, on a busy machine.
const LATER: Duration = Duration::from_mins(2);

/// Waits until a condition of the class has this status, and returns the condition and the status.
async fn says(client: &Client, kind: &str, expected: &str) -> (Condition, Ec2NodeClassStatus) {
    let api: Api<EC2NodeClass> = Api::all(client.clone());
    wait_for(&format!("the class to say {kind}={expected}"), LATER, async || {
        let status = api.get("gpu").await?.status.context("it has no status")?;
        let said = condition(&status.conditions, kind).context("it does not say")?.clone();
        ensure!(said.status == expected, "{}: {}", said.reason, said.message);
        Ok((said, status))
    })
    .await
    .unwrap()
}

/// A controller with the documented rights, and its own API server.
struct Running {
    client: Client,
    stop: oneshot::Sender<()>,
    controller: JoinHandle<anyhow::Result<()>>,
    _plane: ControlPlane,
}

impl Running {
    async fn start(world: &AwsWorld) -> Self {
        let plane = ControlPlane::start(Options::api_server_only()).await.unwrap();
        let client = plane.client().unwrap();
        install_crds(&client, &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds")).await.unwrap();
        let namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: poolwright}}";
        let rights = include_str!("../../../../deploy/rbac.yaml");
        for yaml in [namespace, rights, CONTROLLER_BINDINGS] {
            apply(&client, "poolwright", yaml).await.unwrap();
        }
        let mut config = plane.config().clone();
        config.auth_info.impersonate = Some("poolwright-controller".to_owned());
        let limited = Client::try_from(config).unwrap();
        let provider =
            world.connect_for(Arc::new(KubeNodeClassObjects(limited.clone())), None).await.unwrap();
        let providers = vec![Connected { provider: Arc::new(provider), background: None }];
        let config = Config { http: None, ..Config::new("classes", "poolwright") };
        let (stop, stopped) = oneshot::channel::<()>();
        let controller = tokio::spawn(async move {
            poolwright_controller::run(config, limited, providers, async {
                let _ = stopped.await;
            })
            .await
        });
        Self { client, stop, controller, _plane: plane }
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        self.controller.await.unwrap().unwrap();
    }
}

fn class(world: &AwsWorld, subnets: &Value) -> Value {
    json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": {
        "subnetSelectorTerms": [subnets],
        "securityGroupSelectorTerms": [{"id": world.account.group}],
        "amiFamily": "Custom", "amiSelectorTerms": [{"id": world.account.image}],
        "instanceProfile": world.account.profile,
    }})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_without_subnets_becomes_ready_when_a_subnet_is_tagged() {
    let world = AwsWorld::new().await.unwrap();
    let tag = format!("poolwright.test/{}", world.cluster);
    let running = Running::start(&world).await;
    let client = running.client.clone();
    let cluster = Cluster::new(client.clone());
    let class = class(&world, &json!({"tags": {&tag: "yes"}}));
    let pool = json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": "gpu"}, "spec": {
        "template": {"spec": {
            "nodeClassRef": {"group": "poolwright.dev", "kind": "EC2NodeClass", "name": "gpu"},
            "requirements": [{"key": "poolwright.dev/capacity-type", "operator": "In", "values": ["on-demand"]}],
        }},
    }});
    cluster.apply("", &[class, pool]).await.unwrap();
    let (said, status) = says(&client, "Ready", "False").await;
    assert_eq!(said.reason, "SubnetsUnusable");
    assert!(
        said.message.contains("spec.subnetSelectorTerms") && said.message.contains("put the tags on"),
        "{said:?}"
    );
    assert_eq!((status.subnets.len(), status.observed_generation), (0, Some(1)));
    assert_eq!(status.images[0].id, world.account.image);
    let event = cluster.wait_said("EC2NodeClass", "gpu", "SubnetsUnusable").await.unwrap();
    assert_eq!(event, said.message);
    let pool = cluster.wait_pool_condition("gpu", "NodeClassReady", "False").await.unwrap();
    assert!(pool.message.contains("spec.subnetSelectorTerms"), "{pool:?}");

    let subnet = world.account.subnet_in("us-east-1a");
    let tagged =
        format!("Action=CreateTags&Version=2016-11-15&ResourceId.1={subnet}&Tag.1.Key={tag}&Tag.1.Value=yes");
    world.front.call("ec2", &tagged).await.unwrap();
    let (_, status) = says(&client, "Ready", "True").await;
    let subnets: Vec<_> = status.subnets.iter().map(|one| (one.id.as_str(), one.zone.as_str())).collect();
    assert_eq!(subnets, [(subnet, "us-east-1a")]);
    assert!(status.conditions.iter().all(|one| one.status == "True"), "{:?}", status.conditions);
    cluster.wait_said("EC2NodeClass", "gpu", "Ready").await.unwrap();
    cluster.wait_pool_condition("gpu", "NodeClassReady", "True").await.unwrap();
    assert_eq!(world.front.calls().get("ec2:TerminateInstances"), None);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_class_reports_a_missing_queue_until_the_queue_exists() {
    let mut world = AwsWorld::new().await.unwrap();
    world.queue = Some(world.cluster.clone());
    let running = Running::start(&world).await;
    let client = running.client.clone();
    let cluster = Cluster::new(client.clone());
    let subnet = json!({"id": world.account.subnet_in("us-east-1a")});
    cluster.apply("", &[class(&world, &subnet)]).await.unwrap();
    let (said, _) = says(&client, "InterruptionQueueReady", "False").await;
    assert!(
        said.message.contains(&format!("no SQS queue `{}`", world.cluster))
            && said.message.contains("--aws-interruption-queue")
            && said.message.contains("launches are not affected"),
        "{said:?}"
    );
    let event = cluster.wait_said("EC2NodeClass", "gpu", "InterruptionQueueUnreadable").await.unwrap();
    assert_eq!(event, said.message);
    says(&client, "Ready", "True").await;
    let made = format!("Action=CreateQueue&QueueName={}&Version=2012-11-05", world.cluster);
    world.front.call("sqs", &made).await.unwrap();
    says(&client, "InterruptionQueueReady", "True").await;
    cluster.wait_said("EC2NodeClass", "gpu", "InterruptionQueueRead").await.unwrap();
    running.stop().await;
}
