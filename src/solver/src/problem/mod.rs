//! The input of the solver. It is documented and serialisable, so that you can save and replay a case.

mod gpu;
mod group;
mod valid;

pub use gpu::{GPU_UNITS, GpuMode, GpuRequest, GpuState, Gpus};
pub use group::{Commitment, DisruptionBudget, Flexibility, Gang, NodeShare, Removal, Spread, Topology};
pub use valid::ProblemError;

use poolwright_catalog::{ResourceName, UsdPerHour};
use serde::{Deserialize, Serialize};

/// The pods to place, the nodes they may use, and the nodes that may be bought.
///
/// Every resource vector has one entry per entry of `resources`, in that order, in the units of
/// [`poolwright_catalog::ResourceList`] (CPU in thousandths of a core, memory in bytes, counts).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Problem {
    /// The dimensions of every resource vector.
    pub resources: Vec<ResourceName>,
    /// The pods to place, in classes of interchangeable pods.
    pub classes: Vec<PodClass>,
    /// The kinds of node to buy.
    pub candidates: Vec<Candidate>,
    /// Nodes that run or are on their way. Using them costs nothing more.
    pub existing: Vec<ExistingNode>,
    /// Ceilings over sums of bought nodes: resources, nodes or money.
    pub limits: Vec<Limit>,
    /// The ways to divide nodes, such as zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topologies: Vec<Topology>,
    /// Classes whose pods may not share a node: ascending pairs (i, j) of indices into `classes` with i < j. For pods
    /// that may not share a node with pods of their own class, use [`PodClass::max_per_node`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<(u32, u32)>,
    /// Pods that run together or not at all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gangs: Vec<Gang>,
    /// Pods that must be spread evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// Money that is paid beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<Commitment>,
    /// The largest parts of the nodes that may be of one kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_shares: Vec<NodeShare>,
    /// The bought nodes that must be replaceable by other types.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flexibility: Vec<Flexibility>,
    /// The limits on disruption, where existing nodes are removable.
    #[serde(default)]
    pub disruption: DisruptionBudget,
}

/// Pods that are equal for the packing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodClass {
    /// Its name, for messages only.
    pub name: String,
    /// The requests of one pod, including its place among `pods`.
    pub requests: Vec<u64>,
    /// The number of waiting pods.
    pub count: u32,
    /// Its priority. If there is no room for all pods, higher priorities are placed first.
    pub priority: i32,
    /// The most pods of this class on one node, including pods that stay on a removable node. A removable node that already has
    /// more is valid, as long as the plan adds none. The same holds for conflicts and ports.
    pub max_per_node: Option<u32>,
    /// Indices into [`Problem::candidates`] that the pods may use, ascending.
    pub candidates: Vec<u32>,
    /// Indices into [`Problem::existing`] that the pods may use, ascending.
    pub existing: Vec<u32>,
    /// The request for shared or partitioned GPUs. Such a pod uses only nodes that have [`Candidate::gpus`] or
    /// [`ExistingNode::gpus`] for it. With `None`, the pod is in no layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRequest>,
    /// Its host ports, as ascending numbers of your choice. Pods with a common port may not share a node, so a class with a port
    /// has at most one pod on each node. Use a port for any set of pods that exclude each other: it needs no pairs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u32>,
    /// The value of running one pod, in any unit. If there is no room for all pods of one priority, the solver leaves out the
    /// pods with the least total value. With zero everywhere, it leaves out the fewest pods.
    #[serde(default)]
    pub value: u64,
    /// Unmet preferences, and what else a pod costs besides its node: the hourly cost that the objective counts for one pod on some
    /// candidates, as ascending pairs (index, cost above zero). Pods on existing nodes have no such cost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferences: Vec<(u32, UsdPerHour)>,
    /// The loss from one interruption of one pod, in micro-dollars: the work since the last checkpoint and the restart time.
    #[serde(default)]
    pub at_risk: u64,
    /// The loss on some candidates instead of [`Self::at_risk`], as ascending pairs (index, micro-dollars): a gang whose pods are on
    /// many small nodes loses the work of all pods each time that one node is taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_risk_on: Vec<(u32, u64)>,
    /// The cost of moving one running pod of this class, spread over the hours for which the saving counts.
    #[serde(default)]
    pub disruption: UsdPerHour,
}

impl PodClass {
    /// Returns the loss from one interruption of one pod on a candidate, in micro-dollars.
    pub fn loss_on(&self, candidate: u32) -> u64 {
        let at = self.at_risk_on.binary_search_by_key(&candidate, |(of, _)| *of);
        at.map_or(self.at_risk, |at| self.at_risk_on[at].1)
    }
}

/// A kind of node to buy: one offering of one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Candidate {
    /// Its name, for messages only.
    pub name: String,
    /// The price of one node.
    pub price: UsdPerHour,
    /// The capacity of one node for pods, after system reservations and DaemonSets.
    pub capacity: Vec<u64>,
    /// The most nodes that the plan may buy: the stock, a reservation or a capacity block. With a price of zero, it
    /// is used first.
    pub max_nodes: Option<u32>,
    /// The use of each limit by one node, as ascending pairs (index into [`Problem::limits`], amount).
    pub limit_use: Vec<(u32, u64)>,
    /// Its GPUs, if pods may share or partition them. `None` if pods use only whole GPUs, as a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<Gpus>,
    /// Its values of topologies, as ascending pairs (index into [`Problem::topologies`], index of the value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<(u32, u32)>,
    /// The number of interruptions by the cloud in a million node-hours. Each pod on it costs [`PodClass::loss_on`] times
    /// this per hour, see [`risk`].
    #[serde(default)]
    pub interruptions: u32,
}

/// Returns the cost of a node's interruptions per pod-hour: `at_risk` micro-dollars times `interruptions` per million
/// hours, rounded half up.
pub fn risk(at_risk: u64, interruptions: u32) -> UsdPerHour {
    let product = u128::from(at_risk) * u128::from(interruptions) + 500_000;
    UsdPerHour::from_micros(u64::try_from(product / 1_000_000).unwrap_or(u64::MAX))
}

/// A node that runs, or that is starting and paid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingNode {
    /// Its name, for messages only.
    pub name: String,
    /// Its free room.
    pub free: Vec<u64>,
    /// Its GPUs one by one, if pods may share or partition them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuState>,
    /// Its values of topologies, as ascending pairs (index into [`Problem::topologies`], index of the value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<(u32, u32)>,
    /// The savings and costs of removing it. `None` for a node that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removal: Option<Removal>,
}

/// A ceiling: the sum of [`Candidate::limit_use`] over the bought nodes may not exceed `bound`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// Its name for messages, such as `pool gpu: nvidia.com/gpu`.
    pub name: String,
    /// The rest of the limit, in its own unit.
    pub bound: u64,
}
