//! Pods that an API server refuses to create, as a cluster shows it: by conditions of their controllers, or by events about them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Event, ReplicationController};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_core::Workload;

use crate::error::object_name;
use crate::manifest::RefusedPods;
use crate::workloads::{self, Stopped, refusal};

/// The reason of events about pods that their controller could not create.
pub const FAILED_CREATE: &str = "FailedCreate";

/// How long such an event counts. A controller tries again after 17 minutes at most, and then there is a newer event or a pod.
const COUNTS_FOR: SignedDuration = SignedDuration::from_mins(20);

/// What the message of an event contains if the API server refused the pod: a quota, a LimitRange or another rule, or a webhook.
const REFUSALS: [&str; 2] = [" is forbidden: ", " denied the request"];

/// The newest refusals of pods, by the UID of their controller.
#[derive(Clone, Debug, Default)]
pub struct Refusals(BTreeMap<String, (Timestamp, String)>);

impl Refusals {
    /// Reads events with the reason [`FAILED_CREATE`].
    pub fn of(events: &[Event], now: Timestamp) -> Self {
        let mut newest: BTreeMap<String, (Timestamp, String)> = BTreeMap::new();
        for event in events {
            let (Some(uid), Some(at)) = (&event.involved_object.uid, last_seen(event)) else { continue };
            let is_newest = newest.get(uid).is_none_or(|(known, _)| *known < at);
            if is_newest && now.duration_since(at) <= COUNTS_FOR {
                newest.insert(uid.clone(), (at, event.message.clone().unwrap_or_default()));
            }
        }
        newest.retain(|_, (_, message)| REFUSALS.iter().any(|part| message.contains(part)));
        Self(newest)
    }
}

fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let times = [
        series.map(|time| time.0),
        event.last_timestamp.as_ref().map(|time| time.0),
        event.event_time.as_ref().map(|time| time.0),
    ];
    times.into_iter().flatten().max()
}

/// Returns the pods that a ReplicaSet lacks because the API server refuses them, and a note that says so.
pub fn of_replica_set(from: &ReplicaSet) -> Option<(RefusedPods, String)> {
    let lacking = lacking(&workloads::replica_set(from));
    by_condition("ReplicaSet", &from.metadata, lacking, &workloads::replica_set_stopped(from)?)
}

/// Returns the pods that a ReplicationController lacks because the API server refuses them, and a note that says so.
pub fn of_replication_controller(from: &ReplicationController) -> Option<(RefusedPods, String)> {
    let lacking = lacking(&workloads::replication_controller(from));
    let stopped = workloads::replication_controller_stopped(from)?;
    by_condition("ReplicationController", &from.metadata, lacking, &stopped)
}

/// Returns the pods that a StatefulSet lacks because the API server refuses them, and a note that says so.
pub fn of_stateful_set(from: &StatefulSet, refusals: &Refusals) -> Option<(RefusedPods, String)> {
    by_event("StatefulSet", &from.metadata, lacking_of_stateful_set(from), refusals)
}

/// Returns the pods that a Job lacks because the API server refuses them, and a note that says so.
pub fn of_job(from: &Job, refusals: &Refusals) -> Option<(RefusedPods, String)> {
    by_event("Job", &from.metadata, lacking_of_job(from), refusals)
}

/// Returns how many pods a StatefulSet lacks.
pub fn lacking_of_stateful_set(from: &StatefulSet) -> u64 {
    let is_ending = from.metadata.deletion_timestamp.is_some();
    if is_ending { 0 } else { lacking(&workloads::stateful_set(from)) }
}

/// Returns how many pods a Job lacks.
pub fn lacking_of_job(from: &Job) -> u64 {
    let job = workloads::job(from);
    job.wanted.saturating_sub(job.current)
}

/// Returns how many of all its pods a controller lacks.
fn lacking(workload: &Workload) -> u64 {
    workload.total.saturating_sub(workload.current)
}

fn by_condition(
    kind: &str,
    meta: &ObjectMeta,
    lacking: u64,
    stopped: &Stopped,
) -> Option<(RefusedPods, String)> {
    match stopped {
        Stopped::Refused(_) => refused(kind, meta, lacking, &stopped.to_string()),
        Stopped::BeingDeleted => None,
    }
}

fn by_event(
    kind: &str,
    meta: &ObjectMeta,
    lacking: u64,
    refusals: &Refusals,
) -> Option<(RefusedPods, String)> {
    let (_, message) = refusals.0.get(meta.uid.as_ref()?)?;
    refused(kind, meta, lacking, &refusal(FAILED_CREATE, message))
}

fn refused(kind: &str, meta: &ObjectMeta, lacking: u64, why: &str) -> Option<(RefusedPods, String)> {
    let pods = usize::try_from(lacking).ok().filter(|pods| *pods > 0)?;
    let namespace = meta.namespace.clone().unwrap_or_default();
    let object = object_name(kind, Some(&namespace), meta.name.as_deref());
    let note = format!("{object}: {why}");
    Some((RefusedPods { object, namespace, pods }, note))
}
