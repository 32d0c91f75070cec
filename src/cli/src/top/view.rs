//! What is shown, as plain data: the JSON document of `top --once -o json`, and what tables and the screen are made of.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;
use poolwright_core::Stage;
use poolwright_report::money::maybe_usd;
pub use poolwright_report::{Cost, WaitingPods};
use serde::Serialize;

/// A cluster at a time, as its operators want to see it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct View {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Top`.
    pub kind: &'static str,
    /// The context's name, or the cluster's address.
    pub cluster: String,
    /// When it was read.
    pub read_at: Timestamp,
    /// Who decides; `None` when the Lease may not be read.
    pub leader: Option<Leader>,
    /// Sums over all claims.
    pub totals: Totals,
    /// Workload pods that are on no node; `None` when pods may not be read.
    pub pods_waiting: Option<WaitingPods>,
    /// Pools by name.
    pub pools: Vec<PoolRow>,
    /// Claims by pool and name.
    pub nodes: Vec<NodeRow>,
    /// What Poolwright said lately, the newest first.
    pub events: Vec<EventRow>,
    /// Why a kind of object could not be read, by kind.
    pub unreadable: BTreeMap<ObjectKind, String>,
    /// Objects that are left out because they make no sense.
    pub notes: Vec<String>,
}

/// What is read.
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

/// What the Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Who holds it, or held it last; `None` when nobody does.
    pub holder: Option<String>,
    /// When it was last renewed.
    pub renewed_at: Option<Timestamp>,
    /// Whether it was renewed within its duration.
    pub leads: bool,
}

/// Sums over all claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// How many, by how far they are.
    #[serde(flatten)]
    pub nodes: NodeCounts,
    /// Nodes that Poolwright did not buy; `None` when nodes may not be read.
    pub other_nodes: Option<usize>,
    /// What they have of GPUs, and what is used.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// What they cost.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Claims by how far they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeCounts {
    /// All of them.
    pub nodes: usize,
    /// Open to pods.
    pub nodes_ready: usize,
    /// On their way.
    pub nodes_starting: usize,
    /// Going.
    pub nodes_leaving: usize,
}

/// Whole GPUs (`nvidia.com/gpu`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gpus {
    /// How many there are, those of nodes on their way included.
    pub gpus: u64,
    /// How many pods that are there ask for; `None` when pods may not be read.
    pub gpus_in_use: Option<u64>,
}

/// A pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolRow {
    /// Its name.
    pub name: String,
    /// Its weight; `None` when there is no such pool.
    pub weight: Option<i32>,
    /// Its nodes.
    #[serde(flatten)]
    pub nodes: NodeCounts,
    /// Their GPUs.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// What they cost.
    #[serde(flatten)]
    pub cost: Cost,
    /// Its limits as they are written.
    pub limits: BTreeMap<String, String>,
    /// Whether it can buy; `None` when no controller has said.
    pub ready: Option<bool>,
    /// What keeps it from buying, or holds it back.
    pub problem: Option<String>,
}

/// A claim and its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeRow {
    /// The claim's name.
    pub name: String,
    /// The node's name, once it has one.
    pub node: Option<String>,
    /// The pool's name.
    pub pool: String,
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// `reserved`, `spot` or `on-demand`.
    pub capacity_type: &'static str,
    /// How far it is.
    pub stage: Stage,
    /// When the claim was made.
    pub created_at: Timestamp,
    /// Its GPUs.
    #[serde(flatten)]
    pub gpus: Gpus,
    /// Workload pods on it; `None` when pods may not be read.
    pub pods: Option<usize>,
    /// What it costs; `None` when that is unknown.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// What is being done.
    pub doing: String,
    /// And why, where something is.
    pub why: Option<String>,
}

/// Something that Poolwright said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventRow {
    /// When.
    pub at: Timestamp,
    /// `Normal` or `Warning`.
    pub severity: String,
    /// About what kind of object.
    pub about: String,
    /// Its name, with its namespace where it has one.
    pub object: String,
    /// The reason, as the event has it: another version may have written it.
    pub reason: String,
    /// A sentence.
    pub message: String,
}
