//! Nodes.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use poolwright_catalog::ResourceList;
use poolwright_terms::Taint;
use poolwright_terms::keys::RESERVED_TAINT;
use serde::{Deserialize, Serialize};

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `spec.providerID`, by which it is matched to its claim.
    pub provider_id: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints, including the cordon (`node.kubernetes.io/unschedulable`).
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// Whether its `Ready` condition is true.
    pub ready: bool,
    /// `spec.unschedulable`: cordoned, by whatever component or person.
    pub cordoned: bool,
    /// Whether the cordon is ours: the node carries [`poolwright_terms::keys::CORDONED_UNTIL_ANNOTATION`] and opens when its claim is
    /// initialized.
    pub cordoned_until_initialized: bool,
    /// Whether an annotation forbids disruption of the node.
    pub do_not_disrupt: bool,
    /// The deletion timestamp; `None` if it is not being deleted.
    pub deleting_since: Option<Timestamp>,
    /// Conditions that may be unhealthy: `Ready` unless it is true, and pressure and network conditions unless they are false.
    /// All other conditions are included, because their healthy status is unknown.
    #[serde(default)]
    pub unhealthy_conditions: Vec<NodeCondition>,
}

impl Node {
    /// Returns the condition of this type, if it is in [`Self::unhealthy_conditions`].
    pub fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.unhealthy_conditions.iter().find(|one| one.kind == kind)
    }

    /// Returns whether the node is reserved: open only to the pods that are planned for it.
    pub fn is_reserved(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == RESERVED_TAINT)
    }
}

/// A condition of a node. Conditions are equal without regard to their cause: kubelets repeat it in ever new words, and decisions do
/// not depend on it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeCondition {
    /// Its type, such as `Ready`.
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The time of the last change of the status.
    pub since: Timestamp,
    /// Its reason and message, for people: `NodeStatusUnknown: Kubelet stopped posting node status.`
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cause: String,
}

impl PartialEq for NodeCondition {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, &self.status, self.since) == (&other.kind, &other.status, other.since)
    }
}

impl Eq for NodeCondition {}

impl fmt::Display for NodeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind, self.status)
    }
}
