//! Controllers of pods: the number of pods that they want at a time, and the number that they have created.

use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use poolwright_core::Workload;

use crate::others::requirements;
use crate::pod::{key_of, owner_of, uid_of};

/// Converts a Job: `parallelism` pods at a time, but no more than must still succeed. Jobs that are suspended, finished, being
/// deleted or managed by another controller want none.
pub fn job(from: &Job) -> Workload {
    let nothing = JobSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let status = from.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let ends = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget", "Suspended"];
    let stopped = spec.suspend == Some(true)
        || from.metadata.deletion_timestamp.is_some()
        || spec.managed_by.as_deref().is_some_and(|by| by != "kubernetes.io/job-controller")
        || conditions.iter().any(|one| ends.contains(&one.type_.as_str()) && one.status == "True");
    let parallel = count(spec.parallelism.unwrap_or(1));
    let succeeded = count(status.and_then(|status| status.succeeded).unwrap_or(0));
    let left = spec.completions.map_or(u64::MAX, |wanted| count(wanted).saturating_sub(succeeded));
    // Without completions, the first success ends the Job, and no more pods are created.
    let ending = spec.completions.is_none() && succeeded > 0;
    let wanted = if stopped || ending { 0 } else { parallel.min(left) };
    let active = status.and_then(|status| status.active).unwrap_or(0);
    let terminating = status.and_then(|status| status.terminating).unwrap_or(0);
    let scheduling_gated = has_gates(Some(&spec.template));
    Workload {
        scheduling_gated,
        ..of("Job", &from.metadata, [parallel, wanted, count(active) + count(terminating)])
    }
}

/// Converts a ReplicaSet. If it reports that it cannot create pods (a quota, a webhook), it wants none.
pub fn replica_set(from: &ReplicaSet) -> Workload {
    let wanted = count(from.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1));
    let status = from.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let fails = conditions.iter().any(|one| one.type_ == "ReplicaFailure" && one.status == "True");
    let stopped = fails || from.metadata.deletion_timestamp.is_some();
    let current = status.map_or(0, |status| count(status.replicas));
    let selector = from.spec.as_ref().and_then(|spec| requirements(&spec.selector));
    let workload = of("ReplicaSet", &from.metadata, [wanted, if stopped { 0 } else { wanted }, current]);
    let scheduling_gated = has_gates(from.spec.as_ref().and_then(|spec| spec.template.as_ref()));
    Workload { selector, scheduling_gated, ..workload }
}

/// Converts a ReplicationController.
pub fn replication_controller(from: &ReplicationController) -> Workload {
    let spec = from.spec.as_ref();
    let wanted = count(spec.and_then(|spec| spec.replicas).unwrap_or(1));
    let status = from.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let fails = conditions.iter().any(|one| one.type_ == "ReplicaFailure" && one.status == "True");
    let stopped = fails || from.metadata.deletion_timestamp.is_some();
    let current = status.map_or(0, |status| count(status.replicas));
    // Without a selector, the pods have the labels of the template.
    let labels = || spec?.template.as_ref()?.metadata.as_ref()?.labels.clone();
    let match_labels = spec.and_then(|spec| spec.selector.clone()).or_else(labels);
    let selector = requirements(&LabelSelector { match_labels, ..LabelSelector::default() });
    let workload =
        of("ReplicationController", &from.metadata, [wanted, if stopped { 0 } else { wanted }, current]);
    let scheduling_gated = has_gates(spec.and_then(|spec| spec.template.as_ref()));
    Workload { selector, scheduling_gated, ..workload }
}

/// Converts a StatefulSet that creates its pods in parallel. One that creates them in order wants another pod only when all
/// earlier pods run, so it has no expected pods.
pub fn stateful_set(from: &StatefulSet) -> Workload {
    let spec = from.spec.as_ref();
    let at_once = spec.and_then(|spec| spec.pod_management_policy.as_deref()) == Some("Parallel");
    let wanted = count(spec.and_then(|spec| spec.replicas).unwrap_or(1));
    let stopped = !at_once || from.metadata.deletion_timestamp.is_some();
    let current = from.status.as_ref().map_or(0, |status| count(status.replicas));
    let selector = spec.and_then(|spec| requirements(&spec.selector));
    let workload = of("StatefulSet", &from.metadata, [wanted, if stopped { 0 } else { wanted }, current]);
    let scheduling_gated = has_gates(spec.map(|spec| &spec.template));
    Workload { selector, scheduling_gated, ..workload }
}

fn has_gates(template: Option<&PodTemplateSpec>) -> bool {
    let spec = template.and_then(|template| template.spec.as_ref());
    spec.and_then(|spec| spec.scheduling_gates.as_ref()).is_some_and(|gates| !gates.is_empty())
}

fn count(number: i32) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn of(kind: &str, meta: &ObjectMeta, [total, wanted, current]: [u64; 3]) -> Workload {
    let (key, uid, owner) = (key_of(meta), uid_of(meta), owner_of(meta));
    Workload {
        kind: kind.to_owned(),
        key,
        uid,
        owner,
        total,
        wanted,
        current,
        scheduling_gated: false,
        selector: None,
    }
}
