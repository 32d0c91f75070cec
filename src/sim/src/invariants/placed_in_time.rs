//! No pod waits for long if a node for it can be bought, and no gang if nodes for enough of its pods can be.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str =
    "no pod for which a node can be bought waits longer than 35 minutes without trouble";

/// A failed offering is held back for up to ten minutes here, by clocks that may be wrong by ten minutes for five. A launch call
/// without an answer takes two minutes, a node four until it opens, the scheduler half a minute. The time restarts after each
/// stock-out, faulty instance and fault of a whole controller.
const PLACED_WITHIN: Duration = Duration::from_mins(35);

/// Since when each pod waits although a node could be bought, by UID.
pub(super) type Seen = BTreeMap<String, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.waiting);
    for pod in offers::waiting(scene) {
        if !offers::is_alone(pod) || !offers::can_be_had(scene, pod) {
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
