//! Pools restore the room that they keep free.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_catalog::ResourceList;
use poolwright_core::{Buffer, Pod, PodKey, PodSpec, Pool, PoolName, Toleration, TolerationMatch};
use poolwright_terms::ConditionType;
use poolwright_terms::keys::NODEPOOL_LABEL;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str = "the room that a pool keeps free is there, or a node for it comes, six minutes after the last pod that waited and without any failure, if such a node can be bought";

/// Plans are made every minute, and a first leader must be elected.
const WITHIN: Duration = Duration::from_mins(6);

/// Since when each pool lacks room, by pool.
pub(super) type Seen = BTreeMap<PoolName, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.buffers);
    let all = scene.cluster.view();
    let with_buffer = || all.pools.values().filter(|pool| !pool.buffer.is_empty());
    // Pods come first: while one waits, buffers may lack room.
    if with_buffer().next().is_none() || offers::waiting(scene).next().is_some() {
        return None;
    }
    let calm = scene.last_failure().max(scene.calendars_set.iter().copied().max()).unwrap_or_default();
    for (pool, buffer) in with_buffer().flat_map(|pool| pool.buffer.iter().map(move |buffer| (pool, buffer)))
    {
        let wanted = buffer.wanted(&pool.name, &all.arrivals, scene.cluster.time.now());
        let there = room(scene, pool, &buffer.requests);
        if there >= wanted || !offers::can_be_had(scene, &unit(pool, buffer)) {
            continue;
        }
        let since = before.get(&pool.name).copied().unwrap_or(scene.now);
        if scene.now.saturating_sub(since.max(calm)) > WITHIN {
            return Some(format!(
                "pool {} has room for {there} units of its buffer since {since:?}, and wants {wanted}",
                pool.name
            ));
        }
        memory.buffers.insert(pool.name.clone(), since);
    }
    None
}

/// Returns for how many units there is room on the nodes of a pool that stay, and on those that come.
fn room(scene: &Scene<'_>, pool: &Pool, unit: &ResourceList) -> u64 {
    let of_pool = |claim: &&NodeClaim| {
        Scene::pool_of(claim) == Some(&pool.name.0) && claim.metadata.deletion_timestamp.is_none()
    };
    let rooms = scene.cluster.claims.values().filter(of_pool).filter_map(|claim| free(scene, claim));
    rooms.map(|free| offers::count(unit, &free)).fold(0, u64::saturating_add)
}

/// Returns what is free on the node of a claim; all that is promised, if it is not open yet.
fn free(scene: &Scene<'_>, claim: &NodeClaim) -> Option<ResourceList> {
    let claim = poolwright_intake::node_claim(claim).ok()?;
    if claim.since(ConditionType::Initialized).is_none() {
        return Some(claim.current_offering().allocatable.clone());
    }
    let all = scene.cluster.view();
    let node = all.nodes.get(&claim.name.0)?;
    let mut free = node.allocatable.clone();
    if let Some(here) = all.pods.on_node(&node.name) {
        free.saturating_sub(&here.requests);
    }
    Some(free)
}

/// Returns a pod of the size of one unit, for any node of its pool.
fn unit(pool: &Pool, buffer: &Buffer) -> Pod {
    let anything = Toleration { key: None, matches: TolerationMatch::Exists, effect: None };
    let spec = PodSpec {
        requests: buffer.requests.clone(),
        node_selector: [(NODEPOOL_LABEL.to_owned(), pool.name.0.clone())].into(),
        tolerations: vec![anything],
        ..PodSpec::default()
    };
    Pod::waiting(PodKey::Buffer { pool: pool.name.clone(), entry: 0, ordinal: 0 }, spec)
}
