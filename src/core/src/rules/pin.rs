//! Where a pod must go.

use crate::model::{EnforcedAffinity, NodeTerm, PodSpec, Requirement, Toleration};
use std::collections::BTreeMap;

/// What a pod requires of its node besides what it says itself, AND-ed.
pub(crate) type Pin = Vec<Requirement>;

/// What decides which nodes admit a pod.
pub(crate) type Signature<'a> = (
    &'a BTreeMap<String, String>,
    &'a Option<Vec<NodeTerm>>,
    &'a Option<Box<EnforcedAffinity>>,
    &'a Vec<Toleration>,
    &'a Vec<Vec<NodeTerm>>,
    &'a Pin,
);

pub(crate) fn signature<'a>(spec: &'a PodSpec, pin: &'a Pin) -> Signature<'a> {
    (&spec.node_selector, &spec.node_affinity, &spec.enforced, &spec.tolerations, &spec.volumes, pin)
}
