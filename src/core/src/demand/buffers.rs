//! Buffers as a demand source: each unit of capacity that a pool keeps free is planned like a pod of the lowest priority.
//!
//! Units use free capacity first, and nodes are bought for the rest. While a pod needs a new node, units are left out, so that
//! the pod takes the free capacity. The next plan restores the buffer. [`crate::lifecycle`] decides which nodes are kept for
//! buffers. No claim lists a unit.

use std::sync::Arc;

use jiff::Timestamp;

use crate::demand::forecast::{ForecastBuilder, ForecastInput, ForecastOptions};
use crate::demand::replicas::LOOK_AGAIN;
use crate::demand::source::{DemandSource, Mentions};
use crate::model::{Pod, PodKey, PodPhase, PodSpec, Pool, Snapshot, Toleration, TolerationMatch, Uid};
use poolwright_terms::keys::NODEPOOL_LABEL;

pub(super) struct Buffers;

impl DemandSource for Buffers {
    fn name(&self) -> &'static str {
        "buffers of pools"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        let mut pools = known.snapshot.pools.values().filter(|pool| wants_buffer(pool)).peekable();
        pools.peek()?;
        for pool in pools {
            put_in(ahead.snapshot.to_mut(), pool, &known.outlook);
        }
        known.outlook.now.checked_add(LOOK_AGAIN).ok().or(Some(Timestamp::MAX))
    }

    fn mentions(&self) -> Mentions {
        Mentions::Nowhere
    }
}

/// Returns whether any usable pool has a buffer, whether or not its schedule applies now.
pub(crate) fn is_used(snapshot: &Snapshot) -> bool {
    snapshot.pools.values().any(|pool| wants_buffer(pool))
}

/// Returns whether a pool has a buffer and is neither being deleted nor invalid.
pub(crate) fn wants_buffer(pool: &Pool) -> bool {
    !pool.buffer.is_empty() && !pool.deleting && pool.problem.is_none()
}

/// Adds the buffer units that a pool wants now to the forecast.
fn put_in(snapshot: &mut Snapshot, pool: &Pool, outlook: &ForecastOptions<'_>) {
    let now = outlook.now;
    for (entry, buffer) in (0..).zip(&pool.buffer) {
        for ordinal in 0..buffer.wanted(&pool.name, &snapshot.arrivals, now) {
            let key = PodKey::Buffer { pool: pool.name.clone(), entry, ordinal };
            let spec = PodSpec {
                requests: buffer.requests.clone(),
                node_selector: [(NODEPOOL_LABEL.to_owned(), pool.name.0.clone())].into(),
                tolerations: vec![Toleration { key: None, matches: TolerationMatch::Exists, effect: None }],
                ..PodSpec::default()
            };
            let pod = Pod {
                uid: Uid(format!("buffer:{key}")),
                priority: outlook.lowest_priority,
                scheduler: outlook.scheduler.to_owned(),
                phase: PodPhase::Unschedulable { since: now, message: String::new() },
                created: now,
                ..Pod::waiting(key.clone(), spec)
            };
            snapshot.pods.insert(key, Arc::new(pod));
        }
    }
}
