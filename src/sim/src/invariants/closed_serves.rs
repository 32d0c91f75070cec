//! No pod waits only because a node is closed.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_core::Node;
use poolwright_terms::ConditionType;

use super::{Memory, Scene, offers, room_first};

pub(super) const RULE: &str = "no pod waits longer than 12 minutes without a fault of a controller while a retiring node has room for it";

/// A pod gets room on a retiring node after six minutes at the latest, when its own node is late, and plans are made every minute.
/// A watch may stall, and requests are repeated.
const SERVED_WITHIN: Duration = Duration::from_mins(12);

/// Since when each pod waits while a retiring node has room for it, by UID.
pub(super) type Seen = BTreeMap<String, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.kept_out);
    let closed: Vec<&Node> = closed(scene).collect();
    if closed.is_empty() {
        return None;
    }
    // A wrong calendar hides how long a pod has waited.
    let calm = scene.calendars_set.iter().copied().max().unwrap_or_default().max(scene.blown);
    // The pods of a gang wait for each other.
    let waiting = offers::waiting(scene).filter(|pod| pod.group.is_none() && offers::is_alone(pod));
    for pod in waiting {
        let Some(node) = closed.iter().find(|node| room_first::has_room(scene.cluster.view(), node, pod))
        else {
            continue;
        };
        let since = before.get(&pod.uid.0).copied().unwrap_or(scene.now);
        if scene.now.saturating_sub(since.max(calm)) > SERVED_WITHIN {
            return Some(format!(
                "{} waits since {since:?} at the earliest, and node {} has room and is closed",
                pod.key, node.name
            ));
        }
        memory.kept_out.insert(pod.uid.0.clone(), since);
    }
    None
}

/// Returns the retiring nodes that are closed to pods and stay.
fn closed<'s>(scene: &'s Scene<'_>) -> impl Iterator<Item = &'s Node> {
    let nodes = scene.cluster.view().nodes.values().map(AsRef::as_ref);
    nodes.filter(|node| {
        let claim = scene.cluster.claims.get(&node.name);
        let claim = claim.and_then(|claim| poolwright_intake::node_claim(claim).ok());
        claim.is_some_and(|claim| {
            claim.since(ConditionType::Retiring).is_some()
                && claim.since(ConditionType::Disrupting).is_none()
                && claim.deleting_since.is_none()
                && claim.interruption.is_none()
        }) && room_first::is_open(node)
    })
}
