//! What is asked of the solver. Documented and serialisable, so that a case can be saved and replayed.

mod gpu;
mod group;
mod valid;

pub use gpu::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus};
pub use group::{Commitment, DisruptionBudget, Flexibility, Gang, NodeShare, Removal, Spread, Topology};
pub use valid::ProblemError;

use poolwright_catalog::{ResourceName, UsdPerHour};
use serde::{Deserialize, Serialize};

/// Pods to place, nodes they may use, and what may be bought.
///
/// Every resource vector has one entry per entry of `resources`, in that order, in the units of
/// [`poolwright_catalog::ResourceList`] (CPU in thousandths of a core, memory in bytes, counts).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Problem {
    /// The dimensions.
    pub resources: Vec<ResourceName>,
    /// Pods, grouped: pods of one class are interchangeable.
    pub classes: Vec<PodClass>,
    /// Kinds of node that can be bought.
    pub candidates: Vec<Candidate>,
    /// Nodes that are there or on their way; using them costs nothing more.
    pub existing: Vec<ExistingNode>,
    /// Ceilings over sums of bought nodes: of resources, of nodes, of money.
    pub limits: Vec<Limit>,
    /// Ways to divide nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topologies: Vec<Topology>,
    /// Classes whose pods may not share a node: pairs (i, j) of indices into `classes`, i < j, ascending. For pods that
    /// may not meet their like there is [`PodClass::max_per_node`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<(u32, u32)>,
    /// Pods that run all or not at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<Gang>,
    /// Pods spread evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// Money paid beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<Commitment>,
    /// Parts of nodes that may be of one kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_shares: Vec<NodeShare>,
    /// Nodes that could also be others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flexibility: Vec<Flexibility>,
    /// What may be disturbed at most, where existing nodes may be removed.
    #[serde(default)]
    pub disruption: DisruptionBudget,
}

/// Pods that are equal in all that matters to packing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodClass {
    /// For messages only.
    pub name: String,
    /// What one pod takes of each resource, its place among `pods` included.
    pub requests: Vec<u64>,
    /// How many such pods there are.
    pub count: u32,
    /// When not all can be placed, higher priorities are placed first.
    pub priority: i32,
    /// At most this many on one node, pods that stay on a removable node included. Where such a node has more already, that
    /// is no fault of a plan that adds none; the same holds for conflicts and ports.
    pub max_per_node: Option<u32>,
    /// Indices into [`Problem::candidates`] that the pods may use, ascending.
    pub candidates: Vec<u32>,
    /// Indices into [`Problem::existing`] that the pods may use, ascending.
    pub existing: Vec<u32>,
    /// What one pod wants of shared or cut GPUs. Such a pod uses only nodes that have [`Candidate::gpus`] or
    /// [`ExistingNode::gpus`] for it; with `None`, the pod is in no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRequest>,
    /// Host ports (numbers of the caller's choice, ascending): two pods with a common one may not share a node, nor may two
    /// pods of this class.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u32>,
    /// What running one pod is worth, in any unit: when not all pods of one priority can be placed, those left out are
    /// worth least together. With zero everywhere, pods count.
    #[serde(default)]
    pub value: u64,
    /// What one pod is counted to cost per hour besides the node on some candidates (index, cost above zero), ascending:
    /// preferences that are not met. On existing nodes no pod is counted to cost anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<(u32, UsdPerHour)>,
    /// What one interruption of one pod loses, in micro-dollars: work since the last checkpoint and the time to come back.
    #[serde(default)]
    pub at_risk: u64,
    /// What moving one running pod of this class costs, spread over the hours the saving is counted for.
    #[serde(default)]
    pub disruption: UsdPerHour,
}

/// A kind of node that can be bought: one offering under one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Candidate {
    /// For messages only.
    pub name: String,
    /// What one node costs.
    pub price: UsdPerHour,
    /// What one node offers to pods, after system reservations and DaemonSets.
    pub capacity: Vec<u64>,
    /// At most this many can be bought: stock, a reservation or a capacity block (at price zero, it is used first).
    pub max_nodes: Option<u32>,
    /// What one node takes of each limit it counts against: (index into [`Problem::limits`], amount), ascending.
    pub limit_use: Vec<(u32, u64)>,
    /// GPUs that may be shared or cut; `None` where GPUs are only given whole, as a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    /// Its value of each topology that it has: (index into [`Problem::topologies`], index of the value), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<(u32, u32)>,
    /// How often such a node is taken back: interruptions in a million node-hours. Each pod on it costs
    /// [`PodClass::at_risk`] times this per hour, see [`risk`].
    #[serde(default)]
    pub interruptions: u32,
}

/// What the interruptions of a node cost per pod-hour: `at_risk` micro-dollars times `interruptions` per million hours,
/// rounded half up.
pub fn risk(at_risk: u64, interruptions: u32) -> UsdPerHour {
    let product = u128::from(at_risk) * u128::from(interruptions) + 500_000;
    UsdPerHour::from_micros(u64::try_from(product / 1_000_000).unwrap_or(u64::MAX))
}

/// A node that is there, or on its way and paid for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingNode {
    /// For messages only.
    pub name: String,
    /// What is free on it.
    pub free: Vec<u64>,
    /// Its GPUs one by one, where they may be shared or cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuState>,
    /// Its value of each topology that it has: (index into [`Problem::topologies`], index of the value), ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<(u32, u32)>,
    /// What removing it saves and costs; `None` for a node that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

/// A ceiling: the sum over bought nodes of their [`Candidate::limit_use`] may not pass `bound`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// For messages: `pool gpu: nvidia.com/gpu`.
    pub name: String,
    /// What is left to spend, in the limit's own unit.
    pub bound: u64,
}
