//! The other components of the cluster: scheduler, kubelets, Job controller and garbage collector. They read and change
//! objects through the API server, as the real ones do, and everything takes time.

mod budgets;
mod claims;
mod daemons;
mod gangs;
mod interruptions;
mod jobs;
mod mounts;
mod nodes;
mod pods;
mod scheduling;
mod volumes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use axum::http::Method;
use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::NodeClaim;
use poolwright_core::index::ClusterIndex;
use poolwright_core::{ObjectKey, Pod, PodKey, Snapshot};
use poolwright_terms::ConditionType;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::ApiServer;
use crate::cloud::{Cloud, CloudEvent};
use crate::dice::Dice;
use crate::record::Record;
use crate::run::Sabotage;
use crate::scheduler;
use crate::time::Time;

pub use jobs::JobPlan;
pub(crate) use nodes::{ADVERTISES, AGENTS};
pub(crate) use pods::STARTS;

const PODS: &str = "/api/v1/pods";
const NODES: &str = "/api/v1/nodes";
const CLAIMS: &str = "/apis/poolwright.dev/v1alpha1/nodeclaims";
pub(crate) const NAMESPACE: &str = "default";

/// A scheduled event.
#[derive(Clone, Debug)]
pub(crate) enum Due {
    /// The Job controller starts to create the pods of a Job.
    Job(usize),
    /// One pod of a Job is created.
    Pod { job: usize, index: u32 },
    /// The gates of a pod are removed.
    Free { pod: PodKey, uid: String },
    /// A completed Job is deleted.
    Forget { job: usize },
    /// A ReplicaSet is scaled to zero.
    Shrink { job: usize },
    /// The scheduler tries the waiting pods.
    Schedule,
    /// The node of an instance joins.
    Join { key: String },
    /// The node controller removes the taint of a ready node.
    Lift { node: String },
    /// The device plugin of a node advertises its GPUs.
    Advertise { key: String },
    /// The agents that the startup taints and readiness gates of a node wait for run.
    AgentsRun { node: String },
    /// The containers of a pod run.
    Start { pod: PodKey, uid: String },
    /// The containers have completed.
    Finish { pod: PodKey, uid: String },
    /// The containers have ended after the deletion of their pod.
    Ended { pod: PodKey, uid: String },
    /// The cloud gives notice of an interruption.
    Notice { key: String },
    /// An instance fails.
    Die { provider_id: String },
    /// The cloud controller deletes a node without an instance.
    NodeGone { provider_id: String },
    /// The pods of a deleted node are deleted.
    Orphans { node: String },
    /// The volumes that no pod of a node uses any more are detached.
    Detach { node: String },
    /// The kubelet of a machine no longer reports.
    Freeze { key: String },
    /// It reports again.
    Thaw { key: String },
    /// The pod of a DaemonSet is created for a node.
    Daemon { set: usize, node: String },
}

/// The components of the simulated cluster.
pub struct Cluster {
    pub(crate) server: ApiServer,
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) time: Time,
    pub(crate) record: Record,
    pub(crate) dice: Dice,
    pods_feed: UnboundedReceiver<Value>,
    nodes_feed: UnboundedReceiver<Value>,
    claims_feed: UnboundedReceiver<Value>,
    /// The state of the cluster, as the controller's index files it.
    pub(crate) index: ClusterIndex,
    /// The scheduler's cache.
    nodes: scheduler::Cluster,
    timers: BTreeMap<(Duration, u64), Due>,
    serial: u64,
    is_scheduling: bool,
    /// Pods whose start or end is scheduled already, by UID.
    arranged: BTreeSet<(String, &'static str)>,
    pub(crate) jobs: Vec<jobs::Job>,
    /// The index of each Job in `jobs`, by namespace and name.
    job_numbers: BTreeMap<ObjectKey, usize>,
    /// The index of the Job, and that of the pod in it, of each pod with a name of its own.
    places: BTreeMap<PodKey, (usize, u32)>,
    /// The existing claims, by name.
    pub(crate) claims: BTreeMap<String, NodeClaim>,
    /// The stored PodDisruptionBudgets.
    budgets: Vec<budgets::Budget>,
    /// The stored DaemonSets.
    pub(crate) daemon_sets: Vec<Value>,
    /// Whether a new node has the pods of its DaemonSets before it can have others. A real node starts for a while, in which only they
    /// tolerate its taints. If not, they come seconds late, as from a slow DaemonSet controller.
    pub(crate) daemons_first: bool,
    /// The pods of DaemonSets that exist or are about to be created: the index of the set, and the node.
    daemon_pods: BTreeSet<(usize, String)>,
    /// The Jobs whose volumes are attached, the nodes, and since when.
    attached: BTreeMap<(String, String), Duration>,
    /// The node that has the volume of each claim for one node at a time.
    mounted: BTreeMap<ObjectKey, String>,
    /// The pods with a node that wait for such a volume: key and UID.
    unmounted: BTreeSet<(PodKey, String)>,
    /// The nodes whose kubelets do not report.
    pub(crate) frozen: BTreeSet<String>,
    /// Counts of pods and nodes so far.
    pub(crate) tally: Tally,
    /// A bug of the controller that changes its claims, to test the rules.
    pub(crate) sabotage: Option<Sabotage>,
}

/// Counts of pods and nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Completed pods.
    pub finished: u64,
    /// Pods that were lost with their node.
    pub lost: u64,
    /// Nodes that joined.
    pub joined: u64,
    /// Nodes that closed because newcomers cost less elsewhere. A node that opened counts again when it closes.
    pub retired: u64,
}

impl Cluster {
    /// Makes a cluster with this future work.
    pub fn new(
        server: ApiServer,
        cloud: Arc<Cloud>,
        time: Time,
        record: Record,
        dice: Dice,
        plans: Vec<JobPlan>,
    ) -> Self {
        let feed = |path: &str| server.feed(path).unwrap_or_else(|| futures::channel::mpsc::unbounded().1);
        let (pods_feed, nodes_feed, claims_feed) = (feed(PODS), feed(NODES), feed(CLAIMS));
        let mut cluster = Self {
            server,
            cloud,
            time,
            record,
            dice,
            pods_feed,
            nodes_feed,
            claims_feed,
            index: ClusterIndex::new(),
            nodes: scheduler::Cluster::default(),
            timers: BTreeMap::new(),
            serial: 0,
            is_scheduling: false,
            arranged: BTreeSet::new(),
            jobs: Vec::new(),
            job_numbers: BTreeMap::new(),
            places: BTreeMap::new(),
            claims: BTreeMap::new(),
            budgets: Vec::new(),
            daemon_sets: Vec::new(),
            daemons_first: false,
            daemon_pods: BTreeSet::new(),
            attached: BTreeMap::new(),
            mounted: BTreeMap::new(),
            unmounted: BTreeSet::new(),
            frozen: BTreeSet::new(),
            tally: Tally::default(),
            sabotage: None,
        };
        for (number, plan) in plans.into_iter().enumerate() {
            cluster.at(plan.arrives, Due::Job(number));
            cluster.job_numbers.insert(ObjectKey::new(&*plan.namespace, &*plan.name), number);
            cluster.jobs.push(jobs::Job::new(plan));
        }
        cluster
    }

    /// Waits for the next event or change and handles it.
    pub async fn step(&mut self) {
        let next = self.timers.keys().next().map(|(at, _)| *at);
        let pause = next.map_or(Duration::from_hours(1), |at| at.saturating_sub(self.time.elapsed()));
        tokio::select! {
            biased;
            Some(event) = self.pods_feed.next() => self.on_pod(&event),
            Some(event) = self.nodes_feed.next() => self.on_node(&event),
            Some(event) = self.claims_feed.next() => self.on_claim(event),
            () = self.cloud.changed() => {}
            () = tokio::time::sleep(pause) => {}
        }
        for event in self.cloud.events() {
            self.on_cloud(event);
        }
        while let Some(entry) = self.timers.first_entry() {
            if entry.key().0 > self.time.elapsed() {
                break;
            }
            let due = entry.remove();
            self.on_due(due);
            self.take_in();
        }
    }

    /// Reads all pending watch events.
    fn take_in(&mut self) {
        while let Ok(event) = self.pods_feed.try_recv() {
            self.on_pod(&event);
        }
        while let Ok(event) = self.nodes_feed.try_recv() {
            self.on_node(&event);
        }
        while let Ok(event) = self.claims_feed.try_recv() {
            self.on_claim(event);
        }
    }

    fn on_due(&mut self, due: Due) {
        match due {
            Due::Job(job) => self.start_job(job),
            Due::Pod { job, index } => self.make_pod(job, index),
            Due::Free { pod, uid } => self.free(&pod, &uid),
            Due::Shrink { job } => self.shrink(job),
            Due::Forget { job } => self.forget(job),
            Due::Schedule => self.schedule(),
            Due::Join { key } => self.join(&key),
            Due::Lift { node } => self.lift(&node),
            Due::Advertise { key } => self.advertise(&key),
            Due::AgentsRun { node } => self.agents_run(&node),
            Due::Start { pod, uid } => self.start(&pod, &uid),
            Due::Finish { pod, uid } => self.finish(&pod, &uid),
            Due::Ended { pod, uid } => self.ended(&pod, &uid),
            Due::Notice { key } => self.warn(&key),
            Due::Die { provider_id } => self.cloud.die(&provider_id),
            Due::NodeGone { provider_id } => self.node_gone(&provider_id),
            Due::Orphans { node } => self.collect_orphans(&node),
            Due::Detach { node } => self.detach(&node),
            Due::Freeze { key } => self.freeze(&key),
            Due::Thaw { key } => self.thaw(&key),
            Due::Daemon { set, node } => {
                self.make_daemon(set, &node);
            }
        }
    }

    fn on_cloud(&mut self, event: CloudEvent) {
        match event {
            CloudEvent::Launched(machine) => {
                if let Some(joins) = machine.joins {
                    self.at(joins, Due::Join { key: machine.instance.key.clone() });
                }
                if let Some((at, _)) = machine.notice {
                    self.at(at, Due::Notice { key: machine.instance.key.clone() });
                }
                if let Some((from, until)) = machine.freezes {
                    self.at(from, Due::Freeze { key: machine.instance.key.clone() });
                    self.at(until, Due::Thaw { key: machine.instance.key.clone() });
                }
                if let Some(dies) = machine.dies {
                    self.at(dies, Due::Die { provider_id: machine.instance.provider_id.clone() });
                }
            }
            CloudEvent::Terminated { provider_id } => self.lose(&provider_id),
        }
    }

    fn on_claim(&mut self, event: Value) {
        let Some(claim) = read::<NodeClaim>(&event) else { return };
        // A claim that the controller cannot read belongs to none.
        if poolwright_intake::node_claim(&claim).is_err() {
            return;
        }
        let name = claim.metadata.name.clone().unwrap_or_default();
        if event["type"] == "DELETED" {
            self.claims.remove(&name);
        } else {
            self.meddle(&name, &claim);
            let retired = self.claims.get(&name).is_some_and(retires);
            self.tally.retired += u64::from(!retired && retires(&claim));
            self.claims.insert(name, claim);
        }
    }

    /// Changes a claim as the buggy controller would.
    fn meddle(&self, name: &str, claim: &NodeClaim) {
        let path = format!("{CLAIMS}/{name}");
        let has_joined = claim.status.as_ref().is_some_and(|status| status.node_name.is_some());
        let deleting = claim.metadata.deletion_timestamp.is_some();
        match self.sabotage {
            Some(Sabotage::FinalizersVanish) if claim.metadata.finalizers.is_some() => {
                self.ask(&Method::PATCH, &path, &json!({"metadata": {"finalizers": null}}));
            }
            Some(Sabotage::GivesBackAtOnce) if has_joined && !deleting => {
                self.ask(&Method::DELETE, &path, &json!({}));
            }
            _ => {}
        }
    }

    // === Helpers ===

    /// Schedules an event at this time.
    pub(crate) fn at(&mut self, at: Duration, due: Due) {
        self.serial += 1;
        self.timers.insert((at.max(self.time.elapsed()), self.serial), due);
    }

    /// Schedules an event after a random delay between these bounds.
    pub(crate) fn after(&mut self, low_millis: u64, high_millis: u64, due: Due) {
        let pause = self.dice.between(Duration::from_millis(low_millis), Duration::from_millis(high_millis));
        self.at(self.time.elapsed() + pause, due);
    }

    /// Marks an action as scheduled for a pod. Returns false if it was already.
    pub(crate) fn arrange(&mut self, uid: &str, what: &'static str) -> bool {
        self.arranged.insert((uid.to_owned(), what))
    }

    /// Makes the scheduler run soon, if it is not about to.
    pub(crate) fn schedule_soon(&mut self) {
        if !self.is_scheduling {
            self.is_scheduling = true;
            self.after(50, 1_000, Due::Schedule);
        }
    }

    pub(crate) fn scheduling_done(&mut self) {
        self.is_scheduling = false;
    }

    /// Sends a request to the API server. Returns the object, or `None` if the server refuses.
    pub(crate) fn ask(&self, method: &Method, path: &str, body: &Value) -> Option<Value> {
        let content_type =
            if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let (code, object) = self.server.ask(method, path, content_type, body);
        (200..300).contains(&code).then_some(object)
    }

    /// Returns the state of the cluster as a snapshot.
    pub fn view(&self) -> &Snapshot {
        self.index.view()
    }

    pub(crate) fn pod(&self, key: &PodKey, uid: &str) -> Option<Arc<Pod>> {
        self.index.view().pods.get(key).filter(|pod| pod.uid.0 == uid).cloned()
    }
}

fn retires(claim: &NodeClaim) -> bool {
    let mut conditions = claim.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|one| one.type_ == ConditionType::Retiring.as_str() && one.status == "True")
}

/// Parses the object of a watch event.
pub(crate) fn read<T: DeserializeOwned>(event: &Value) -> Option<T> {
    T::deserialize(&event["object"]).ok()
}

pub(crate) fn pod_path(key: &PodKey) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", key.namespace(), key.name())
}

/// Writes a time as Kubernetes does, to the second.
pub(crate) fn at_second(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Makes a condition of a pod or a node whose status changes now.
pub(crate) fn condition(
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
    now: jiff::Timestamp,
) -> Value {
    let mut condition = json!({"type": kind, "status": status, "lastTransitionTime": at_second(now)});
    if !reason.is_empty() {
        condition["reason"] = json!(reason);
        condition["message"] = json!(message);
    }
    condition
}

pub(crate) fn model_of(event: &Value) -> Option<Pod> {
    poolwright_intake::pod(&read::<k8s::Pod>(event)?).ok()
}
