//! Rules about other pods: host ports, pod affinity and anti-affinity terms, and topology spread constraints.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::namespace_limits::StatedLimits;
use crate::model::rules::Requirement;

/// A host port that a pod uses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HostPort {
    /// The port.
    pub port: u16,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// The host IP that it listens on; `None` for all (`0.0.0.0`).
    pub ip: Option<String>,
}

/// One term of pod affinity or anti-affinity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PodAffinityTerm {
    /// The topology key: nodes with the same value of this label form one domain.
    pub topology_key: String,
    /// The namespaces of the selected pods.
    pub namespaces: Namespaces,
    /// The label selector, AND-ed. An empty list selects every pod. `None` selects no pod.
    pub selector: Option<Vec<Requirement>>,
}

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The limits that it states.
    pub limits: StatedLimits,
}

/// Labels of namespaces, by name.
pub type NamespaceLabels = BTreeMap<String, BTreeMap<String, String>>;

/// Limits of the namespaces that state some, by name.
pub type LimitsByNamespace = BTreeMap<String, StatedLimits>;

impl Namespace {
    /// Returns the labels of many namespaces, as a [`crate::model::snapshot::Snapshot`] holds them.
    pub fn labels_by_name(all: impl IntoIterator<Item = Self>) -> Arc<NamespaceLabels> {
        Arc::new(all.into_iter().map(|namespace| (namespace.name, namespace.labels)).collect())
    }

    /// Returns the limits of many namespaces, as a [`crate::model::snapshot::Snapshot`] holds them.
    pub fn limits_by_name<'a>(all: impl IntoIterator<Item = &'a Self>) -> Arc<LimitsByNamespace> {
        let stating = all.into_iter().filter(|namespace| !namespace.limits.is_empty());
        Arc::new(stating.map(|namespace| (namespace.name.clone(), namespace.limits.clone())).collect())
    }
}

/// Namespaces that a term selects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Namespaces {
    /// Every namespace.
    All,
    /// The namespaces with these names.
    Named(BTreeSet<String>),
    /// The namespaces with these names, and those whose labels meet all requirements.
    NamedOrSelected(BTreeSet<String>, Vec<Requirement>),
}

/// A topology spread constraint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TopologySpreadConstraint {
    /// The topology key.
    pub topology_key: String,
    /// `maxSkew`; at least 1.
    pub max_skew: u32,
    /// The label selector for pods of its own namespace, AND-ed. An empty list selects no pods, and neither does `None` (unlike
    /// in [`PodAffinityTerm`]).
    pub selector: Option<Vec<Requirement>>,
    /// `minDomains`: with fewer domains, the least count is taken as zero.
    pub min_domains: Option<u32>,
    /// `nodeAffinityPolicy: Ignore`: nodes count even if the pod's node selector or node affinity excludes them.
    pub ignore_node_affinity: bool,
    /// `nodeTaintsPolicy: Honor`: nodes whose taints the pod does not tolerate do not count.
    pub honor_node_taints: bool,
    /// `matchLabelKeys` of labels that the pod has, for messages. Their values are in the selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_label_keys: Vec<String>,
    /// The scheduler's configuration file, if this is a default constraint; `None` for a constraint of the pod.
    pub default_of: Option<String>,
}

impl TopologySpreadConstraint {
    /// Returns a suffix for messages if the constraint is not the pod's own: ` (the scheduler's default, from scheduler.yaml)`.
    pub fn origin(&self) -> String {
        self.default_of
            .as_ref()
            .map_or_else(String::new, |file| format!(" (the scheduler's default, from {file})"))
    }
}
