//! Room that pools keep free: units of it are demand, as pods that nobody has made, of the least priority.
//!
//! They use free room first and buy what is missing. As long as a pod waits for a new node they are left out: the pod takes what is
//! free, and the plan after it makes the room anew. Which nodes are kept for them is decided by
//! [`crate::lifecycle`]; nothing about it is recorded.

use std::sync::Arc;

use jiff::Timestamp;
use poolwright_terms::keys::NODEPOOL_LABEL;

use crate::demand::wanting::Wanting;
use crate::model::PlanOptions;
use crate::model::plan::Plan;
use crate::model::{Pod, PodKey, PodPhase, PodSpec, Pool, Snapshot, Toleration, TolerationMatch, Uid};

/// Whether any pool wants such room, now or later.
pub(crate) fn is_used(snapshot: &Snapshot) -> bool {
    snapshot.pools.values().any(|pool| wants(pool))
}

/// Whether a pool may want it.
pub(crate) fn wants(pool: &Pool) -> bool {
    !pool.buffer.is_empty() && !pool.deleting && pool.problem.is_none()
}

/// Puts the units that are wanted now into the snapshot, as pods.
pub(crate) fn add(snapshot: &mut Snapshot, now: Timestamp, options: &PlanOptions) {
    let pools: Vec<Arc<Pool>> = snapshot.pools.values().filter(|pool| wants(pool)).cloned().collect();
    for pool in pools {
        for (entry, buffer) in (0..).zip(&pool.buffer) {
            for ordinal in 0..buffer.wanted(now) {
                let key = PodKey::Buffer { pool: pool.name.clone(), entry, ordinal: ordinal.into() };
                let spec = PodSpec {
                    requests: buffer.requests.clone(),
                    node_selector: [(NODEPOOL_LABEL.to_owned(), pool.name.0.clone())].into(),
                    tolerations: vec![Toleration {
                        key: None,
                        matches: TolerationMatch::Exists,
                        effect: None,
                    }],
                    ..PodSpec::default()
                };
                let pod = Pod {
                    uid: Uid(format!("buffer:{key}")),
                    priority: options.min_priority.unwrap_or(i32::MIN),
                    scheduler: options.schedulers.first().cloned().unwrap_or_default(),
                    phase: PodPhase::Unschedulable { since: now, message: String::new() },
                    created: now,
                    ..Pod::waiting(key.clone(), spec)
                };
                snapshot.pods.insert(key, Arc::new(pod));
            }
        }
    }
}

/// Leaves units out where a pod that is there needs a new place: it comes first. A plan from files is for all at once.
pub(crate) fn give_way(open: &mut Vec<Wanting<'_>>, options: &PlanOptions) {
    let is_there = |want: &Wanting<'_>| want.pod.key.existing().is_some();
    if !options.include_waiting && open.iter().any(is_there) {
        open.retain(|want| !want.pod.key.is_buffer());
    }
}

/// How much of a node is bought for such room, in words.
pub(crate) fn in_words(pods: &[PodKey]) -> Option<String> {
    let units = pods.iter().filter(|key| key.is_buffer()).count();
    let verb = if units == 1 { "is" } else { "are" };
    (units > 0).then(|| format!("{units} of these {verb} room that its pool keeps free"))
}

/// Takes units out of what claims list: the room is anybody's.
pub(crate) fn forget(plan: &mut Plan) {
    for claim in &mut plan.claims {
        claim.planned_pods.retain(|key| !key.is_buffer());
    }
}
