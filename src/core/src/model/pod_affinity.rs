//! What a pod asks about other pods: ports that it shares with none, pods that it keeps away from or is spread
//! evenly with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::rules::Requirement;

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

/// One term of a required pod affinity or anti-affinity: which pods, and how near.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodTerm {
    /// Nodes with one and the same value of this label are near each other.
    pub topology_key: String,
    /// Where those pods live.
    pub namespaces: Namespaces,
    /// What labels they have, AND-ed: an empty list is every pod, `None` is none.
    pub selector: Option<Vec<Requirement>>,
}

/// A namespace, as far as rules about pods choose by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Labels of namespaces, by name.
pub type NamespaceLabels = BTreeMap<String, BTreeMap<String, String>>;

impl Namespace {
    /// Many of them, as a [`crate::model::snapshot::Snapshot`] has them.
    pub fn labels_by_name(all: impl IntoIterator<Item = Self>) -> Arc<NamespaceLabels> {
        Arc::new(all.into_iter().map(|namespace| (namespace.name, namespace.labels)).collect())
    }
}

/// Some namespaces, or all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Namespaces {
    /// Every namespace.
    All,
    /// These.
    Of(BTreeSet<String>),
    /// These, and those whose labels meet all requirements.
    Chosen(BTreeSet<String>, Vec<Requirement>),
}

/// A topology spread constraint that must be kept (`DoNotSchedule`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpreadRule {
    /// The label over whose values pods are spread.
    pub topology_key: String,
    /// How many more pods a value may have than the one with fewest; at least 1.
    pub max_skew: u32,
    /// Which pods of its own namespace count, AND-ed: an empty list is none, as `None` is (unlike in [`PodTerm`]).
    pub selector: Option<Vec<Requirement>>,
    /// With fewer values than this, the least count is taken for zero.
    pub min_domains: Option<u32>,
    /// Nodes count that its node selector and node affinity exclude (`nodeAffinityPolicy: Ignore`).
    pub any_affinity: bool,
    /// Nodes do not count whose taints it does not tolerate (`nodeTaintsPolicy: Honor`).
    pub honor_taints: bool,
    /// The file of a scheduler's configuration whose default it is; `None` for a rule of the pod itself.
    pub default_of: Option<String>,
}

impl SpreadRule {
    /// What to say after it where it is not the pod's own: ` (the scheduler's default, from scheduler.yaml)`.
    pub fn origin(&self) -> String {
        self.default_of
            .as_ref()
            .map_or_else(String::new, |file| format!(" (the scheduler's default, from {file})"))
    }
}
