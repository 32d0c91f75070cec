//! What is written down while a workload is played: the life of every machine and of every pod, as one sees them from outside,
//! from the API server and the cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_catalog::{OfferingId, ResourceName, UsdPerHour};
use poolwright_terms::keys;
use serde_json::Value;

use super::Outcome;
use crate::api::ApiServer;
use crate::cloud::Cloud;

/// A machine, from its launch until it is gone. Times are since the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The cloud's id.
    pub id: String,
    /// Name of its claim and of its node.
    pub claim: String,
    /// For which pool.
    pub pool: String,
    /// What it is.
    pub offering: OfferingId,
    /// What it costs; `None` where nobody knows.
    pub price: Option<UsdPerHour>,
    /// How many GPUs it has.
    pub gpus: u64,
    /// When it was launched.
    pub launched: Duration,
    /// When it was gone; `None` while it runs.
    pub gone: Option<Duration>,
}

/// A pod, from its making to its end. Times are since the beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// What it asks for, and what it is called.
    pub model: Arc<poolwright_core::Pod>,
    /// When it was made.
    pub made: Duration,
    /// When it was given a node, and which of the machines that is.
    pub bound: Option<(Duration, usize)>,
    /// When its containers began to work.
    pub started: Option<Duration>,
    /// When it ended, and how.
    pub ended: Option<(Duration, End)>,
}

/// How a pod ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It did its work.
    Finished,
    /// Its machine was lost under it.
    MachineLost,
    /// Somebody deleted it before it was done: it had to make room, or its node was to go.
    Evicted,
}

/// What is written down.
pub(super) struct Ledger {
    feed: UnboundedReceiver<Value>,
    version: u64,
    outcome: Outcome,
    machines: BTreeMap<String, usize>,
    by_claim: BTreeMap<String, usize>,
    pods: BTreeMap<String, usize>,
}

impl Ledger {
    /// An empty one.
    pub fn new(server: &ApiServer) -> Self {
        let feed = server.feed("/api/v1/pods").unwrap_or_else(|| futures::channel::mpsc::unbounded().1);
        Self {
            feed,
            version: u64::MAX,
            outcome: Outcome::default(),
            machines: BTreeMap::new(),
            by_claim: BTreeMap::new(),
            pods: BTreeMap::new(),
        }
    }

    /// Writes down what happened by now.
    pub fn look(&mut self, cloud: &Cloud, now: Duration) {
        // Machines first: pods are on them.
        let version = cloud.version();
        if version != self.version {
            self.version = version;
            self.look_at_machines(cloud, now);
        }
        while let Ok(event) = self.feed.try_recv() {
            self.look_at_pod(&event, now);
        }
    }

    /// The whole of it.
    pub fn close(self, now: Duration) -> Outcome {
        Outcome { played: now, ..self.outcome }
    }

    fn look_at_machines(&mut self, cloud: &Cloud, now: Duration) {
        let there: BTreeMap<_, _> = cloud.machines().into_iter().collect();
        for (key, at) in &self.machines {
            let known = &mut self.outcome.machines[*at];
            if !there.contains_key(key) && known.gone.is_none() {
                known.gone = Some(now);
            }
        }
        let mut fresh = Vec::new();
        for (key, machine) in there {
            if let Some(at) = self.machines.get(&key) {
                self.outcome.machines[*at].gone = machine.gone;
                continue;
            }
            let label = machine.request.labels.get(keys::NODEPOOL_LABEL);
            let offers = machine.request.offerings.first();
            let one = Machine {
                id: machine.instance.provider_id,
                claim: machine.request.claim.clone(),
                pool: label.cloned().unwrap_or_default(),
                offering: machine.instance.offering,
                price: machine.price,
                gpus: offers.map_or(0, |offer| offer.allocatable.get(ResourceName::NVIDIA_GPU)),
                launched: machine.launched,
                gone: machine.gone,
            };
            fresh.push((key, one));
        }
        // In the order of their launches, not of their keys.
        fresh.sort_by(|(_, one), (_, other)| (one.launched, &one.id).cmp(&(other.launched, &other.id)));
        for (key, machine) in fresh {
            let at = self.outcome.machines.len();
            self.machines.insert(key, at);
            self.by_claim.insert(machine.claim.clone(), at);
            self.outcome.machines.push(machine);
        }
    }

    fn look_at_pod(&mut self, event: &Value, now: Duration) {
        let object = &event["object"];
        let Some(uid) = object["metadata"]["uid"].as_str() else { return };
        let at = if let Some(at) = self.pods.get(uid) {
            *at
        } else {
            let Some(model) = model(object) else { return };
            let at = self.outcome.pods.len();
            self.pods.insert(uid.to_owned(), at);
            self.outcome.pods.push(Pod { model, made: now, bound: None, started: None, ended: None });
            at
        };
        let pod = &mut self.outcome.pods[at];
        if pod.ended.is_some() {
            return;
        }
        let node = object["spec"]["nodeName"].as_str();
        if let (None, Some(machine)) = (pod.bound, node.and_then(|node| self.by_claim.get(node))) {
            pod.bound = Some((now, *machine));
        }
        let phase = object["status"]["phase"].as_str().unwrap_or_default();
        if pod.started.is_none() && matches!(phase, "Running" | "Succeeded" | "Failed") {
            pod.started = Some(now);
        }
        // What is on a machine ends with it, whoever is told of it later.
        let gone = pod.bound.and_then(|(_, machine)| self.outcome.machines[machine].gone);
        let lost = gone.filter(|gone| *gone <= now);
        pod.ended = if matches!(phase, "Succeeded" | "Failed") {
            Some((now, End::Finished))
        } else if event["type"] == "DELETED" {
            Some(lost.map_or((now, End::Evicted), |gone| (gone, End::MachineLost)))
        } else {
            None
        };
    }
}

fn model(object: &Value) -> Option<Arc<poolwright_core::Pod>> {
    let pod: k8s::Pod = serde_json::from_value(object.clone()).ok()?;
    poolwright_intake::pod(&pod).ok().map(Arc::new)
}
