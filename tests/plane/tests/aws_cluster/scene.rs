//! A cluster with AWS as its cloud, and the actions of tests on it.

use std::sync::Arc;

use anyhow::ensure;
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use poolwright_plane::ControlPlane;
use poolwright_plane::aws::{Front, credentials};
use poolwright_plane::trial::{Cluster, Controller, Trial, node_pool};
use poolwright_provider_aws::node_class::EC2NodeClass;
use poolwright_provider_aws::{Access, AwsProvider, BootstrapToken, Key, NodeClassObjects, Settings, Tokens};
use poolwright_provider_contract::ProviderError;
use serde_json::{Value, json};

use super::cloud::{Cloud, Machines};

pub const POOL: &str = "gpu";

/// Provides no node classes and no tokens, because the looker launches nothing.
struct Nothing;

#[async_trait]
impl NodeClassObjects for Nothing {
    async fn class(&self, _name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        Ok(None)
    }
}

#[async_trait]
impl Tokens for Nothing {
    async fn make(&self, _expires: Timestamp) -> Result<BootstrapToken, ProviderError> {
        Err(ProviderError::Invalid("nobody asks for one".to_owned()))
    }
}

/// Returns a provider that only reads.
async fn looker(cloud: &Cloud, url: &str) -> anyhow::Result<AwsProvider> {
    let settings = Settings {
        access: Access {
            region: Some("us-east-1".to_owned()),
            endpoint: Some(url.to_owned()),
            key: Some(Key { id: "looker".to_owned(), secret: "stand-in".to_owned() }),
        },
        cluster: cloud.cluster.clone(),
        cluster_id: None,
        kubernetes: "1.36".to_owned(),
        join: None,
        queue: None,
        cloud_controller: false,
    };
    Ok(AwsProvider::connect(settings, Arc::new(Nothing), Arc::new(Nothing), Arc::new(now)).await?)
}

#[expect(clippy::disallowed_methods, reason = "the edge: moto has the time of day")]
fn now() -> Timestamp {
    Timestamp::now()
}

/// Sends EC2's spot interruption warnings to EventBridge, one event per instance.
pub async fn take_back(cloud: &Cloud, instances: &[&str]) -> anyhow::Result<()> {
    for some in instances.chunks(10) {
        let entry = |id: &&str| {
            let detail = json!({"instance-id": id, "instance-action": "terminate"}).to_string();
            json!({"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning", "Detail": detail,
                "Resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")]})
        };
        let entries: Vec<Value> = some.iter().map(entry).collect();
        let answer = cloud.events("PutEvents", &json!({"Entries": entries})).await?;
        ensure!(answer["FailedEntryCount"] == 0, "{answer}");
    }
    Ok(())
}

pub fn id_of(provider_id: &str) -> &str {
    provider_id.rsplit('/').next().unwrap_or_default()
}

/// A cloud, a cluster, and a controller between them.
pub struct Scene {
    pub cloud: Arc<Cloud>,
    /// A provider that lists all that EC2 shows.
    pub looker: AwsProvider,
    pub cluster: Cluster,
    pub controller: Controller,
    pub namespace: String,
    _machines: Machines,
    plane: ControlPlane,
}

impl Scene {
    /// Starts a scene with one pool of this spec. `prepare` sets up the cloud first.
    pub async fn start(pool: Value, prepare: impl FnOnce(&Front)) -> Self {
        let cloud = Arc::new(Cloud::start().await.unwrap());
        let looker = looker(&cloud, cloud.front.url()).await.unwrap();
        prepare(&cloud.front);
        let plane = Trial::plane_without_controller().await.unwrap();
        let controller = controller(&plane, &cloud);
        let cluster = Cluster::new(plane.client().unwrap());
        let machines = Machines::boot(Arc::clone(&cloud), cluster.client.clone());
        cluster.apply("", &[cloud.node_class(POOL), node_pool(POOL, pool)]).await.unwrap();
        let namespace = cluster.namespace("work").await.unwrap();
        Self { cloud, looker, cluster, controller, namespace, _machines: machines, plane }
    }

    /// Waits until this number of pods run.
    pub async fn wait_running(&mut self, pods: usize) -> Vec<Pod> {
        let running = self.cluster.wait_running(&self.namespace, pods).await;
        self.controller.ensure_running().unwrap();
        running.unwrap()
    }

    /// Kills the controller as `kill -9` does, and starts another.
    pub fn replace_controller(&mut self) {
        self.controller.ensure_running().unwrap();
        self.controller.kill();
        self.controller = controller(&self.plane, &self.cloud);
    }
}

fn controller(plane: &ControlPlane, cloud: &Cloud) -> Controller {
    let authority = plane.dir().join("certificates").join("apiserver.crt");
    let authority = authority.to_str().unwrap();
    let flags = [
        ["--identity", "the-only-one"],
        ["--batch-idle", "300ms"],
        ["--list-interval", "1s"],
        ["--aws-cluster", &cloud.cluster],
        ["--aws-region", "us-east-1"],
        ["--aws-cluster-endpoint", "https://api.example"],
        ["--aws-cluster-ca", authority],
        ["--aws-service-cidr", "10.100.0.0/16"],
        ["--aws-interruption-queue", &cloud.cluster],
    ]
    .concat();
    Controller::start_with(plane, "controller", &flags, |command| {
        credentials(command);
        command.env("AWS_ENDPOINT_URL", cloud.front.url());
    })
    .unwrap()
}
