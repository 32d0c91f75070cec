//! Controllers of pods: the number of pods that they want at a time, and the number that they have created.

use std::fmt;

use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, StatefulSet};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{PodTemplateSpec, ReplicationController, ReplicationControllerCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use poolwright_core::Workload;

use crate::others::requirements;
use crate::pod::{key_of, owner_of, uid_of};

/// The name of Kubernetes' own controller of Jobs in `spec.managedBy`.
const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";

/// The completion mode of Jobs that have one pod for each index.
pub(crate) const INDEXED: &str = "Indexed";

/// The reason why a controller that is being deleted makes no pods.
pub(crate) const BEING_DELETED: &str = "it is being deleted and makes no more pods";

/// The reason why a suspended object has no pods.
pub(crate) const SUSPENDED: &str = "it is suspended and makes no pods now";

/// The reason why an object that has ended has no pods.
pub(crate) const ENDED: &str = "it has ended and makes no more pods";

/// Converts a Job: `parallelism` pods at a time, but no more than must still succeed. Jobs that are suspended, finished, being
/// deleted or managed by another controller want none.
pub fn job(from: &Job) -> Workload {
    let nothing = JobSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let status = from.status.as_ref();
    let parallel = count(spec.parallelism.unwrap_or(1));
    let wanted = wanted_of_job(from).unwrap_or(0);
    let active = status.and_then(|status| status.active).unwrap_or(0);
    let terminating = status.and_then(|status| status.terminating).unwrap_or(0);
    let scheduling_gated = has_gates(Some(&spec.template));
    Workload {
        scheduling_gated,
        ..of("Job", &from.metadata, [parallel, wanted, count(active) + count(terminating)])
    }
}

/// Returns how many pods a Job runs at the same time, or why it has none.
pub(crate) fn wanted_of_job(from: &Job) -> Result<u64, String> {
    let nothing = JobSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let status = from.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let is = |kinds: &[&str]| {
        conditions.iter().any(|one| kinds.contains(&one.type_.as_str()) && one.status == "True")
    };
    if spec.suspend == Some(true) || is(&["Suspended"]) {
        return Err(SUSPENDED.to_owned());
    }
    if from.metadata.deletion_timestamp.is_some() {
        return Err(BEING_DELETED.to_owned());
    }
    if let Some(other) = spec.managed_by.as_deref().filter(|name| *name != JOB_CONTROLLER) {
        return Err(format!("`{other}` manages it, and may make its pods elsewhere"));
    }
    if is(&["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"]) {
        return Err(ENDED.to_owned());
    }
    let parallel = count(spec.parallelism.unwrap_or(1));
    let uncounted = status.and_then(|status| status.uncounted_terminated_pods.as_ref());
    let uncounted = uncounted.and_then(|pods| pods.succeeded.as_ref()).map_or(0, |pods| pods.len() as u64);
    let succeeded = count(status.and_then(|status| status.succeeded).unwrap_or(0)) + uncounted;
    let Some(completions) = spec.completions else {
        // Without completions, the first success ends the Job, and no more pods are created.
        return Ok(if succeeded > 0 { 0 } else { parallel });
    };
    let done = if spec.completion_mode.as_deref() == Some(INDEXED) {
        // An index whose pods have failed too often is not tried again.
        let indexes = |text: Option<&String>| text.map_or(0, |text| number_of_indexes(text));
        let completed = indexes(status.and_then(|status| status.completed_indexes.as_ref()));
        completed.max(succeeded) + indexes(status.and_then(|status| status.failed_indexes.as_ref()))
    } else {
        succeeded
    };
    Ok(parallel.min(count(completions).saturating_sub(done)))
}

/// Returns the first and the last index of each range in a text such as `1,3-5,7`.
fn ranges(text: &str) -> impl Iterator<Item = (u64, u64)> {
    text.split(',').filter_map(|part| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some((first, last))
    })
}

/// Returns the number of indexes in a text such as `1,3-5,7`.
fn number_of_indexes(text: &str) -> u64 {
    let sizes = ranges(text).map(|(first, last)| (last - first).saturating_add(1));
    sizes.fold(0, u64::saturating_add)
}

/// Returns as many of the lowest indexes of an indexed Job as are wanted, of those that have neither completed nor failed.
pub(crate) fn open_indexes(from: &Job, wanted: i64) -> Vec<i64> {
    let status = from.status.as_ref();
    let texts = status.map(|status| [status.completed_indexes.as_deref(), status.failed_indexes.as_deref()]);
    let mut done: Vec<(u64, u64)> = texts.into_iter().flatten().flatten().flat_map(ranges).collect();
    done.sort_unstable();
    let (mut open, mut next) = (Vec::new(), 0);
    for (first, last) in done.into_iter().chain([(u64::MAX, u64::MAX)]) {
        let missing = usize::try_from(wanted).unwrap_or(0).saturating_sub(open.len());
        open.extend((next..first).take(missing).filter_map(|index| i64::try_from(index).ok()));
        next = next.max(last.saturating_add(1));
    }
    open
}

/// Why a controller makes no pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// It is being deleted.
    BeingDeleted,
    /// The API server refuses its pods (a quota, a webhook), with the message of the condition that says so.
    Refused(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str(BEING_DELETED),
            Self::Refused(message) => f.write_str(&refusal("ReplicaFailure", message)),
        }
    }
}

/// Says that the API server refuses pods. `shown` names the condition or the event that shows it.
pub(crate) fn refusal(shown: &str, message: &str) -> String {
    let message = message.trim_end_matches('.');
    let colon = if message.is_empty() { "" } else { ": " };
    format!("the API server refuses more of its pods ({shown}{colon}{message})")
}

/// Returns why a controller makes no pods, if it makes none. `failure` is the message of its `ReplicaFailure`.
fn stopped(meta: &ObjectMeta, failure: Option<String>) -> Option<Stopped> {
    if meta.deletion_timestamp.is_some() {
        return Some(Stopped::BeingDeleted);
    }
    failure.map(Stopped::Refused)
}

/// Returns why a ReplicaSet makes no pods, if it makes none.
pub(crate) fn replica_set_stopped(from: &ReplicaSet) -> Option<Stopped> {
    let mut conditions = from.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_refused = |one: &&ReplicaSetCondition| one.type_ == "ReplicaFailure" && one.status == "True";
    let failure = conditions.find(is_refused).map(|one| one.message.clone().unwrap_or_default());
    stopped(&from.metadata, failure)
}

/// Returns why a ReplicationController makes no pods, if it makes none.
pub(crate) fn replication_controller_stopped(from: &ReplicationController) -> Option<Stopped> {
    let mut conditions = from.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let is_refused =
        |one: &&ReplicationControllerCondition| one.type_ == "ReplicaFailure" && one.status == "True";
    let failure = conditions.find(is_refused).map(|one| one.message.clone().unwrap_or_default());
    stopped(&from.metadata, failure)
}

/// Converts a ReplicaSet. If it reports that it cannot create pods (a quota, a webhook), it wants none.
pub fn replica_set(from: &ReplicaSet) -> Workload {
    let wanted = count(from.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1));
    let current = from.status.as_ref().map_or(0, |status| count(status.replicas));
    let selector = from.spec.as_ref().and_then(|spec| requirements(&spec.selector));
    let is_stopped = replica_set_stopped(from).is_some();
    let workload = of("ReplicaSet", &from.metadata, [wanted, if is_stopped { 0 } else { wanted }, current]);
    let scheduling_gated = has_gates(from.spec.as_ref().and_then(|spec| spec.template.as_ref()));
    Workload { selector, scheduling_gated, ..workload }
}

/// Converts a ReplicationController.
pub fn replication_controller(from: &ReplicationController) -> Workload {
    let spec = from.spec.as_ref();
    let wanted = count(spec.and_then(|spec| spec.replicas).unwrap_or(1));
    let current = from.status.as_ref().map_or(0, |status| count(status.replicas));
    // Without a selector, the pods have the labels of the template.
    let labels = || spec?.template.as_ref()?.metadata.as_ref()?.labels.clone();
    let match_labels = spec.and_then(|spec| spec.selector.clone()).or_else(labels);
    let selector = requirements(&LabelSelector { match_labels, ..LabelSelector::default() });
    let is_stopped = replication_controller_stopped(from).is_some();
    let numbers = [wanted, if is_stopped { 0 } else { wanted }, current];
    let workload = of("ReplicationController", &from.metadata, numbers);
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
