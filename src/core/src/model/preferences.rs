//! What a pod would like of its node and forbids nothing: preferences, as Kubernetes states them.

use serde::{Deserialize, Serialize};

use crate::model::pod_affinity::{PodTerm, SpreadRule};
use crate::model::rules::NodeTerm;
use crate::model::unmodelled::UnmodelledRule;

/// The preferences of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Preferences {
    /// Preferred node affinity.
    pub nodes: Vec<Weighted<NodeTerm>>,
    /// Preferred node affinity that its scheduler adds, and the file in which that is written. Filled in when a plan is made.
    pub added: Vec<(Weighted<NodeTerm>, String)>,
    /// Preferred pod affinity.
    pub affinity: Vec<Weighted<PodTerm>>,
    /// Preferred pod anti-affinity.
    pub anti_affinity: Vec<Weighted<PodTerm>>,
    /// Topology spread that is a preference (`ScheduleAnyway`).
    pub spreads: Vec<SpreadRule>,
    /// Preferences that make no sense: they are dropped, and named.
    pub unread: Vec<UnmodelledRule>,
}

/// A preference, and how much it matters among others of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Weighted<T> {
    /// From 1 to 100.
    pub weight: u32,
    /// What is preferred.
    pub term: T,
}

impl Preferences {
    /// `None` for no preference at all.
    pub fn some(self) -> Option<Box<Self>> {
        (self != Self::default()).then(|| Box::new(self))
    }
}
