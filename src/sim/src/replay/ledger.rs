//! Records the life of each machine and pod in a replay, from the API server and the cloud.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::channel::mpsc::UnboundedReceiver;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_catalog::ResourceName;
use poolwright_core::plan::{UnplacedReason, held_by_groups};
use poolwright_core::{PodPhase, PodRole, Snapshot};
use poolwright_report::replay::{End, History, Machine, Pod, Told};
use poolwright_terms::{ConditionType, keys};
use serde::Deserialize;
use serde_json::Value;

use crate::api::ApiServer;
use crate::cloud::Cloud;

/// The kinds of objects whose events are remembered.
const POD: &str = "Pod";
const CLAIM: &str = "NodeClaim";

/// The record so far.
pub(super) struct Ledger {
    feed: UnboundedReceiver<Value>,
    claims: UnboundedReceiver<Value>,
    sets: UnboundedReceiver<Value>,
    events: UnboundedReceiver<Value>,
    /// The reason and the message of the last event about each pod and each claim, by kind and name.
    told: BTreeMap<(String, String), (String, String)>,
    /// By name: the reason and the message of the scheduler about each pod that it has refused.
    refused: BTreeMap<String, (String, String)>,
    /// UIDs of the ReplicaSets that are scaled to zero: their work is done.
    scaled_to_zero: BTreeSet<String>,
    version: u64,
    history: History,
    machines: BTreeMap<String, usize>,
    by_claim: BTreeMap<String, usize>,
    /// By machine: when the cloud gives notice that it takes it back, if it runs so long.
    notices: BTreeMap<usize, Duration>,
    /// By claim: the names of the pods that its node is bought for.
    planned: BTreeMap<String, Vec<String>>,
    pods: BTreeMap<String, usize>,
}

impl Ledger {
    /// Makes an empty record.
    pub fn new(server: &ApiServer) -> Self {
        let feed = |kind: &str| server.feed(kind).unwrap_or_else(|| futures::channel::mpsc::unbounded().1);
        Self {
            feed: feed("/api/v1/pods"),
            claims: feed("/apis/poolwright.dev/v1alpha1/nodeclaims"),
            sets: feed("/apis/apps/v1/replicasets"),
            events: feed("/apis/events.k8s.io/v1/events"),
            told: BTreeMap::new(),
            refused: BTreeMap::new(),
            scaled_to_zero: BTreeSet::new(),
            version: u64::MAX,
            history: History::default(),
            machines: BTreeMap::new(),
            by_claim: BTreeMap::new(),
            notices: BTreeMap::new(),
            planned: BTreeMap::new(),
            pods: BTreeMap::new(),
        }
    }

    /// Records all changes up to now.
    pub fn look(&mut self, cloud: &Cloud, now: Duration) {
        // Machines first, because pods refer to them.
        let version = cloud.version();
        if version != self.version {
            self.version = version;
            self.look_at_machines(cloud, now);
        }
        while let Ok(event) = self.claims.try_recv() {
            self.look_at_claim(&event["object"], now);
        }
        while let Ok(event) = self.sets.try_recv() {
            let set = &event["object"];
            if let (Some(uid), Some(0)) = (set["metadata"]["uid"].as_str(), set["spec"]["replicas"].as_u64())
            {
                self.scaled_to_zero.insert(uid.to_owned());
            }
        }
        while let Ok(event) = self.feed.try_recv() {
            self.look_at_pod(&event, now);
        }
        while let Ok(event) = self.events.try_recv() {
            self.look_at_event(&event["object"]);
        }
    }

    /// Returns the complete record. `cluster` is the cluster at its end.
    pub fn close(mut self, now: Duration, cluster: &Snapshot) -> History {
        let by_name: BTreeMap<String, usize> =
            self.history.pods.iter().enumerate().map(|(at, pod)| (pod.model.key.to_string(), at)).collect();
        for machine in &mut self.history.machines {
            let planned = self.planned.get(&machine.claim).into_iter().flatten();
            machine.bought_for = planned.filter_map(|name| by_name.get(name).copied()).collect();
        }
        for (at, told) in &self.notices {
            let machine = &mut self.history.machines[*at];
            machine.interrupted = *told <= now && machine.gone.is_none_or(|gone| gone >= *told);
        }
        let History { pods, machines, .. } = &self.history;
        let told = |kind: &str, name: String| self.told.get(&(kind.to_owned(), name));
        let waits = |pod: &&Pod| pod.started.is_none() && pod.ended.is_none();
        // The controller records no event for a pod that needs no node, such as one that waits for another pod's volume. Neither it
        // nor the scheduler says anything of a gang that lacks pods.
        let held = held_by_groups(cluster);
        let reasons: Vec<Option<(String, String)>> = pods
            .iter()
            .filter(waits)
            .map(|pod| {
                let (key, name) = (&pod.model.key, pod.model.key.to_string());
                let said = told(POD, name.clone()).or_else(|| self.refused.get(&name)).cloned();
                let held = || held.get(key).map(|(why, words)| (why.as_str().to_owned(), words.clone()));
                said.or_else(held).or_else(|| state(cluster.pods.get(key)?))
            })
            .collect();
        let waiting = Told::group(reasons.iter().map(Option::as_ref));
        let is_vain = |machine: &&Machine| machine.opened.is_none() && machine.gone.is_some();
        let in_vain = Told::group(
            machines.iter().filter(is_vain).map(|machine| told(CLAIM, format!("/{}", machine.claim))),
        );
        History { played: now, waiting, in_vain, ..self.history }
    }

    /// Remembers the last event about a pod or a claim.
    fn look_at_event(&mut self, event: &Value) {
        let about = &event["regarding"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let kind = text(&about["kind"]);
        if kind != POD && kind != CLAIM {
            return;
        }
        // Claims have no namespace.
        let namespace = if kind == POD { text(&about["namespace"]) } else { String::new() };
        let name = format!("{namespace}/{}", text(&about["name"]));
        let note = text(&event["note"]);
        let sentence = note.lines().next().unwrap_or_default().to_owned();
        self.told.insert((kind, name), (text(&event["reason"]), sentence));
    }

    fn look_at_claim(&mut self, claim: &Value, now: Duration) {
        let Some(name) = claim["metadata"]["name"].as_str() else { return };
        if !self.planned.contains_key(name) {
            let pods = claim["spec"]["pods"].as_array().into_iter().flatten();
            let pods = pods.filter_map(|pod| pod.as_str().map(str::to_owned)).collect();
            self.planned.insert(name.to_owned(), pods);
        }
        let conditions = claim["status"]["conditions"].as_array().into_iter().flatten();
        let initialized = ConditionType::Initialized.as_str();
        let is_open = |condition: &Value| condition["type"] == initialized && condition["status"] == "True";
        if conditions.into_iter().any(is_open)
            && let Some(at) = self.by_claim.get(name)
        {
            self.history.machines[*at].opened.get_or_insert(now);
        }
    }

    fn look_at_machines(&mut self, cloud: &Cloud, now: Duration) {
        let there: BTreeMap<_, _> = cloud.machines().into_iter().collect();
        for (key, at) in &self.machines {
            let known = &mut self.history.machines[*at];
            if !there.contains_key(key) && known.gone.is_none() {
                known.gone = Some(now);
            }
        }
        let mut fresh = Vec::new();
        for (key, machine) in there {
            if let Some(at) = self.machines.get(&key) {
                self.history.machines[*at].gone = machine.gone;
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
                interrupted: false,
                launched: machine.launched,
                opened: None,
                bought_for: Vec::new(),
                gone: machine.gone,
            };
            fresh.push((key, machine.notice.map(|(told, _)| told), one));
        }
        // In the order of launch, not of keys.
        fresh.sort_by(|(.., one), (.., other)| (one.launched, &one.id).cmp(&(other.launched, &other.id)));
        for (key, told, machine) in fresh {
            let at = self.history.machines.len();
            self.notices.extend(told.map(|told| (at, told)));
            self.machines.insert(key, at);
            self.by_claim.insert(machine.claim.clone(), at);
            self.history.machines.push(machine);
        }
    }

    fn look_at_pod(&mut self, event: &Value, now: Duration) {
        let object = &event["object"];
        let Some(uid) = object["metadata"]["uid"].as_str() else { return };
        let at = if let Some(at) = self.pods.get(uid) {
            *at
        } else {
            // Pods of DaemonSets come and go with their nodes.
            let is_work = |pod: &Arc<poolwright_core::Pod>| pod.role != PodRole::DaemonSet;
            let Some(model) = model(object).filter(is_work) else { return };
            let at = self.history.pods.len();
            self.pods.insert(uid.to_owned(), at);
            self.history.pods.push(Pod { model, made: now, bound: None, started: None, ended: None });
            at
        };
        let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
        let is_refused = |one: &&Value| one["type"] == "PodScheduled" && one["status"] == "False";
        if let Some(refused) = conditions.into_iter().find(is_refused) {
            let text = |field: &str| refused[field].as_str().unwrap_or_default().to_owned();
            let name = self.history.pods[at].model.key.to_string();
            self.refused.insert(name, (text("reason"), text("message")));
        }
        let pod = &mut self.history.pods[at];
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
        // The pods of a machine end with it, even if the API server shows that later.
        let gone = pod.bound.and_then(|(_, machine)| self.history.machines[machine].gone);
        let lost = gone.filter(|gone| *gone <= now);
        let owner = object["metadata"]["ownerReferences"][0]["uid"].as_str();
        let is_done = owner.is_some_and(|owner| self.scaled_to_zero.contains(owner));
        pod.ended = if matches!(phase, "Succeeded" | "Failed") || event["type"] == "DELETED" && is_done {
            Some((now, End::Finished))
        } else if event["type"] == "DELETED" {
            Some(lost.map_or((now, End::Evicted), |gone| (gone, End::MachineLost)))
        } else {
            None
        };
    }
}

/// Returns a reason and words for the state of a pod of which nobody has said anything.
fn state(pod: &poolwright_core::Pod) -> Option<(String, String)> {
    let (reason, words) = match &pod.phase {
        PodPhase::Bound { node } => {
            ("Starting", format!("it has node {node}, and its containers do not run yet"))
        }
        PodPhase::Gated => {
            let words = "it has scheduling gates, so the scheduler does not try it";
            (UnplacedReason::SchedulingGated.as_str(), words.to_owned())
        }
        PodPhase::Waiting => {
            (UnplacedReason::NotYetTried.as_str(), "the scheduler has not tried it yet".to_owned())
        }
        PodPhase::Unschedulable { .. } | PodPhase::Finished => return None,
    };
    Some((reason.to_owned(), words))
}

fn model(object: &Value) -> Option<Arc<poolwright_core::Pod>> {
    let pod = k8s::Pod::deserialize(object).ok()?;
    poolwright_intake::pod(&pod).ok().map(Arc::new)
}
