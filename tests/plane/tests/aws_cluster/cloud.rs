//! A cloud for a cluster: an account of moto behind a stand-in of its own, with the queue that EventBridge sends to; and machines in
//! it, as far as a cluster sees of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use axum::body::{Body, to_bytes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use poolwright_api::{EC2NodeClass, NodeClaim};
use poolwright_plane::aws::{Account, Front, Moto};
use poolwright_plane::trial::pod;
use poolwright_plane::unique;
use poolwright_provider_aws::{Access, AwsProvider, BootstrapToken, Classes, Key, Settings, Tokens};
use poolwright_provider_contract::{CloudProvider, Instance, InstanceState, ProviderError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The account of moto.
const ACCOUNT: &str = "123456789012";
/// How often somebody looks whether there is a new machine.
const LOOK: Duration = Duration::from_millis(500);

pub struct Cloud {
    moto: Moto,
    pub front: Front,
    pub account: Account,
    /// Name of the cluster, and of its queue.
    pub cluster: String,
    http: HttpClient<HttpConnector, Body>,
    /// To look with: it makes nothing.
    looker: AwsProvider,
}

/// Nobody launches with the one who looks.
struct Nothing;

#[async_trait]
impl Classes for Nothing {
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

impl Cloud {
    /// A cloud with a queue, and rules that send there what EC2 says.
    pub async fn start() -> anyhow::Result<Self> {
        let moto = Moto::start().await?;
        let front = Front::before(moto.url()).await?;
        let account = Account::prepare(&front).await?;
        front.know_subnets(account.subnets.clone());
        let cluster = unique("cluster");
        let settings = Settings {
            access: Access {
                region: Some("us-east-1".to_owned()),
                endpoint: Some(moto.url().to_owned()),
                key: Some(Key { id: "looker".to_owned(), secret: "stand-in".to_owned() }),
            },
            cluster: cluster.clone(),
            kubernetes: "1.36".to_owned(),
            join: None,
            queue: None,
            cloud_controller: false,
        };
        let looker =
            AwsProvider::connect(settings, Arc::new(Nothing), Arc::new(Nothing), Arc::new(now)).await?;
        let http = HttpClient::builder(TokioExecutor::new()).build_http();
        let cloud = Self { moto, front, account, cluster, http, looker };
        cloud.listen().await?;
        Ok(cloud)
    }

    /// The queue, and the rule that fills it.
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

    /// What EC2 says when it takes spot instances back, put on EventBridge: each in an event of its own.
    #[allow(dead_code, reason = "the test needs it, measurements do not")]
    pub async fn take_back(&self, instances: &[&str]) -> anyhow::Result<()> {
        for some in instances.chunks(10) {
            let entry = |id: &&str| {
                let detail = json!({"instance-id": id, "instance-action": "terminate"}).to_string();
                json!({"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning", "Detail": detail,
                    "Resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")]})
            };
            let entries: Vec<Value> = some.iter().map(entry).collect();
            let answer = self.events("PutEvents", &json!({"Entries": entries})).await?;
            ensure!(answer["FailedEntryCount"] == 0, "{answer}");
        }
        Ok(())
    }

    async fn events(&self, operation: &str, body: &Value) -> anyhow::Result<Value> {
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

    /// The same as messages on the queue, as many in a call as SQS takes, and several calls at a time.
    #[allow(dead_code, reason = "measurements need it, the test does not")]
    pub async fn tell_queue(&self, instances: &[&str]) -> anyhow::Result<()> {
        let url = format!("{}/{ACCOUNT}/{}", self.moto.url(), self.cluster);
        let time = now();
        let calls = instances.chunks(10).map(|some| {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("Action", "SendMessageBatch").append_pair("Version", "2012-11-05");
            form.append_pair("QueueUrl", &url);
            for (number, id) in some.iter().enumerate() {
                let body = json!({
                    "version": "0", "id": format!("event-{id}"), "detail-type": "EC2 Spot Instance Interruption Warning",
                    "source": "aws.ec2", "account": ACCOUNT, "time": time, "region": "us-east-1",
                    "resources": [format!("arn:aws:ec2:us-east-1a:instance/{id}")],
                    "detail": {"instance-id": id, "instance-action": "terminate"},
                });
                let field = |name: &str| format!("SendMessageBatchRequestEntry.{}.{name}", number + 1);
                form.append_pair(&field("Id"), &number.to_string());
                form.append_pair(&field("MessageBody"), &body.to_string());
            }
            let query = form.finish();
            async move {
                let answer = self.front.call("sqs", &query).await?;
                ensure!(answer.contains("SendMessageBatchResultEntry"), "{answer}");
                Ok(())
            }
        });
        futures::future::try_join_all(calls).await.map(|_| ())
    }

    /// How many types moto has, and how long it takes to tell of them, page by page.
    #[allow(dead_code, reason = "measurements need it, the test does not")]
    pub async fn list_types(&self) -> anyhow::Result<(usize, Duration)> {
        #[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
        let begun = std::time::Instant::now();
        let (mut types, mut token) = (0, String::new());
        loop {
            let query =
                format!("Action=DescribeInstanceTypes&Version=2016-11-15&MaxResults=100&NextToken={token}");
            let query = if token.is_empty() { query.replace("&NextToken=", "") } else { query };
            let answer = self.front.call("ec2", &query).await?;
            types += answer.matches("<instanceType>").count();
            match answer.split("<nextToken>").nth(1).and_then(|rest| rest.split('<').next()) {
                Some(next) if !next.is_empty() => next.clone_into(&mut token),
                _ => break,
            }
        }
        Ok((types, begun.elapsed()))
    }

    /// A node class in this account.
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

    /// What there is of the cluster, as EC2 tells it.
    pub async fn instances(&self) -> anyhow::Result<Vec<Instance>> {
        Ok(self.looker.list().await?)
    }

    /// What the machine is told when it starts.
    async fn user_data(&self, id: &str) -> anyhow::Result<String> {
        let query =
            format!("Action=DescribeInstanceAttribute&Attribute=userData&InstanceId={id}&Version=2016-11-15");
        let answer = self.front.call("ec2", &query).await?;
        let told = answer.split("<value>").nth(1).and_then(|rest| rest.split('<').next());
        let told = told.with_context(|| format!("{id} has no user data: {answer}"))?;
        Ok(String::from_utf8(STANDARD.decode(told.trim())?)?)
    }
}

/// Pods with a GPU each, that are made anew wherever they end.
pub fn work(name: &str, pool: &str, replicas: usize) -> Value {
    let mut template = pod("-", pool, json!({"cpu": "500m", "nvidia.com/gpu": 1}));
    template["metadata"] = json!({"labels": {"app": name}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": template["metadata"], "spec": template["spec"]}}})
}

/// Machines that start what EC2 launched: each joins as a node, with what its user data says. KWOK plays what runs on them.
pub struct Machines(JoinHandle<()>);

impl Machines {
    pub fn boot(cloud: Arc<Cloud>, client: Client) -> Self {
        Self(tokio::spawn(async move {
            let mut joined = BTreeSet::new();
            loop {
                // What goes wrong shows in the test: a machine that never joins.
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
    for instance in cloud.instances().await? {
        if instance.state == InstanceState::Running && !joined.contains(&instance.provider_id) {
            join(cloud, client, &instance).await?;
            joined.insert(instance.provider_id);
        }
    }
    Ok(())
}

async fn join(cloud: &Cloud, client: &Client, instance: &Instance) -> anyhow::Result<()> {
    let id = instance.provider_id.rsplit('/').next().unwrap_or_default();
    let config = node_config(&cloud.user_data(id).await?)?;
    let kubelet = &config["spec"]["kubelet"];
    let flags = kubelet["flags"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut labels: BTreeMap<String, String> = flags
        .filter_map(|flag| flag.strip_prefix("--node-labels="))
        .flat_map(|list| list.split(','))
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    let name = format!("ip-{id}");
    // What the kubelet and the cloud controller manager say of every node on EC2.
    for (key, value) in [
        ("kubernetes.io/hostname", name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", instance.offering.instance_type.as_str()),
        ("topology.kubernetes.io/zone", instance.offering.zone.as_str()),
        ("topology.kubernetes.io/region", "us-east-1"),
    ] {
        labels.insert(key.to_owned(), value.to_owned());
    }
    // The machine is what was ordered.
    let claim = Api::<NodeClaim>::all(client.clone()).get(&instance.claim).await?;
    let ordered = claim.spec.offerings.iter().find(|one| {
        one.instance_type == instance.offering.instance_type.as_str()
            && one.zone == instance.offering.zone.as_str()
    });
    let has = &ordered.context("nobody ordered this machine")?.allocatable;
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"providerID": instance.provider_id, "taints": kubelet["config"]["registerWithTaints"]},
        "status": {"capacity": has, "allocatable": has},
    }))?;
    let nodes: Api<Node> = Api::all(client.clone());
    match nodes.create(&PostParams::default(), &node).await {
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        made => drop(made?),
    }
    // KWOK writes the status as well.
    let status = Patch::Merge(json!({"status": {"capacity": has, "allocatable": has}}));
    nodes.patch_status(&name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// The NodeConfig in the user data of AL2023: nodeadm takes the last part of its kind.
fn node_config(user_data: &str) -> anyhow::Result<Value> {
    let parts = user_data.split("application/node.eks.aws").last().context("no NodeConfig")?;
    let begin = parts.find('{').context("no NodeConfig as JSON")?;
    let mut documents = serde_json::Deserializer::from_str(&parts[begin..]).into_iter::<Value>();
    documents.next().context("no NodeConfig")?.context("the NodeConfig cannot be read")
}

#[expect(clippy::disallowed_methods, reason = "the edge: moto has the time of day")]
fn now() -> Timestamp {
    Timestamp::now()
}
