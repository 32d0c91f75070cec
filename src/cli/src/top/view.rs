//! The view as plain data: the JSON document of `top --once -o json`, and the source of the tables and the screen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_core::Stage;
use poolwright_report::money::maybe_usd;
pub use poolwright_report::{Cost, WaitingPods};
use serde::Serialize;

/// The state of a cluster at one time, as its operators need it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Top`.
    pub kind: &'static str,
    /// The context's name, or the cluster's address.
    pub cluster: String,
    /// The namespace to which nodes, sums, waiting pods and events are narrowed; absent if they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The time of the reading.
    pub read_at: Timestamp,
    /// The leader; `None` if the Lease may not be read.
    pub leader: Option<Leader>,
    /// Sums over the claims that are shown.
    pub totals: Totals,
    /// The workload pods without a node; `None` if pods may not be read.
    pub pods_waiting: Option<WaitingPods>,
    /// Pools by name.
    pub pools: Vec<PoolRow>,
    /// Claims by pool and name.
    pub nodes: Vec<NodeRow>,
    /// The latest events of Poolwright, the newest first.
    pub events: Vec<EventRow>,
    /// Why a kind of object could not be read, by kind.
    pub unreadable: BTreeMap<ObjectKind, String>,
    /// Notes on objects that are left out because they make no sense.
    pub notes: Vec<String>,
}

/// The kinds of objects that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// NodePools.
    NodePools,
    /// NodeClaims.
    NodeClaims,
    /// Nodes.
    Nodes,
    /// Pods.
    Pods,
    /// Events.
    Events,
    /// Leases.
    Leases,
}

/// The leader according to the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// The current or last holder; `None` if there was none, or if the last one stopped and released the Lease.
    pub holder: Option<String>,
    /// The time of the last renewal or of the release; `None` if there was no holder.
    pub renewed_at: Option<Timestamp>,
    /// Whether it was renewed within its duration.
    pub leads: bool,
}

/// Sums over claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// The numbers of claims, by stage.
    #[serde(flatten)]
    pub nodes: NodeCounts,
    /// The number of nodes that Poolwright did not buy; `None` if nodes may not be read, or in a view of one namespace.
    pub other_nodes: Option<usize>,
    /// Their GPUs, and how many are in use.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// Their cost.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Numbers of claims, by stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// All claims.
    pub nodes: usize,
    /// Claims whose node has opened to pods and is ready, as far as it may be read.
    pub nodes_ready: usize,
    /// Claims whose node has opened to pods and is not ready now.
    pub nodes_not_ready: usize,
    /// Claims whose node is starting.
    pub nodes_starting: usize,
    /// Claims whose node is being removed.
    pub nodes_leaving: usize,
}

/// Whole GPUs (`nvidia.com/gpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpus {
    /// The number of GPUs, including those of starting nodes.
    pub gpus: u64,
    /// The number of GPUs that pods on the nodes request; `None` if pods may not be read.
    pub gpus_in_use: Option<u64>,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// Its weight; `None` if the pool does not exist.
    pub weight: Option<i32>,
    /// Its nodes.
    #[serde(flatten)]
    pub nodes: NodeCounts,
    /// Their GPUs.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// Their cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its limits as they are in its spec.
    pub limits: BTreeMap<String, String>,
    /// Its monthly budget; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monthly_budget: Option<Budget>,
    /// Whether it can buy; `None` if no controller has checked it.
    pub ready: Option<bool>,
    /// The problem that keeps it from buying, or limits it.
    pub problem: Option<String>,
}

/// The monthly budget of a pool, in US dollars as its spec and status have them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Budget {
    /// The budget for one month.
    pub usd: String,
    /// What was spent; `None` if no controller has counted it.
    pub spent_usd: Option<String>,
    /// What the month will cost; `None` likewise.
    pub forecast_usd: Option<String>,
}

/// A claim and its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// The claim's name.
    pub name: String,
    /// The name of its node, once it is known.
    pub node: Option<String>,
    /// The pool's name.
    pub pool: String,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// `reserved`, `spot` or `on-demand`.
    pub capacity_type: &'static str,
    /// Its stage.
    pub stage: Stage,
    /// Whether its node is ready; `None` if there is none, or if nodes may not be read.
    pub node_ready: Option<bool>,
    /// The time of the claim's creation.
    pub created_at: Timestamp,
    /// Its GPUs.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// The number of workload pods on it; `None` if pods may not be read.
    pub pods: Option<usize>,
    /// Its price; `None` if that is unknown.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// What is being done about it.
    pub doing: String,
    /// The reason, if there is one.
    pub why: Option<String>,
}

/// An event of Poolwright.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// The time of the event.
    pub at: Timestamp,
    /// `Normal` or `Warning`.
    pub severity: String,
    /// The kind of its object.
    pub about: String,
    /// The name of its object, with the namespace if it has one.
    pub object: String,
    /// The reason as the event has it. Another version may have written it.
    pub reason: String,
    /// The message.
    pub message: String,
}
