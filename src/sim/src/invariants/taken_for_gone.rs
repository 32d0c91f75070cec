//! No claim is given up because a listing lacks its instance.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::Method;
use poolwright_provider_contract::InstanceState;
use poolwright_terms::Reason;
use serde_json::Value;

use super::{Memory, Scene};
use crate::cloud::Machine;

pub(super) const RULE: &str = "no claim is deleted because its instance is gone while that instance runs";

/// The time until the event that explains a deletion is there.
const TOLD_WITHIN: Duration = Duration::from_mins(1);
/// The largest age of a controller's knowledge. Watches stall, and a clock is wrong for up to five minutes.
const AS_OLD: Duration = Duration::from_mins(10);

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// UIDs of the deleted claims seen so far.
    deleted: BTreeSet<String>,
    /// The claims whose instances ran when they were deleted: when, and their UIDs.
    unjudged: Vec<(Duration, String)>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let Seen { deleted, unjudged } = &mut memory.given_up;
    let lately = |at: &Duration| scene.now.saturating_sub(*at) <= AS_OLD;
    let is_excused = scene.was_blind_within(AS_OLD) || scene.calendars_set.iter().any(lately);
    for claim in scene.cluster.claims.values().filter(|claim| claim.metadata.deletion_timestamp.is_some()) {
        let Some(uid) = claim.metadata.uid.as_ref().filter(|uid| !deleted.contains(*uid)) else { continue };
        deleted.insert(uid.clone());
        let runs =
            |(key, one): &(String, Machine)| key == uid && one.instance.state == InstanceState::Running;
        if !is_excused && scene.machines.iter().any(runs) {
            unjudged.push((scene.now, uid.clone()));
        }
    }
    let due = unjudged.partition_point(|(at, _)| *at + TOLD_WITHIN <= scene.now);
    let due: Vec<String> = unjudged.drain(..due).map(|(_, uid)| uid).collect();
    if due.is_empty() {
        return None;
    }
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", crate::cluster::NAMESPACE);
    let (_, list) = scene.cluster.server.ask(&Method::GET, &path, "", &Value::Null);
    let is_wrong = |event: &&Value| {
        let uid = event["regarding"]["uid"].as_str().unwrap_or_default();
        event["reason"] == Reason::InstanceGone.as_str() && due.iter().any(|one| one == uid)
    };
    let wrong = list["items"].as_array().into_iter().flatten().find(is_wrong)?;
    Some(format!("claim {} was deleted, and its instance ran: {}", wrong["regarding"]["name"], wrong["note"]))
}
