//! No instance runs without a claim.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_provider_contract::InstanceState;

use super::{Memory, Scene};

pub(super) const RULE: &str = "an instance without a claim is gone within the reaping time";

/// Covers a minute of grace, a listing every half minute, a leader election and failing calls, with a wide margin. While the controller
/// sees another account, it cannot see the instance.
const REAPED_WITHIN: Duration = Duration::from_mins(15);

/// Since when each instance has no claim.
pub(super) type Seen = BTreeMap<String, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let claims: BTreeSet<&str> =
        scene.cluster.claims.values().filter_map(|claim| claim.metadata.uid.as_deref()).collect();
    let running = scene.machines.iter().filter(|(_, one)| one.instance.state == InstanceState::Running);
    let alone: BTreeSet<&String> =
        running.map(|(key, _)| key).filter(|key| !claims.contains(key.as_str())).collect();
    memory.leaks.retain(|key, _| alone.contains(key));
    for key in alone {
        let since = *memory.leaks.entry(key.clone()).or_insert(scene.now);
        if scene.now.saturating_sub(since.max(scene.cluster.cloud.blind_until())) > REAPED_WITHIN {
            let found = scene.machines.iter().find(|(known, _)| known == key)?;
            let instance = &found.1.instance;
            return Some(format!(
                "{} of claim {} runs without it since {since:?}",
                instance.provider_id, instance.claim
            ));
        }
    }
    None
}
