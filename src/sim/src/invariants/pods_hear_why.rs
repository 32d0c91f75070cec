//! Every waiting pod has an event that reports what happens for it, or why nothing happens.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use axum::http::Method;
use serde_json::Value;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str =
    "a pod that waits longer than ten minutes without trouble has an event with the reason";

/// A new leader plans at once, and failed events are retried. A crashed controller is down for a minute, a partition lasts 90
/// seconds.
pub(crate) const TOLD_WITHIN: Duration = Duration::from_mins(10);

/// Since when each pod waits, by UID, and which pods have an event.
#[derive(Debug, Default)]
pub(super) struct Seen {
    since: BTreeMap<String, Duration>,
    told: BTreeSet<String>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let Seen { since, told } = &mut memory.told;
    let before = std::mem::take(since);
    for pod in offers::waiting(scene) {
        let uid = &pod.uid.0;
        let waits = before.get(uid).copied().unwrap_or(scene.now);
        since.insert(uid.clone(), waits);
        if scene.now.saturating_sub(waits.max(scene.troubled)) <= TOLD_WITHIN || told.contains(uid) {
            continue;
        }
        if !has_event(scene, uid) {
            return Some(format!(
                "{} waits since {waits:?}, and no event of Poolwright is about it",
                pod.key
            ));
        }
        told.insert(uid.clone());
    }
    None
}

fn has_event(scene: &Scene<'_>, uid: &str) -> bool {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", crate::cluster::NAMESPACE);
    let (_, list) = scene.cluster.server.ask(&Method::GET, &path, "", &Value::Null);
    let says = |event: &Value| {
        event["regarding"]["uid"] == uid && event["note"].as_str().is_some_and(|note| !note.is_empty())
    };
    list["items"].as_array().into_iter().flatten().any(says)
}
