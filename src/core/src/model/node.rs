//! Nodes as the API server shows them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use poolwright_catalog::ResourceList;
use serde::{Deserialize, Serialize};

use super::rules::Taint;

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// `spec.providerID`, by which it is matched to its claim.
    pub provider_id: Option<String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Taints, cordon included (`node.kubernetes.io/unschedulable`).
    pub taints: Vec<Taint>,
    /// `status.allocatable`.
    pub allocatable: ResourceList,
    /// Whether its `Ready` condition is true.
    pub ready: bool,
    /// `spec.unschedulable`: cordoned, by whomever.
    pub cordoned: bool,
    /// The cordon is ours: the node carries [`crate::GATE_ANNOTATION`] and opens when its claim is initialized.
    pub gated: bool,
    /// An annotation says that it is not to be disturbed.
    pub kept: bool,
    /// Being deleted since.
    pub deleting_since: Option<Timestamp>,
}
