//! What the solver answers.

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

/// Pods of one class on one node: (index into [`crate::Problem::classes`], how many).
pub type Placement = (u32, u32);

/// A feasible plan, what it costs, and how much cheaper any plan could possibly be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Solution {
    /// Nodes to buy, grouped by equal content; sorted.
    pub new_nodes: Vec<NewNodes>,
    /// What goes on nodes that are there; sorted by node.
    pub on_existing: Vec<ExistingUse>,
    /// Pods left out, by class and reason; sorted.
    pub unplaced: Vec<Unplaced>,
    /// The price of all `new_nodes`.
    pub cost: UsdPerHour,
    /// No plan that places the pods this plan places costs less: valid however early the solver stopped.
    pub bound: UsdPerHour,
    /// Why the solver stopped.
    pub stopped: Stopped,
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
}

/// Pods for a node that is there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExistingUse {
    /// Index into [`crate::Problem::existing`].
    pub node: u32,
    /// What goes there, by class, ascending.
    pub pods: Vec<Placement>,
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
}

/// Why the solver stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stopped {
    /// The gap target is met, or nothing better exists.
    GapReached,
    /// The work budget is used up: deterministic.
    WorkLimit,
    /// The caller's [`crate::Watch`] asked to stop: depends on the machine's speed.
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
    /// See [`gap`].
    pub fn gap(&self) -> f64 {
        gap(self.cost, self.bound)
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
