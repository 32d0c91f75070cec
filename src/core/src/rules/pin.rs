//! Pins: extra requirements on a pod's node, chosen by the planner.

use crate::model::{EnforcedAffinity, NodeSelectorTerm, PodSpec, Requirement, Toleration};
use std::collections::BTreeMap;

/// Extra requirements on a pod's node, AND-ed.
pub(crate) type Pin = Vec<Requirement>;

/// The parts of a pod and its pin that decide which nodes admit it.
pub(crate) type Signature<'a> = (
    &'a BTreeMap<String, String>,
    &'a Option<Vec<NodeSelectorTerm>>,
    &'a Option<Box<EnforcedAffinity>>,
    &'a Vec<Toleration>,
    &'a Vec<Vec<NodeSelectorTerm>>,
    &'a Pin,
);

pub(crate) fn signature<'a>(spec: &'a PodSpec, pin: &'a Pin) -> Signature<'a> {
    (&spec.node_selector, &spec.node_affinity, &spec.enforced, &spec.tolerations, &spec.volumes, pin)
}
