//! DaemonSets, as far as they matter for new nodes.

use k8s_openapi::api::apps::v1 as k8s;
use poolwright_api::FieldProblem;
use poolwright_core::DaemonSet;
use poolwright_terms::{TaintEffect, keys};

use crate::error::{IntakeError, OfObject, object_name};
use crate::others::Owner;
use crate::pod::{key_of, pod_spec};
use crate::rules::tolerate;

/// Taints that every DaemonSet pod tolerates, because the DaemonSet controller adds the tolerations.
/// <https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>
const TOLERATED: [(&str, TaintEffect); 6] = [
    (keys::NOT_READY_TAINT, TaintEffect::NoExecute),
    (keys::UNREACHABLE_TAINT, TaintEffect::NoExecute),
    (keys::DISK_PRESSURE_TAINT, TaintEffect::NoSchedule),
    (keys::MEMORY_PRESSURE_TAINT, TaintEffect::NoSchedule),
    (keys::PID_PRESSURE_TAINT, TaintEffect::NoSchedule),
    (keys::CORDON_TAINT, TaintEffect::NoSchedule),
];

/// Converts a DaemonSet: the requirements of each of its pods on a node, with the tolerations that its controller adds.
pub fn daemonset(from: &k8s::DaemonSet) -> Result<DaemonSet, IntakeError> {
    let meta = &from.metadata;
    convert(from).map_err(|problem| {
        problem.of(object_name(
            "DaemonSet",
            meta.namespace.as_deref().or(Some("default")),
            meta.name.as_deref(),
        ))
    })
}

pub(crate) fn convert(from: &k8s::DaemonSet) -> Result<DaemonSet, FieldProblem> {
    let pods = from.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let template = pods.spec.unwrap_or_default();
    let labels = pods.metadata.and_then(|meta| meta.labels).unwrap_or_default();
    let key = key_of(&from.metadata);
    let owner = Owner { namespace: &key.namespace, labels: &labels };
    let mut spec = pod_spec("spec.template.spec", owner, &template, None)?;
    spec.tolerations.extend(TOLERATED.map(|(key, effect)| tolerate(key, effect)));
    if template.host_network == Some(true) {
        spec.tolerations.push(tolerate(keys::NETWORK_UNAVAILABLE_TAINT, TaintEffect::NoSchedule));
    }
    Ok(DaemonSet { key, labels, spec })
}
