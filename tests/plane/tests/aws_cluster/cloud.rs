//! A cloud for a cluster: an AWS account in moto behind a front, with the queue of EventBridge, and machines as far as a cluster
//! sees them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use axum::body::{Body, to_bytes};
use futures::StreamExt;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use poolwright_api::NodeClaim;
use poolwright_plane::aws::{Account, Front, JoinConfig, Machine, Moto};
use poolwright_plane::trial::pod;
use poolwright_plane::unique;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The id of moto's account.
pub const ACCOUNT: &str = "123456789012";
/// The number of machines that join concurrently.
const AT_A_TIME: usize = 16;
/// The interval of looks for new machines. They do not call moto, which is busy enough.
const LOOK: Duration = Duration::from_millis(100);

pub struct Cloud {
    pub moto: Moto,
    pub front: Front,
    pub account: Account,
    /// The name of the cluster and of its queue.
    pub cluster: String,
    http: HttpClient<HttpConnector, Body>,
}

impl Cloud {
    /// Starts a cloud with a queue and a rule that sends EC2's events to it.
    pub async fn start() -> anyhow::Result<Self> {
        let moto = Moto::start().await?;
        let front = Front::before(moto.url()).await?;
        let account = Account::prepare(&front).await?;
        front.know_subnets(account.subnets.clone());
        let cluster = unique("cluster");
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let cloud = Self { moto, front, account, cluster, http };
        cloud.listen().await?;
        Ok(cloud)
    }

    /// Creates the queue and the rule that fills it.
    async fn listen(&self) -> anyhow::Result<()> {
        let name = &self.cluster;
        self.front.call("sqs", &format!("Action=CreateQueue&QueueName={name}&Version=2012-11-05")).await?;
        let pattern = json!({"source": ["aws.ec2", "aws.health"]}).to_string();
        self.events("PutRule", &json!({"Name": name, "EventPattern": pattern, "State": "ENABLED"})).await?;
        let arn = format!("arn:aws:sqs:us-east-1:{ACCOUNT}:{name}");
        let targets = json!({"Rule": name, "Targets": [{"Id": "queue", "Arn": arn}]});
        let answer = self.events("PutTargets", &targets).await?;
        ensure!(answer["FailedEntryCount"] == 0, "{answer}");
        Ok(())
    }

    /// Calls EventBridge.
    pub async fn events(&self, operation: &str, body: &Value) -> anyhow::Result<Value> {
        let scope = "AWS4-HMAC-SHA256 Credential=stand-in/20200101/us-east-1/events/aws4_request, SignedHeaders=host, Signature=0";
        let request = axum::http::Request::post(self.moto.url())
            .header("authorization", scope)
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", format!("AWSEvents.{operation}"))
            .body(Body::from(body.to_string()))?;
        let answer = self.http.request(request).await?;
        let status = answer.status();
        let bytes = to_bytes(Body::new(answer.into_body()), 1 << 20).await?;
        ensure!(status.is_success(), "{operation}: {status}: {}", String::from_utf8_lossy(&bytes));
        Ok(serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Returns a node class in this account.
    pub fn node_class(&self, name: &str) -> Value {
        let subnets = ["us-east-1a", "us-east-1b"].map(|zone| json!({"id": self.account.subnet_in(zone)}));
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "EC2NodeClass", "metadata": {"name": name}, "spec": {
            "subnetSelectorTerms": subnets,
            "securityGroupSelectorTerms": [{"id": self.account.group}],
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"id": self.account.image}],
            "instanceProfile": self.account.profile,
        }})
    }
}

/// Returns a Deployment whose pods need a GPU each.
pub fn work(name: &str, pool: &str, replicas: usize) -> Value {
    let mut template = pod("-", pool, json!({"cpu": "500m", "nvidia.com/gpu": 1}));
    template["metadata"] = json!({"labels": {"app": name}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}

/// Starts the machines that EC2 launched. Each joins as a node with its user data. KWOK simulates what runs on them.
pub struct Machines(JoinHandle<()>);

impl Machines {
    pub fn boot(cloud: Arc<Cloud>, client: Client) -> Self {
        Self(tokio::spawn(async move {
            let mut joined = BTreeSet::new();
            loop {
                // A failure also shows in the test: the machine never joins.
                if let Err(error) = round(&cloud, &client, &mut joined).await {
                    eprintln!("machines: {error:#}");
                }
                tokio::time::sleep(LOOK).await;
            }
        }))
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn round(cloud: &Cloud, client: &Client, joined: &mut BTreeSet<String>) -> anyhow::Result<()> {
    let machines = cloud.front.machines();
    let nodes: Api<Node> = Api::all(client.clone());
    let is_there = |id: &String| machines.iter().any(|machine| machine.id == *id);
    let ended: Vec<String> = joined.iter().filter(|id| !is_there(id)).cloned().collect();
    for id in ended {
        // As the cloud controller manager does. KWOK would keep the node ready for ever.
        match nodes.delete(&format!("ip-{id}"), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted?),
        }
        joined.remove(&id);
    }
    let new: Vec<Machine> = machines.into_iter().filter(|machine| !joined.contains(&machine.id)).collect();
    // Machines join independently of each other.
    let whose = new.into_iter().filter_map(|machine| Some((machine.claim.clone()?, machine)));
    let joining = futures::stream::iter(whose).map(|(claim, machine)| async move {
        join(cloud, client, &machine, &claim).await.map(|()| machine.id)
    });
    let mut all = joining.buffer_unordered(AT_A_TIME);
    let mut first = Ok(());
    while let Some(one) = all.next().await {
        match one {
            Ok(id) => drop(joined.insert(id)),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first
}

async fn join(cloud: &Cloud, client: &Client, machine: &Machine, claim: &str) -> anyhow::Result<()> {
    let Machine { id, instance_type, zone, .. } = machine;
    let JoinConfig { mut labels, taints } = cloud.front.joining(id).await?;
    let name = format!("ip-{id}");
    // The labels that the kubelet and the cloud controller manager set on every EC2 node.
    for (key, value) in [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", instance_type),
        ("topology.kubernetes.io/zone", zone),
        ("topology.kubernetes.io/region", "us-east-1"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    // The node advertises what its claim expects of this offering.
    let claim = Api::<NodeClaim>::all(client.clone()).get(claim).await?;
    let mut offered = claim.spec.offerings.iter();
    let ordered = offered.find(|one| one.instance_type == *instance_type && one.zone == *zone);
    let has = &ordered.context("nobody ordered this machine")?.allocatable;
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"providerID": format!("aws:///{zone}/{id}"), "taints": taints},
        "status": {"capacity": has, "allocatable": has},
    }))?;
    let nodes: Api<Node> = Api::all(client.clone());
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        made => drop(made?),
    }
    // The status is set again, because KWOK writes it as well.
    let status = Patch::Merge(json!({"status": {"capacity": has, "allocatable": has}}));
    nodes.patch_status(&name, &PatchParams::default(), &status).await?;
    Ok(())
}
