//! Preferences of pods: preferred node affinity, pod affinity and anti-affinity, and `ScheduleAnyway` constraints.

use serde::{Deserialize, Serialize};

use crate::model::pod_affinity::{PodAffinityTerm, TopologySpreadConstraint};
use crate::model::rules::NodeSelectorTerm;
use crate::model::unmodelled::UnmodelledRule;

/// The preferences of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Preferences {
    /// Preferred node affinity.
    pub nodes: Vec<Weighted<NodeSelectorTerm>>,
    /// Preferred node affinity that the scheduler's profile adds, with its configuration file. Filled in by the planner.
    pub added: Vec<(Weighted<NodeSelectorTerm>, String)>,
    /// Preferred pod affinity.
    pub affinity: Vec<Weighted<PodAffinityTerm>>,
    /// Preferred pod anti-affinity.
    pub anti_affinity: Vec<Weighted<PodAffinityTerm>>,
    /// Topology spread constraints with `ScheduleAnyway`.
    pub spreads: Vec<TopologySpreadConstraint>,
    /// Invalid preferences, which are ignored and reported.
    pub unread: Vec<UnmodelledRule>,
}

/// A preference and its weight.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Weighted<T> {
    /// The weight, from 1 to 100.
    pub weight: u32,
    /// The preferred term.
    pub term: T,
}

impl Preferences {
    /// Boxes the preferences, or returns `None` if there are none.
    pub fn some(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
