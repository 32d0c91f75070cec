//! What a pod says about how long it runs.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::parse_duration;
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{PodDuration, template};
use poolwright_terms::keys::{EXPECTED_DURATION_ANNOTATION, QUEUE_LABEL, RAN_FOR_ANNOTATION};

/// Kinds of controllers that keep their pods running.
const SERVICES: [&str; 4] = ["ReplicaSet", "ReplicationController", "StatefulSet", "Deployment"];

/// Returns what a pod says about how long it runs. Durations that cannot be read count as not given.
pub(crate) fn of(from: &k8s::Pod, requests: &ResourceList, priority: i32) -> PodDuration {
    let meta = &from.metadata;
    let status = from.status.as_ref();
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let annotation =
        |key: &str| meta.annotations.as_ref()?.get(key).and_then(|text| parse_duration(text).ok());
    let deadline = from.spec.as_ref().and_then(|spec| spec.active_deadline_seconds);
    PodDuration {
        started: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0),
        ended: status.and_then(ended),
        ran_before: annotation(RAN_FOR_ANNOTATION).unwrap_or_default(),
        expected: annotation(EXPECTED_DURATION_ANNOTATION),
        deadline: deadline.map(SignedDuration::from_secs),
        is_service: owner.is_some_and(|owner| SERVICES.contains(&owner.kind.as_str())),
        kinds: kinds(from, requests, priority),
    }
}

/// Returns when the last container ended.
fn ended(status: &k8s::PodStatus) -> Option<Timestamp> {
    let containers = status.container_statuses.iter().flatten();
    let ends = containers
        .filter_map(|container| container.state.as_ref()?.terminated.as_ref()?.finished_at.as_ref());
    ends.map(|time| time.0).max()
}

/// Returns the kinds of work that a pod belongs to, from the narrowest to the widest: its template and size, then its namespace,
/// queue and priority with the number of GPUs, then the number of GPUs. Each name is the end of the one before.
fn kinds(from: &k8s::Pod, requests: &ResourceList, priority: i32) -> Vec<String> {
    let meta = &from.metadata;
    let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let name = owner.map(|owner| owner.name.as_str()).or(meta.name.as_deref()).unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or("default");
    let queue = meta.labels.as_ref().and_then(|labels| labels.get(QUEUE_LABEL));
    let cpu = requests.get(ResourceName::CPU).div_ceil(1000);
    let memory = requests.get(ResourceName::MEMORY) >> 30;
    let gpus = requests.iter().filter(|(name, _)| name.as_str().starts_with("nvidia.com/"));
    let gpus: u64 = gpus.map(|(_, amount)| amount).sum();
    let widest = format!("{gpus} GPUs");
    let queue = queue.map_or_else(String::new, |queue| format!(", queue {queue}"));
    let priority = if priority == 0 { String::new() } else { format!(", priority {priority}") };
    let middle = format!("namespace {namespace}{queue}{priority}/{widest}");
    vec![format!("{} with {cpu} CPUs, {memory} GiB/{middle}", template(name)), middle, widest]
}
