//! What a pod asks about other pods: ports that it shares with none, pods that it keeps away from or is spread
//! evenly with.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::rules::Requirement;

/// A port of the node that a pod takes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    /// The port.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The address of the node that it listens on; `None` for all of them (`0.0.0.0`).
    pub ip: Option<String>,
}

/// One term of a required pod anti-affinity: which pods to keep away from, and how far.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodTerm {
    /// Nodes with one and the same value of this label are too near.
    pub topology_key: String,
    /// Where those pods live.
    pub namespaces: Namespaces,
    /// What labels they have, AND-ed: an empty list is every pod, `None` is none.
    pub selector: Option<Vec<Requirement>>,
}

/// Some namespaces, or all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Namespaces {
    /// Every namespace.
    All,
    /// These.
    Of(BTreeSet<String>),
}

/// A topology spread constraint that must be kept (`DoNotSchedule`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpreadRule {
    /// The label over whose values pods are spread.
    pub topology_key: String,
    /// How many more pods a value may have than the one with fewest; at least 1.
    pub max_skew: u32,
    /// Which pods of its own namespace count, AND-ed: an empty list is none, as `None` is (unlike in [`PodTerm`]).
    pub selector: Option<Vec<Requirement>>,
}
