//! The output of the solver.

use poolwright_catalog::{MigProfile, UsdPerHour};
use serde::{Deserialize, Serialize};

mod step;

pub use step::{Move, MoveTarget, Step};

/// Pods of one class on one node: (index into [`crate::Problem::classes`], count).
pub type Placement = (u32, u32);

/// A feasible plan, its cost, and a bound on the cost of any plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Solution {
    /// The nodes to buy, grouped by equal pods; sorted.
    pub new_nodes: Vec<NewNodes>,
    /// Pods to place on existing nodes, sorted by node.
    pub on_existing: Vec<ExistingUse>,
    /// The pods that the plan leaves out, sorted by class and reason.
    pub unplaced: Vec<Unplaced>,
    /// The money to pay: the price of all `new_nodes` minus the part covered by commitments, plus the price of all removable
    /// nodes that stay.
    pub cost: UsdPerHour,
    /// Costs in the objective that are not paid. The solver minimises `cost` plus these, see [`Solution::objective`].
    #[serde(default)]
    pub charges: Charges,
    /// A lower bound: no plan that places the same pods has a lower objective. It is valid however early the solver
    /// stopped.
    pub bound: UsdPerHour,
    /// The proof of the bound, see [`Proof`].
    #[serde(default)]
    pub proof: Proof,
    /// The reason why the solver stopped.
    pub stopped: Stopped,
    /// The use of each commitment, by index, see [`crate::problem::Commitment`]. Empty where the problem has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitment_use: Vec<UsdPerHour>,
    /// Existing nodes to remove, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<u32>,
    /// The steps to the plan, in their order. Every state in between is feasible as to capacity, GPUs and conflicts.
    /// Limits, shares, gangs and spreads hold at the end. Waiting pods are not part of the steps. Empty where no node
    /// is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The value of one more of each resource. `None` if the solver has no prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ShadowPrices>,
}

/// Costs in the objective that are not paid, per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Charges {
    /// The expected loss from interruptions, see [`crate::problem::risk`].
    pub risk: UsdPerHour,
    /// Unmet preferences, and what else pods cost besides their nodes.
    pub preferences: UsdPerHour,
    /// Removed nodes and moved pods.
    pub disruption: UsdPerHour,
}

/// The proof of the bound, the strongest first. Every bound is proven in integers and valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Proof {
    /// The bound is the objective: no plan that places the same pods has a lower one.
    Exact,
    /// The plan may not be optimal, but no search behind the bound was cut short. For every kind of node the search found
    /// the best pattern, or proved that none is worth the node's price. More pricing would not raise the bound.
    Complete,
    /// A search for the best pattern was cut short, and the bound uses a looser upper bound on it. More work might raise
    /// it.
    #[default]
    Truncated,
}

/// The dual prices of the bound, rounded to micro-dollars: the change of the objective.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShadowPrices {
    /// By class: the cost of one more pod.
    pub classes: Vec<u64>,
    /// By limit: the saving from one more unit, in micro-dollars per million units.
    pub limits: Vec<u64>,
    /// By candidate: the saving from one more node of a scarce candidate.
    pub candidates: Vec<u64>,
}

/// Equal nodes to buy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewNodes {
    /// Index into [`crate::Problem::candidates`].
    pub candidate: u32,
    /// The pods of each node, ascending by class.
    pub pods: Vec<Placement>,
    /// The number of nodes.
    pub count: u32,
    /// The layout of each GPU, one entry per GPU. Empty unless the candidate has [`crate::problem::Gpus`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuLayout>,
}

/// The pods that the plan places on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuLayout {
    /// Nothing.
    #[default]
    Idle,
    /// One pod of this class has the whole GPU. The pod may have other GPUs too.
    Whole(u32),
    /// The pods that share it, ascending by class.
    Shared(Vec<Placement>),
    /// Its GPU instances, ascending by first memory slice.
    Mig(Vec<MigInstance>),
}

/// One GPU instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MigInstance {
    /// Its first memory slice.
    pub start: u8,
    /// Its profile.
    pub profile: MigProfile,
    /// The class of the pod that uses it.
    pub class: u32,
}

/// Pods for an existing node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingUse {
    /// Index into [`crate::Problem::existing`].
    pub node: u32,
    /// The pods to place on it, ascending by class. They do not include the pods that already run on a removable
    /// node.
    pub pods: Vec<Placement>,
    /// The newly placed pods on each GPU, one entry per GPU of the node. Empty unless the GPUs are shared or partitioned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuLayout>,
}

/// Pods of one class that the plan leaves out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unplaced {
    /// Index into [`crate::Problem::classes`].
    pub class: u32,
    /// The number of pods.
    pub count: u32,
    /// The reason.
    pub reason: UnplacedReason,
}

/// The reason why the plan leaves out pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnplacedReason {
    /// No empty node of any candidate holds one such pod.
    NothingFits,
    /// Candidates fit, but this limit (index into [`crate::Problem::limits`]) is used up.
    LimitReached(u32),
    /// Candidates fit, but their stock is used up.
    NoMoreAvailable,
    /// This gang (index into [`crate::Problem::gangs`]) cannot be placed whole.
    GangIncomplete(u32),
    /// The pods could be placed, but not with the skew of this spread (index into [`crate::Problem::spreads`]).
    Unspreadable(u32),
    /// Nodes fit, but none can be replaced by as many other types as this rule (index into [`crate::Problem::flexibility`])
    /// requires.
    Inflexible(u32),
    /// The pods need more nodes of one kind than this share (index into [`crate::Problem::node_shares`]) allows.
    ShareReached(u32),
    /// A node was planned for the pods, but the search for the layout of its GPUs ended without a place for them. Another node may
    /// hold them.
    NoLayout,
}

/// The reason why the solver stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stopped {
    /// The gap target is met, or the plan is optimal.
    GapReached,
    /// The work budget is used up. This is deterministic.
    #[default]
    WorkLimit,
    /// Nothing is left to try. This is deterministic.
    Exhausted,
    /// The caller's [`crate::StopSignal`] asked it to stop. This depends on the machine's speed.
    Asked,
}

/// Returns `(cost - bound) / bound`, the largest possible relative distance of a cost to the optimum: 0 if the cost is
/// not above the bound, 1 if only the bound is zero. For output only.
pub fn gap(cost: UsdPerHour, bound: UsdPerHour) -> f64 {
    let (cost, bound) = (cost.micros(), bound.micros());
    if cost <= bound {
        0.0
    } else if bound == 0 {
        1.0
    } else {
        (cost - bound) as f64 / bound as f64
    }
}

impl Solution {
    /// Returns the objective that the solver minimises: the money to pay plus the charges.
    pub fn objective(&self) -> UsdPerHour {
        self.cost + self.charges.risk + self.charges.preferences + self.charges.disruption
    }

    /// Returns the [`gap`] of the objective.
    pub fn gap(&self) -> f64 {
        gap(self.objective(), self.bound)
    }

    /// Returns the number of pods that are left out.
    pub fn unplaced_pods(&self) -> u64 {
        self.unplaced.iter().map(|left| u64::from(left.count)).sum()
    }

    /// Returns the number of nodes to buy.
    pub fn nodes(&self) -> u64 {
        self.new_nodes.iter().map(|group| u64::from(group.count)).sum()
    }
}
