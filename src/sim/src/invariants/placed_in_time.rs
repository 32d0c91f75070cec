//! No pod waits for long if a node for it can be bought.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str =
    "a pod for which a node can be had does not wait for longer than 35 minutes without trouble";

/// An offering that failed is held back for up to ten minutes here, by a calendar that may be ten minutes wrong for five; an order
/// that is never answered takes two, a node four until it is open, the scheduler half a minute. Trouble is an order that finds no
/// stock, an instance with a flaw, and whatever happens to a whole controller: from each of them it is counted anew.
const PLACED_WITHIN: Duration = Duration::from_mins(35);

/// Since when pods wait for which a node could be had all the time, by UID.
pub(super) type Seen = BTreeMap<String, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.waiting);
    for pod in offers::waiting(scene) {
        // Rules about other pods, and pods that go together, are beyond this second opinion.
        let alone = pod.group.is_none() && pod.spec.spreads.is_empty() && pod.spec.affinity.is_empty();
        if !alone || !offers::can_be_had(scene, pod) {
            continue;
        }
        let since = before.get(&pod.uid.0).copied().unwrap_or(scene.now);
        if scene.now.saturating_sub(since.max(scene.troubled)) > PLACED_WITHIN {
            return Some(format!(
                "{} waits since {since:?}, the last trouble was at {:?}",
                pod.key, scene.troubled
            ));
        }
        memory.waiting.insert(pod.uid.0.clone(), since);
    }
    None
}
