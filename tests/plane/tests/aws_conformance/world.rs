//! The world of a case: an AWS account in moto behind a front, a unique cluster name, and a node class.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{OfferingId, RankedOffering};
use poolwright_plane::aws::{Account, Front, Group, Moto, Trouble};
use poolwright_plane::unique;
use poolwright_provider_aws::node_class::{EC2NodeClass, EC2NodeClassSpec};
use poolwright_provider_aws::{
    Access, AwsProvider, BootstrapToken, Join, Key, NodeClassObjects, Settings, Tokens,
};
use poolwright_provider_contract::conformance::{Failure, JoinConfig, NodeView, World};
use poolwright_provider_contract::{CloudProvider, Instance, LaunchRequest, ProviderError, instance_of};
use poolwright_terms::{CapacityType, GROUP, NodeClassRef, Taint, TaintEffect};
use serde_json::json;
use tokio::sync::Mutex;

use crate::persistent::Persistent;

/// The number of worlds that share a moto. For each listing, moto compares every instance that it ever had with every tag. With too
/// many of them, it answers so late that calls time out, and their retries slow it down further. With few, most of moto's processor
/// time goes into its starts.
const SHARING: usize = 16;

/// A moto with its account. Each world has a cluster of its own in it.
struct Cloud {
    moto: Moto,
    account: Account,
}

/// The moto of the last world, and the number of worlds that it has served.
static LAST: Mutex<Option<(Arc<Cloud>, usize)>> = Mutex::const_new(None);

impl Cloud {
    /// Returns the moto of the next world. The moto ends with its last world.
    async fn next() -> anyhow::Result<Arc<Self>> {
        let mut last = LAST.lock().await;
        if let Some((cloud, served)) = last.as_mut().filter(|(_, served)| *served < SHARING) {
            *served += 1;
            return Ok(Arc::clone(cloud));
        }
        let moto = Moto::start().await?;
        let account = Account::prepare(&Front::before(moto.url()).await?).await?;
        let cloud = Arc::new(Self { moto, account });
        *last = Some((Arc::clone(&cloud), 1));
        Ok(cloud)
    }
}

/// The secret key that signs calls.
pub const SECRET: &str = "the-secret-of-a-stand-in";

pub struct AwsWorld {
    pub front: Front,
    _cloud: Arc<Cloud>,
    pub account: Account,
    pub cluster: String,
    class: Arc<OneClass>,
    /// The bootstrap tokens made so far.
    pub tokens: Arc<Counted>,
    spec: EC2NodeClassSpec,
    pub region: String,
    /// The join settings of the suite's nodes.
    join: Option<Join>,
    /// The interruption queue.
    pub queue: Option<String>,
    /// The seconds by which the providers' clock is ahead.
    pub ahead: Arc<AtomicI64>,
}

/// The only node class.
struct OneClass(std::sync::Mutex<EC2NodeClass>);

#[async_trait]
impl NodeClassObjects for OneClass {
    async fn class(&self, name: &str) -> Result<Option<EC2NodeClass>, ProviderError> {
        let class = self.0.lock().expect("no test panicked in it").clone();
        Ok((class.metadata.name.as_deref() == Some(name)).then_some(class))
    }
}

/// Makes numbered tokens and records when they expire.
#[derive(Default)]
pub struct Counted(std::sync::Mutex<Vec<Timestamp>>);

impl Counted {
    /// Returns the expiration times of the tokens made so far.
    pub fn made(&self) -> Vec<Timestamp> {
        self.0.lock().expect("no test panicked in it").clone()
    }

    /// Returns the token that was made after `number` others.
    pub fn text(number: usize) -> String {
        format!("abcdef.only{number:012}")
    }
}

#[async_trait]
impl Tokens for Counted {
    async fn make(&self, expires: Timestamp) -> Result<BootstrapToken, ProviderError> {
        let mut made = self.0.lock().expect("no test panicked in it");
        made.push(expires);
        Ok(Self::text(made.len() - 1).parse().expect("a token"))
    }
}

impl AwsWorld {
    pub async fn new() -> anyhow::Result<Self> {
        let cloud = Cloud::next().await?;
        let front = Front::before(cloud.moto.url()).await?;
        let account = cloud.account.clone();
        front.know_subnets(account.subnets.clone());
        let subnets = ["us-east-1a", "us-east-1b"].map(|zone| json!({"id": account.subnet_in(zone)}));
        let spec = json!({
            "subnetSelectorTerms": subnets,
            "securityGroupSelectorTerms": [{"id": account.group}],
            "amiFamily": "Custom",
            "amiSelectorTerms": [{"id": account.image}],
            "instanceProfile": account.profile,
        });
        let spec: EC2NodeClassSpec = serde_json::from_value(spec)?;
        let class = Arc::new(OneClass(EC2NodeClass::new("gpu", spec.clone()).into()));
        Ok(Self {
            front,
            _cloud: cloud,
            account,
            cluster: unique("cluster"),
            class,
            tokens: Arc::default(),
            spec,
            region: "us-east-1".to_owned(),
            join: None,
            queue: None,
            ahead: Arc::default(),
        })
    }

    /// Makes a world in which nodes know how to join, and in which interruptions can be received.
    pub async fn for_the_suite() -> anyhow::Result<Self> {
        let mut world = Self::new().await?;
        world.merge_class(json!({"amiFamily": "AL2023"}));
        world.join = Some(eks());
        let queue = world.cluster.clone();
        world.front.call("sqs", &format!("Action=CreateQueue&QueueName={queue}&Version=2012-11-05")).await?;
        world.front.keep_messages();
        world.queue = Some(queue);
        Ok(world)
    }

    /// Returns a provider without any state.
    pub async fn connect(&self) -> Result<AwsProvider, ProviderError> {
        self.connect_with(None).await
    }

    pub async fn connect_with(&self, join: Option<Join>) -> Result<AwsProvider, ProviderError> {
        self.connect_for(self.class.clone(), join).await
    }

    /// Returns a provider that reads its classes from `classes`.
    pub async fn connect_for(
        &self,
        classes: Arc<dyn NodeClassObjects>,
        join: Option<Join>,
    ) -> Result<AwsProvider, ProviderError> {
        self.connect_all(classes, self.tokens.clone(), join).await
    }

    /// Returns a provider that makes its tokens with `tokens`.
    pub async fn connect_to(
        &self,
        tokens: Arc<dyn Tokens>,
        join: Option<Join>,
    ) -> Result<AwsProvider, ProviderError> {
        self.connect_all(self.class.clone(), tokens, join).await
    }

    async fn connect_all(
        &self,
        classes: Arc<dyn NodeClassObjects>,
        tokens: Arc<dyn Tokens>,
        join: Option<Join>,
    ) -> Result<AwsProvider, ProviderError> {
        let key = Key { id: self.cluster.clone(), secret: SECRET.to_owned() };
        let access = Access {
            region: Some(self.region.clone()),
            endpoint: Some(self.front.url().to_owned()),
            key: Some(key),
        };
        let settings = Settings {
            access,
            cluster: self.cluster.clone(),
            cluster_id: None,
            kubernetes: "1.36".to_owned(),
            join,
            queue: self.queue.clone(),
            cloud_controller: false,
        };
        let ahead = Arc::clone(&self.ahead);
        let clock = move || now() + SignedDuration::from_secs(ahead.load(Ordering::Relaxed));
        AwsProvider::connect(settings, classes, tokens, Arc::new(clock)).await
    }

    /// Changes fields of the node class. Null removes a field.
    pub fn merge_class(&self, patch: serde_json::Value) {
        let mut class = self.class.0.lock().expect("no test panicked in it");
        let mut spec = serde_json::to_value(&class.spec).expect("a class is JSON");
        for (field, value) in patch.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        class.spec = serde_json::from_value(spec).expect("a class");
    }

    /// Restores the original node class.
    pub fn reset_class(&self) {
        self.class.0.lock().expect("no test panicked in it").spec = self.spec.clone();
    }

    /// Returns a launch request with these offerings.
    pub fn request(&self, number: usize, offerings: &[RankedOffering]) -> LaunchRequest {
        LaunchRequest {
            key: format!("{}-key-{number}", self.cluster),
            claim: format!("{}-{number}", self.cluster),
            node_class: self.node_class(),
            offerings: offerings.to_vec(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            together: 0,
            batch: None,
        }
    }

    pub fn trouble(&self, percent: u64, seed: u64) {
        self.front.trouble(Trouble { percent, seed });
    }
}

/// Returns the user data of each launch template of the cluster.
pub async fn user_data(world: &AwsWorld) -> BTreeMap<String, String> {
    let texts = |xml: &str, element: &str| -> Vec<String> {
        let (open, close) = (format!("<{element}>"), format!("</{element}>"));
        xml.split(&open).skip(1).filter_map(|rest| Some(rest.split_once(&close)?.0.to_owned())).collect()
    };
    let ours = format!(
        "Action=DescribeLaunchTemplates&Version=2016-11-15&Filter.1.Name=tag:poolwright.dev/cluster&Filter.1.Value.1={}",
        world.cluster
    );
    let templates = world.front.call("ec2", &ours).await.unwrap();
    let mut all = BTreeMap::new();
    for name in texts(&templates, "launchTemplateName") {
        let versions =
            format!("Action=DescribeLaunchTemplateVersions&Version=2016-11-15&LaunchTemplateName={name}");
        let data = texts(&world.front.call("ec2", &versions).await.unwrap(), "userData");
        let [data] = &data[..] else { panic!("{name} has {} versions", data.len()) };
        all.insert(name, String::from_utf8(STANDARD.decode(data).unwrap()).unwrap());
    }
    all
}

#[expect(clippy::disallowed_methods, reason = "the edge: moto has the time of day")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Returns a placement group named `training`.
pub fn training(strategy: &str, partitions: u32) -> Group {
    Group {
        name: "training".to_owned(),
        state: "available".to_owned(),
        strategy: strategy.to_owned(),
        partitions,
    }
}

/// Returns join settings for an EKS cluster that does not exist.
pub fn eks() -> Join {
    Join {
        endpoint: "https://api.example".to_owned(),
        ca: "LS0tLS1CRUdJTg==".to_owned(),
        service_cidr: Some("10.100.0.0/16".to_owned()),
    }
}

/// Returns EventBridge's warning that EC2 takes a spot instance back in two minutes.
pub fn warning(instance: &str, at: Timestamp) -> String {
    json!({
        "version": "0", "id": "1e5527d7-bb36-4607-3370-4164db56a40e",
        "detail-type": "EC2 Spot Instance Interruption Warning", "source": "aws.ec2", "account": "123456789012",
        "time": at.strftime("%FT%TZ").to_string(), "region": "us-east-1",
        "resources": [format!("arn:aws:ec2:us-east-1b:instance/{instance}")],
        "detail": {"instance-id": instance, "instance-action": "terminate"},
    })
    .to_string()
}

/// Reads a taint of the kubelet's configuration.
fn taint(one: &serde_json::Value) -> Result<Taint, Failure> {
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    let effect = one["effect"].as_str().and_then(TaintEffect::named);
    let effect = effect.ok_or_else(|| Failure(format!("no kubelet takes this taint: {one}")))?;
    Ok(Taint { key: text("key"), value: text("value"), effect })
}

pub fn pool(offering: &OfferingId) -> (String, String, bool) {
    let spot = offering.capacity_type == CapacityType::Spot;
    (offering.instance_type.to_string(), offering.zone.to_string(), spot)
}

#[async_trait(?Send)]
impl World for AwsWorld {
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure> {
        // A restart takes longer than EC2 needs to show what was launched.
        self.front.show_all();
        Ok(Arc::new(Persistent(self.connect_with(self.join.clone()).await?)))
    }

    fn node_class(&self) -> NodeClassRef {
        NodeClassRef { group: GROUP.to_owned(), kind: "EC2NodeClass".to_owned(), name: "gpu".to_owned() }
    }

    fn prefix(&self) -> String {
        self.cluster.clone()
    }

    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure> {
        self.front.set_stock(offerings.iter().map(|offering| (pool(offering), 0)));
        Ok(())
    }

    async fn node(&self, instance: &Instance) -> Result<NodeView, Failure> {
        let id = instance_of(&instance.provider_id);
        if !self.front.machines().iter().any(|machine| machine.id == id) {
            return Ok(NodeView::Absent);
        }
        let told = self.front.joining(id).await.map_err(|error| Failure(format!("{error:#}")))?;
        let taints = told.taints.as_array().into_iter().flatten().map(taint).collect::<Result<_, _>>()?;
        Ok(NodeView::JoinConfig(JoinConfig { labels: told.labels, taints }))
    }

    async fn interrupt(&self, instance: &Instance) -> Result<bool, Failure> {
        Ok(self.front.put([warning(instance_of(&instance.provider_id), now())]))
    }

    async fn redeliver(&self) -> Result<(), Failure> {
        self.front.redeliver();
        Ok(())
    }

    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure> {
        let id = instance.provider_id.rsplit('/').next().unwrap_or_default();
        self.front.hold(id, held).await.map_err(|error| Failure(format!("{error:#}")))?;
        Ok(true)
    }

    async fn pause(&self) {
        // The former provider may still have received messages.
        self.front.redeliver();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
