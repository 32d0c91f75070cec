//! Combines the rules: whether a pod may run on a node, or on the same node as another pod.

use poolwright_terms::Taint;

use crate::model::PodSpec;
use crate::rules::added_affinity::check as check_enforced;
use crate::rules::affinity::check as check_affinity;
use crate::rules::anti_affinity::check as check_anti_affinity;
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::ports::check as check_ports;
use crate::rules::rejection::Rejection;
use crate::rules::selector::check as check_selector;
use crate::rules::taints::{check as check_taints, check_daemonset as check_daemonset_taints};
use crate::rules::volumes::check as check_volumes;

/// Checks whether the pod may run on a node with these labels and taints, ignoring resources.
pub fn admits(spec: &PodSpec, labels: &impl Labels, taints: &[Taint]) -> Result<(), Rejection> {
    check_taints(&spec.tolerations, taints)?;
    check_labels(spec, labels)
}

/// Checks whether node selector, node affinity, added affinity and volumes admit the pod to a node with these labels.
pub fn check_labels(spec: &PodSpec, labels: &impl Labels) -> Result<(), Rejection> {
    check_own_labels(spec, labels)?;
    check_enforced(spec.enforced.as_deref(), labels)?;
    check_volumes(&spec.volumes, labels)
}

/// Checks whether the pod's own node selector and node affinity admit it. Topology spread constraints with `nodeAffinityPolicy:
/// Honor` use this, as the kube-scheduler's `GetRequiredNodeAffinity` does.
pub fn check_own_labels(spec: &PodSpec, labels: &impl Labels) -> Result<(), Rejection> {
    check_selector(&spec.node_selector, labels)?;
    check_affinity(spec.node_affinity.as_deref(), labels)
}

/// Checks whether a newcomer may join a resident on its node, by host ports and anti-affinity.
pub fn may_share(newcomer: Identity<'_>, resident: Identity<'_>) -> Result<(), Rejection> {
    check_ports(&newcomer.spec.host_ports, &resident.spec.host_ports)?;
    check_anti_affinity(newcomer, resident)
}

/// Returns whether a DaemonSet with this pod template runs a pod on a node with these labels and taints.
pub fn daemonset_lands(spec: &PodSpec, labels: &impl Labels, taints: &[Taint]) -> bool {
    check_daemonset_taints(&spec.tolerations, taints).is_ok() && check_labels(spec, labels).is_ok()
}
