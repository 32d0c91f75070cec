//! No node is bought without pods for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_core::{Pod, PodKey, PodPhase, Pool, PoolName};
use poolwright_terms::keys;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str =
    "no node is bought without pods, for a gated pod, or for a pod that fits no offering";

/// UIDs of the claims checked so far.
pub(super) type Seen = BTreeSet<String>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    for (name, claim) in &scene.cluster.claims {
        if !claim.metadata.uid.as_ref().is_some_and(|uid| memory.bought.insert(uid.clone())) {
            continue;
        }
        let pool = claim.metadata.labels.as_ref().and_then(|labels| labels.get(keys::NODEPOOL_LABEL));
        let pools = &scene.cluster.view().pools;
        let keeps_room = pool.and_then(|pool| pools.get(&PoolName(pool.clone())));
        let no_room = |pool: &Arc<Pool>| pool.buffer.is_empty() && pool.replicas.is_none();
        if claim.spec.pods.is_empty() && keeps_room.is_some_and(no_room) {
            return Some(format!("claim {name} is bought for nobody, and its pool keeps no room free"));
        }
        for planned in &claim.spec.pods {
            let Ok(key) = planned.parse::<PodKey>() else { continue };
            let Some(pod) = scene.cluster.view().pods.get(&key) else { continue };
            if let Some(why) = in_vain(scene, pod) {
                return Some(format!("claim {name} is bought for {planned}, {why}"));
            }
        }
    }
    None
}

fn in_vain(scene: &Scene<'_>, pod: &Pod) -> Option<&'static str> {
    match pod.phase {
        PodPhase::Gated => Some("which is held by gates"),
        PodPhase::Waiting | PodPhase::Unschedulable { .. } if !offers::is_sold(scene, pod) => {
            Some("which nothing that is sold would take")
        }
        _ => None,
    }
}
