//! No instance is terminated with attached volumes that no pod uses any more: elsewhere, their pods would wait for minutes.

use std::collections::BTreeSet;
use std::time::Duration;

use poolwright_provider_contract::InstanceState;
use poolwright_terms::Reason;

use super::departures::is_due;
use super::{Memory, Scene};

pub(super) const RULE: &str = "no instance is terminated while a volume that its pods have left is attached, unless that takes too long";

/// A controller may not have seen an attachment that came this recently.
const AS_OLD: Duration = Duration::from_mins(5);

/// The keys of the terminating instances checked so far.
pub(super) type Seen = BTreeSet<String>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    for (key, machine) in scene.machines {
        let node = &machine.instance.claim;
        if machine.instance.state != InstanceState::Terminating || !memory.volumes.insert(key.clone()) {
            continue;
        }
        let dies = machine.dies.is_some_and(|dies| dies <= scene.now + Duration::from_millis(1));
        let claim = scene.cluster.claims.get(node);
        let excused = claim.is_none_or(|claim| {
            let mut conditions = claim.status.iter().flat_map(|status| &status.conditions);
            let too_long = conditions.any(|one| one.reason == Reason::NotDetachedInTime.as_str());
            too_long || is_due(claim, scene.cluster.time.now())
        });
        let known = |since: Duration| scene.now.saturating_sub(since) > AS_OLD;
        let mut left = scene.cluster.left_volumes(node).filter(|(_, since)| known(*since));
        if let Some((job, _)) = left.next().filter(|_| !dies && !excused) {
            return Some(format!("{node} is terminated while the volume of {job} is attached to it"));
        }
    }
    None
}
