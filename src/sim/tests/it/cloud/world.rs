//! A world with a cloud and nodes, without a controller.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::Method;
use poolwright_catalog::{OfferingId, RankedOffering, builtin};
use poolwright_provider_contract::conformance::{Failure, NodeFacts, NodeView, World};
use poolwright_provider_contract::{CloudProvider, Instance, LaunchRequest};
use poolwright_sim::accidents::{Accidents, Rates};
use poolwright_sim::api::ApiServer;
use poolwright_sim::cloud::{Cloud, CloudOf, NODE_CLASS, NODE_CLASS_KIND, Quotas, SIM_NODE_CLASS};
use poolwright_sim::cluster::Cluster;
use poolwright_sim::dice::Dice;
use poolwright_sim::record::Record;
use poolwright_sim::time::Time;
use poolwright_sim::wire::{Process, unwatched};
use poolwright_terms::{CapacityType, NodeClassRef, Taint, TaintEffect};
use serde_json::Value;
use tokio::time::timeout;

/// The parts of the world.
pub struct SimWorld {
    server: ApiServer,
    pub cloud: Arc<Cloud>,
    cluster: RefCell<Cluster>,
    time: Time,
}

impl SimWorld {
    /// Makes a world that sells two sizes of a family. Create it inside a runtime whose clock is paused.
    pub fn new(seed: u64, rates: Rates, quotas: Quotas) -> Self {
        Self::selling(&["g4dn.xlarge", "g4dn.12xlarge"], seed, rates, quotas)
    }

    /// Makes a world that sells these types, in one zone each.
    pub fn selling(kinds: &[&str], seed: u64, rates: Rates, quotas: Quotas) -> Self {
        let sold =
            |kind: &str, zone: &str| kinds.contains(&kind) && ["us-east-1a", "us-central1"].contains(&zone);
        let catalogue =
            builtin().filtered(|kind, offering| sold(kind.name.as_str(), offering.id.zone.as_str()));
        let time = Time::beginning();
        let record = Record::new(time, false);
        let accidents = Accidents::new(seed, rates, None);
        let server = ApiServer::new(
            &poolwright_provider_contract::crds([SIM_NODE_CLASS]),
            Arc::new(move || time.now()),
        );
        let cloud = Cloud::new((Arc::new(catalogue), quotas), time, accidents, record.clone(), seed);
        cloud.know_only(&[NODE_CLASS]);
        let dice = Dice::new(seed, "cluster");
        let cluster = Cluster::new(server.clone(), cloud.clone(), time, record, dice, Vec::new());
        Self { server, cloud, cluster: RefCell::new(cluster), time }
    }

    /// Returns a caller of the cloud.
    pub fn caller(&self) -> Arc<dyn CloudProvider> {
        Arc::new(CloudOf {
            cloud: self.cloud.clone(),
            kinds: vec![SIM_NODE_CLASS.kind],
            process: Process::new("test", 1),
            witness: unwatched(),
            sabotage: None,
        })
    }

    /// Returns a request for a machine of this type in any zone.
    pub fn request(&self, name: &str, kind: &str, capacity: CapacityType) -> LaunchRequest {
        let catalogue = self.cloud.catalogue();
        let these = catalogue
            .offerings()
            .iter()
            .filter(|one| one.id.instance_type.as_str() == kind && one.id.capacity_type == capacity);
        let ranked = these.map(|one| RankedOffering {
            offering: one.id.clone(),
            price: one.price.known(),
            allocatable: catalogue.types()[&one.id.instance_type].allocatable.clone(),
        });
        LaunchRequest {
            key: format!("key-{name}"),
            claim: name.to_owned(),
            node_class: self.node_class(),
            offerings: ranked.collect(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            together: 0,
            batch: None,
        }
    }

    /// Runs the world until this time.
    #[expect(clippy::await_holding_refcell_ref, reason = "one task, and nobody else asks meanwhile")]
    pub async fn live_until(&self, until: Duration) {
        let mut cluster = self.cluster.borrow_mut();
        while self.time.elapsed() < until {
            let left = until.saturating_sub(self.time.elapsed());
            let _ = timeout(left, cluster.step()).await;
        }
    }

    fn object(&self, name: &str) -> Option<Value> {
        self.ask(&Method::GET, &format!("/api/v1/nodes/{name}"), "", &Value::Null)
    }

    /// Sends a request to the API server. Returns the object of the answer, or nothing if the request is refused.
    pub fn ask(&self, method: &Method, path: &str, content_type: &str, body: &Value) -> Option<Value> {
        let (code, object) = self.server.ask(method, path, content_type, body);
        (200..300).contains(&code).then_some(object)
    }

    /// Returns the keys of a node's taints, if the node exists.
    pub fn taints(&self, name: &str) -> Option<Vec<String>> {
        let taints = self.object(name)?["spec"]["taints"].clone();
        let keys = taints.as_array().into_iter().flatten().filter_map(|taint| taint["key"].as_str());
        Some(keys.map(str::to_owned).collect())
    }
}

#[async_trait(?Send)]
impl World for SimWorld {
    async fn provider(&self) -> Result<Arc<dyn CloudProvider>, Failure> {
        Ok(self.caller())
    }

    fn node_class(&self) -> NodeClassRef {
        let group = "poolwright.dev".to_owned();
        NodeClassRef { group, kind: NODE_CLASS_KIND.to_owned(), name: NODE_CLASS.to_owned() }
    }

    fn prefix(&self) -> String {
        "world".to_owned()
    }

    async fn set_stock_outs(&self, offerings: &[OfferingId]) -> Result<(), Failure> {
        self.cloud.set_stock_outs(offerings, Duration::from_hours(24));
        Ok(())
    }

    async fn node(&self, instance: &Instance) -> Result<NodeView, Failure> {
        let Some(object) = self.object(&instance.claim) else { return Ok(NodeView::Absent) };
        let node: k8s_openapi::api::core::v1::Node =
            serde_json::from_value(object).map_err(|error| Failure(error.to_string()))?;
        let model = poolwright_intake::node(&node).map_err(|error| Failure(error.to_string()))?;
        // The device plugin adds the GPUs after the node has joined.
        if model.allocatable.get("nvidia.com/gpu") == 0 {
            return Ok(NodeView::Absent);
        }
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let taints = taints.into_iter().map(|taint| Taint {
            effect: TaintEffect::named(&taint.effect).expect("an effect of Kubernetes"),
            key: taint.key,
            value: taint.value.unwrap_or_default(),
        });
        Ok(NodeView::Present(NodeFacts {
            provider_id: model.provider_id.clone().unwrap_or_default(),
            labels: model.labels.clone(),
            annotations: node.metadata.annotations.unwrap_or_default(),
            taints: taints.collect(),
            allocatable: model.allocatable.clone(),
        }))
    }

    async fn hold(&self, instance: &Instance, held: bool) -> Result<bool, Failure> {
        self.cloud.hold(&instance.key, held);
        Ok(true)
    }

    async fn interrupt(&self, instance: &Instance) -> Result<bool, Failure> {
        self.cloud.interrupt(&instance.provider_id);
        Ok(true)
    }

    async fn pause(&self) {
        self.live_until(self.time.elapsed() + Duration::from_secs(1)).await;
    }
}
