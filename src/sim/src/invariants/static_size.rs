//! A static pool has as many nodes as it says.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_core::PoolName;

use super::{Memory, Scene};

pub(super) const RULE: &str = "a pool with replicas has that many claims within 20 minutes without trouble";

/// A launch without an answer takes two minutes, and a node that never joins is replaced after five.
const WITHIN: Duration = Duration::from_mins(20);

/// Since when each static pool has another number of claims than it says, by pool.
pub(super) type Seen = BTreeMap<PoolName, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.sizes);
    for pool in scene.cluster.view().pools.values() {
        let Some(replicas) = pool.replicas else { continue };
        let stay = |name: &&String| {
            let claim = &scene.cluster.claims[*name];
            Scene::pool_of(claim) == Some(&pool.name.0) && claim.metadata.deletion_timestamp.is_none()
        };
        let there = scene.cluster.claims.keys().filter(stay).count() as u64;
        if there == replicas {
            continue;
        }
        let since = before.get(&pool.name).copied().unwrap_or(scene.now);
        if scene.now.saturating_sub(since.max(scene.troubled)) > WITHIN {
            return Some(format!(
                "pool {} has {there} claims since {since:?}, and says {replicas}",
                pool.name
            ));
        }
        memory.sizes.insert(pool.name.clone(), since);
    }
    None
}
