//! A cloud that seems to have lost most instances is doubted: until it shows them, nothing is launched or terminated there.

use std::time::Duration;

use poolwright_terms::ConditionType;

use super::{Memory, Scene};

pub(super) const RULE: &str =
    "while a cloud shows another account, without most of the instances, nothing is launched or terminated";

/// A controller without other troubles lists the instances twice within this time, looks each of them up, and ends its older calls.
const NOTICED_WITHIN: Duration = Duration::from_mins(2);
/// The fewest hidden instances that a controller must notice. One or two may have been terminated by somebody.
const FEWEST: usize = 3;

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when most instances are hidden.
    since: Option<Duration>,
    /// The number of calls checked so far.
    judged: usize,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let Seen { since, judged } = &mut memory.doubts;
    let calls = scene.cluster.cloud.blind_calls(*judged);
    *judged += calls.len();
    let started = scene.started.iter().copied().max().unwrap_or_default();
    let from = since.map(|since| since.max(scene.disturbed).max(started) + NOTICED_WITHIN);
    let is_doubted = from.is_some_and(|from| scene.now >= from);
    *since = if hides_most(scene, is_doubted) { since.or(Some(scene.now)) } else { None };
    let from = from?;
    let (at, what) = calls.into_iter().find(|(at, _)| *at >= from)?;
    Some(format!("{what} comes at {at:?}, and at {from:?} most instances had been hidden for two minutes"))
}

/// Returns whether the cloud hides most instances. As in the controller, one must have a ready node. While it must doubt the cloud,
/// instances that it terminates count until their nodes are not ready.
fn hides_most(scene: &Scene<'_>, is_doubted: bool) -> bool {
    if scene.now >= scene.cluster.cloud.blind_until() {
        return false;
    }
    let (mut hidden, mut known, mut any_ready) = (0, 0, false);
    for claim in scene.cluster.claims.values() {
        let Ok(claim) = poolwright_intake::node_claim(claim) else { continue };
        let node = claim.node_name.as_ref().map(|name| scene.cluster.view().nodes.get(name));
        let is_ready = node.flatten().is_some_and(|node| node.ready);
        let is_terminated = claim.since(ConditionType::InstanceTerminating).is_some();
        if claim.launched.is_none() || is_terminated && !(is_doubted && is_ready) {
            continue;
        }
        known += 1;
        let seems_well = is_ready || node.is_none();
        let is_old = scene.machines.iter().any(|(key, machine)| {
            *key == claim.uid.0 && scene.now.saturating_sub(machine.launched) > NOTICED_WITHIN
        });
        hidden += usize::from(seems_well && is_old);
        any_ready |= is_ready && is_old;
    }
    hidden >= FEWEST && hidden * 2 > known && any_ready
}
