//! A claim is deleted only after its instance is gone: one that is still terminating may yet fail to terminate.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{Memory, Scene};

pub(super) const RULE: &str = "no claim is gone while its instance is there";

/// A launch call may still run when its claim ends. Its instance has no claim and is reaped.
const ON_ITS_WAY: Duration = Duration::from_secs(10);

/// While the controller sees another account, the cloud says that all its instances are gone. The claim may end this much later.
const BLIND: Duration = Duration::from_mins(5);

/// UIDs of the claims at the last check.
pub(super) type Seen = BTreeSet<String>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let there: Seen = scene.cluster.claims.values().filter_map(|claim| claim.metadata.uid.clone()).collect();
    let before = std::mem::replace(&mut memory.claims, there);
    if scene.was_blind_within(BLIND) {
        return None;
    }
    let gone = |key: &String| before.contains(key) && !memory.claims.contains(key);
    let found = scene
        .machines
        .iter()
        .find(|(key, machine)| gone(key) && scene.now.saturating_sub(machine.launched) > ON_ITS_WAY)?;
    let instance = &found.1.instance;
    Some(format!("claim {} is gone, and {} is {:?}", instance.claim, instance.provider_id, instance.state))
}
