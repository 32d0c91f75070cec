//! The world of the KWOK provider: a namespace and a node class on the control plane of this test binary, and a clock that
//! advances only when a test says so.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use async_trait::async_trait;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Config, CustomResourceExt};
use poolwright_api::render;
use poolwright_catalog::{Catalogue, OfferingId, RankedOffering, ResourceList, ResourceName};
use poolwright_plane::{ControlPlane, Options, apply, unique, wait_for};
use poolwright_provider_contract::conformance::{Failure, NodeFacts, NodeView, World};
use poolwright_provider_contract::{CloudProvider, Instance, LaunchRequest, instance_of};
use poolwright_provider_kwok::{KwokNodeClass, OfferingSelector};
use poolwright_provider_kwok::{KwokProvider, Settings};
use poolwright_terms::{GROUP, NodeClassRef, Taint, TaintEffect};
use serde_json::json;
use tokio::task::JoinHandle;

pub const SOON: Duration = Duration::from_mins(3);

/// The account that the provider runs as, with its documented rights and no others.
const ACCOUNT: &str = "kwok-provider";
const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kwok-provider}
rules:
- {apiGroups: [poolwright.dev], resources: [kwoknodeclasses], verbs: [get]}
- {apiGroups: [""], resources: [namespaces], verbs: [create]}
- {apiGroups: [""], resources: [nodes], verbs: [get, list, create, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kwok-provider-instances}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kwok-provider}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kwok-provider}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: kwok-provider}]
"#;

pub struct KwokWorld {
    pub name: String,
    /// The test's own client, with all rights.
    pub admin: Client,
    /// The provider's client.
    pub limited: Client,
    now: Arc<AtomicI64>,
    /// The simulated cloud of the latest provider.
    cloud: Mutex<Option<JoinHandle<()>>>,
}

impl KwokWorld {
    /// Makes a namespace, and a node class with AWS's offerings whose nodes join after two seconds.
    pub async fn new() -> anyhow::Result<Self> {
        Self::on(ControlPlane::shared(Options::default()).await?).await
    }

    /// Does the same on this control plane.
    pub async fn on(plane: &ControlPlane) -> anyhow::Result<Self> {
        let admin = plane.client()?;
        let name = unique("kwok");
        apply(&admin, &name, &render(&KwokNodeClass::crd())).await?;
        apply(&admin, &name, RIGHTS).await?;
        let classes: Api<KwokNodeClass> = Api::all(admin.clone());
        wait_for("KwokNodeClass to be served", SOON, async || {
            Ok(classes.list(&ListParams::default()).await?)
        })
        .await?;
        let own = format!(
            r"
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: kwok-provider, namespace: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kwok-provider-instances}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: kwok-provider}}]
---
apiVersion: poolwright.dev/v1alpha1
kind: KwokNodeClass
metadata: {{name: {name}}}
spec: {{provider: aws, registrationDelay: 2s}}
"
        );
        apply(&admin, &name, &own).await?;
        let limited = impersonating(plane, ACCOUNT)?;
        let maps: Api<ConfigMap> = Api::namespaced(limited.clone(), &name);
        let nodes: Api<Node> = Api::all(limited.clone());
        wait_for("the provider's rights to be known to the API server", SOON, async || {
            maps.list(&ListParams::default()).await?;
            nodes.list(&ListParams::default()).await?;
            Ok(())
        })
        .await?;
        let now = Arc::new(AtomicI64::new(1_790_000_000));
        Ok(Self { name, admin, limited, now, cloud: Mutex::default() })
    }

    /// Returns a provider whose cloud does not run.
    pub fn idle_provider(&self) -> KwokProvider {
        self.provider_in(&self.name, self.limited.clone())
    }

    pub fn provider_in(&self, namespace: &str, client: Client) -> KwokProvider {
        let now = Arc::clone(&self.now);
        let clock = Arc::new(move || {
            Timestamp::from_second(now.load(Ordering::Relaxed)).expect("a time within jiff's range")
        });
        let settings = Settings {
            namespace: namespace.to_owned(),
            resync: Duration::from_millis(50),
            ..Settings::default()
        };
        KwokProvider::new(client, Arc::new(catalogue()), clock, settings)
    }

    /// Returns a provider whose cloud runs until the next one starts, or this world ends.
    pub fn running_provider(&self) -> Arc<KwokProvider> {
        let provider = Arc::new(self.idle_provider());
        let running = Arc::clone(&provider);
        let cloud = tokio::spawn(async move { running.run(std::future::pending()).await });
        if let Some(before) = self.lock().replace(cloud) {
            before.abort();
        }
        provider
    }

    pub fn stop_cloud(&self) {
        if let Some(cloud) = self.lock().take() {
            cloud.abort();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.cloud.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn advance(&self, seconds: i64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// Returns a request for one g5.xlarge. `name` identifies it within this world.
    pub fn request(&self, name: &str) -> LaunchRequest {
        let catalogue = catalogue();
        let offering = catalogue
            .offerings()
            .iter()
            .find(|one| one.id.instance_type.as_str() == "g5.xlarge" && one.price.known().is_some())
            .expect("the built-in catalogue sells g5.xlarge");
        LaunchRequest {
            key: format!("{}-{name}-uid", self.name),
            claim: format!("{}-{name}", self.name),
            node_class: self.node_class(),
            offerings: vec![RankedOffering {
                offering: offering.id.clone(),
                price: offering.price.known(),
                allocatable: catalogue.types()[&offering.id.instance_type].allocatable.clone(),
            }],
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            together: 0,
            batch: None,
        }
    }

    pub fn nodes(&self) -> Api<Node> {
        Api::all(self.admin.clone())
    }

    pub fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.admin.clone(), &self.name)
    }

    /// Waits for the node of this name, while the clock advances.
    pub async fn wait_for_node(&self, name: &str) -> anyhow::Result<Node> {
        wait_for(&format!("node {name}"), SOON, async || {
            self.advance(1);
            self.nodes().get(name).await.context("it is not there")
        })
        .await
    }

    /// Waits until no node of this name exists.
    pub async fn wait_for_no_node(&self, name: &str) -> anyhow::Result<()> {
        wait_for(&format!("node {name} to go"), SOON, async || {
            ensure!(self.nodes().get_opt(name).await?.is_none(), "it is there");
            Ok(())
        })
        .await
    }

    /// Sets `spec.faults` of the node class.
    pub async fn set_faults(&self, faults: serde_json::Value) -> anyhow::Result<()> {
        self.patch_class(json!({"faults": faults})).await
    }

    pub async fn patch_class(&self, spec: serde_json::Value) -> anyhow::Result<()> {
        let classes: Api<KwokNodeClass> = Api::all(self.admin.clone());
        let patch = Patch::Merge(json!({"spec": spec}));
        classes.patch(&self.name, &PatchParams::default(), &patch).await?;
        Ok(())
    }
}

impl Drop for KwokWorld {
    fn drop(&mut self) {
        self.stop_cloud();
    }
}

/// Returns a client with the rights of this user.
pub fn impersonating(plane: &ControlPlane, user: &str) -> anyhow::Result<Client> {
    let mut config: Config = plane.config().clone();
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Client::try_from(config)?)
}

pub fn catalogue() -> Catalogue {
    poolwright_catalog::builtin()
}

fn failed(error: impl Into<anyhow::Error>) -> Failure {
    Failure(format!("the world failed: {:#}", error.into()))
}

#[async_trait(?Send)]
impl World for KwokWorld {
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure> {
        Ok(self.running_provider())
    }

    fn node_class(&self) -> NodeClassRef {
        NodeClassRef { group: GROUP.to_owned(), kind: "KwokNodeClass".to_owned(), name: self.name.clone() }
    }

    fn prefix(&self) -> String {
        self.name.clone()
    }

    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure> {
        let selectors: Vec<_> = offerings
            .iter()
            .map(|id| OfferingSelector {
                instance_type: Some(id.instance_type.to_string()),
                zone: Some(id.zone.to_string()),
                capacity_type: Some(id.capacity_type),
            })
            .collect();
        self.set_faults(json!({"stockOuts": selectors})).await.map_err(failed)
    }

    async fn node(&self, instance: &Instance) -> Result<NodeView, Failure> {
        match self.nodes().get_opt(&instance.claim).await.map_err(failed)? {
            Some(node) => Ok(NodeView::Present(facts(node).map_err(failed)?)),
            None => Ok(NodeView::Absent),
        }
    }

    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure> {
        let finalizers = if held { json!(["example.com/held"]) } else { json!(null) };
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        match self.nodes().patch(&instance.claim, &PatchParams::default(), &patch).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    async fn interrupt(&self, instance: &Instance) -> Result<bool, Failure> {
        let name = instance_of(&instance.provider_id);
        for _ in 0..5 {
            let mut map = self.maps().get(name).await.map_err(failed)?;
            let data = map.data.get_or_insert_default();
            let text = data.get("instance").cloned().unwrap_or_default();
            let mut record: serde_json::Value = serde_json::from_str(&text).map_err(failed)?;
            let noticed = Timestamp::from_second(self.now.load(Ordering::Relaxed)).map_err(failed)?;
            let ends = noticed + jiff::SignedDuration::from_mins(2);
            record["interruption"] = json!({"noticed": noticed, "ends": ends});
            data.insert("instance".to_owned(), record.to_string());
            match self.maps().replace(name, &PostParams::default(), &map).await {
                Ok(_) => return Ok(true),
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure(format!("the record of {name} changes all the time")))
    }

    async fn pause(&self) {
        self.advance(1);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub fn facts(node: Node) -> anyhow::Result<NodeFacts> {
    let spec = node.spec.unwrap_or_default();
    let allocatable = node.status.unwrap_or_default().allocatable.unwrap_or_default();
    let taints = spec.taints.unwrap_or_default().into_iter().map(|taint| {
        let Some(effect) = TaintEffect::named(&taint.effect) else {
            anyhow::bail!("unknown effect {}", taint.effect)
        };
        Ok(Taint { key: taint.key, value: taint.value.unwrap_or_default(), effect })
    });
    let amounts = allocatable.iter().map(|(name, quantity)| Ok((name.as_str(), amount(name, quantity)?)));
    Ok(NodeFacts {
        provider_id: spec.provider_id.unwrap_or_default(),
        labels: node.metadata.labels.unwrap_or_default(),
        annotations: node.metadata.annotations.unwrap_or_default(),
        taints: taints.collect::<anyhow::Result<_>>()?,
        allocatable: amounts.collect::<anyhow::Result<ResourceList>>()?,
    })
}

/// Reads a quantity. The API server writes 16000 as 16k, and 4000m as 4.
fn amount(name: &str, quantity: &Quantity) -> anyhow::Result<u64> {
    let text = quantity.0.as_str();
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let thousandths: u128 = match &text[digits.len()..] {
        "m" => 1,
        "" => 1000,
        "k" => 1_000_000,
        "M" => 1_000_000_000,
        "G" => 1_000_000_000_000,
        "Ki" => 1000 << 10,
        "Mi" => 1000 << 20,
        "Gi" => 1000 << 30,
        other => anyhow::bail!("{name}: {text}: unknown suffix {other}"),
    };
    let all = digits.parse::<u128>()? * thousandths;
    Ok(u64::try_from(if name == ResourceName::CPU { all } else { all / 1000 })?)
}
