//! What the solver answers.

use poolwright_catalog::{MigProfile, UsdPerHour};
use serde::{Deserialize, Serialize};

mod step;

pub use step::{Move, MoveTarget, Step};

/// Pods of one class on one node: (index into [`crate::Problem::classes`], how many).
pub type Placement = (u32, u32);

/// A feasible plan, what it costs, and how much cheaper any plan could possibly be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Solution {
    /// Nodes to buy, grouped by equal content; sorted.
    pub new_nodes: Vec<NewNodes>,
    /// What goes on nodes that are there; sorted by node.
    pub on_existing: Vec<ExistingUse>,
    /// Pods left out, by class and reason; sorted.
    pub unplaced: Vec<Unplaced>,
    /// What is paid: the price of all `new_nodes` less what commitments cover, and of all removable nodes that stay.
    pub cost: UsdPerHour,
    /// What is counted but not paid. What the solver makes small is `cost` and these together: [`Solution::objective`].
    #[serde(default)]
    pub charges: Charges,
    /// No plan that places the pods this plan places has a lower objective: valid however early the solver stopped.
    pub bound: UsdPerHour,
    /// What the bound rests on.
    #[serde(default)]
    pub proof: Proof,
    /// Why the solver stopped.
    pub stopped: Stopped,
    /// What is used of each commitment, by index, see [`crate::problem::Commitment`]; empty where the problem has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commitment_use: Vec<UsdPerHour>,
    /// Existing nodes to remove, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<u32>,
    /// How to get there: first to last, every state in between is feasible (capacity, GPUs, conflicts; limits, shares, gangs
    /// and spreads are those of the end). Pods that wait are not part of it; empty where no node is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What one more of each thing is worth; `None` from solvers that know no prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ShadowPrices>,
}

/// What is counted but not paid, per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Charges {
    /// What interruptions are expected to lose: see [`crate::problem::risk`].
    pub risk: UsdPerHour,
    /// Preferences that are not met.
    pub preferences: UsdPerHour,
    /// Nodes removed and pods moved.
    pub disruption: UsdPerHour,
}

/// What the bound rests on, the strongest first. Every bound is proven in integers and valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Proof {
    /// The bound is what the plan comes to: no plan that places the same pods has a lower objective.
    Exact,
    /// The plan may not be the least, but no search behind the bound was cut short: for every kind of node the best content
    /// was found, or it was proven that none is worth what the node costs. More work on the pricing would not raise the bound.
    Complete,
    /// Some search of the best content was cut short, and a looser ceiling stands in its place: more work might raise the
    /// bound.
    #[default]
    Truncated,
}

/// The duals that prove the bound, rounded to micro-dollars: what the objective would change by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShadowPrices {
    /// By class: what one more pod of it costs.
    pub classes: Vec<u64>,
    /// By limit: what one more unit of it would save, in micro-dollars per million units.
    pub limits: Vec<u64>,
    /// By candidate: what one more node of a scarce candidate would save.
    pub candidates: Vec<u64>,
}

/// Equal nodes to buy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewNodes {
    /// Index into [`crate::Problem::candidates`].
    pub candidate: u32,
    /// What each of them holds, by class, ascending.
    pub pods: Vec<Placement>,
    /// How many of them.
    pub count: u32,
    /// What is on each GPU, one entry per GPU, where the candidate has [`crate::problem::Gpus`]; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuLayout>,
}

/// What is placed on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuLayout {
    /// Nothing.
    #[default]
    Idle,
    /// One pod of this class has it whole; the pod may have others too.
    Whole(u32),
    /// Pods that share it, by class, ascending.
    Shared(Vec<Placement>),
    /// GPU instances, by first memory slice, ascending.
    Mig(Vec<MigInstance>),
}

/// One GPU instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MigInstance {
    /// Its first memory slice.
    pub start: u8,
    /// What it is.
    pub profile: MigProfile,
    /// The class of the pod that uses it.
    pub class: u32,
}

/// Pods for a node that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingUse {
    /// Index into [`crate::Problem::existing`].
    pub node: u32,
    /// What goes there, by class, ascending. On a removable node that stays, what runs there already is not repeated.
    pub pods: Vec<Placement>,
    /// What is newly placed on each GPU, one entry per GPU of the node, where they are shared or cut; else empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuLayout>,
}

/// Pods of one class that the plan leaves out.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Unplaced {
    /// Index into [`crate::Problem::classes`].
    pub class: u32,
    /// How many.
    pub count: u32,
    /// Why.
    pub reason: UnplacedReason,
}

/// Why pods are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnplacedReason {
    /// No candidate, even empty, holds one such pod.
    NothingFits,
    /// Candidates fit, but this limit (index into [`crate::Problem::limits`]) is used up.
    LimitReached(u32),
    /// Candidates fit, but as many as can be bought are bought.
    NoMoreAvailable,
    /// This gang (index into [`crate::Problem::gangs`]) cannot be placed whole.
    GangIncomplete(u32),
    /// The pods could be placed, but not spread as this (index into [`crate::Problem::spreads`]) asks.
    Unspreadable(u32),
    /// Nodes fit, but none that could also be as many others as this (index into [`crate::Problem::flexibility`]) asks.
    Inflexible(u32),
    /// More nodes of one kind than this (index into [`crate::Problem::node_shares`]) allows would be needed.
    ShareReached(u32),
}

/// Why the solver stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stopped {
    /// The gap target is met, or nothing better exists.
    GapReached,
    /// The work budget is used up: deterministic.
    #[default]
    WorkLimit,
    /// Nothing is left to try: deterministic.
    Exhausted,
    /// The caller's [`crate::StopSignal`] asked to stop: depends on the machine's speed.
    Asked,
}

/// How far from least a cost can be: `(cost - bound) / bound`, zero when nothing is bought; for output only.
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
    /// What the solver makes small: what is paid and what is counted.
    pub fn objective(&self) -> UsdPerHour {
        self.cost + self.charges.risk + self.charges.preferences + self.charges.disruption
    }

    /// See [`gap`].
    pub fn gap(&self) -> f64 {
        gap(self.objective(), self.bound)
    }

    /// How many pods are left out.
    pub fn unplaced_pods(&self) -> u64 {
        self.unplaced.iter().map(|left| u64::from(left.count)).sum()
    }

    /// How many nodes are bought.
    pub fn nodes(&self) -> u64 {
        self.new_nodes.iter().map(|group| u64::from(group.count)).sum()
    }
}
