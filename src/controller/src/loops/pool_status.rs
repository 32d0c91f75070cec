//! Writes the sums of each pool to its status when they change, and sets the gauges that show the cluster. The executor
//! writes the conditions.

use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use poolwright_api::NodePool;
use poolwright_core::{Claim, PoolName, Snapshot};
use poolwright_intake::allocatable_amounts;
use poolwright_report::{PoolSums, WaitingPods};
use poolwright_terms::ConditionType;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::acts::executor::Executor;
use crate::acts::executor::status::{Changed, change_status};
use crate::edge::metrics::Metrics;
use crate::sees::ready::Ready;
use crate::sees::world::World;

/// Sums are written this often at most.
const PAUSE: Duration = Duration::from_secs(1);

/// The stage of a claim, as metrics name it.
fn stage(claim: &Claim) -> &'static str {
    if claim.deleting_since.is_some() {
        "terminating"
    } else if claim.since(ConditionType::Initialized).is_some() {
        "initialized"
    } else if claim.since(ConditionType::Registered).is_some() {
        "registered"
    } else if claim.launched.is_some() {
        "launched"
    } else {
        "pending"
    }
}

/// Gauges that show the cluster as it stands.
pub fn measure(snapshot: &Snapshot, metrics: &Metrics) {
    metrics.claims.reset();
    metrics.pool_cost.reset();
    metrics.pool_planned_cost.reset();
    for claim in snapshot.claims.values() {
        metrics.claims.with_label_values(&[claim.pool.0.as_str(), stage(claim)]).inc();
    }
    for pool in snapshot.pools.keys() {
        let sums = PoolSums::of(pool, snapshot);
        metrics.pool_cost.with_label_values(&[pool.0.as_str()]).set(sums.cost.usd_per_hour.as_f64());
        metrics.pool_planned_cost.with_label_values(&[pool.0.as_str()]).set(sums.planned.usd_per_hour.as_f64());
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    metrics.offerings_held_back.set(count(snapshot.held_back.len()));
    metrics.offerings_taken_back.set(count(snapshot.taken_back.len()));
    let waiting = WaitingPods::of(snapshot);
    for (phase, pods) in
        [("unschedulable", waiting.unschedulable), ("waiting", waiting.waiting), ("gated", waiting.gated)]
    {
        metrics.pods_waiting.with_label_values(&[phase]).set(count(pods));
    }
}

/// Keeps gauges up to date, and, while we lead, the sums in the status of pools.
pub async fn keep(executor: Arc<Executor>, world: Arc<World>, ready: Ready, shutdown: CancellationToken) {
    ready.wait().await;
    let api: Api<NodePool> = Api::all(executor.client.clone());
    let mut changes = world.changes();
    loop {
        changes.mark_seen();
        let snapshot = world.snapshot();
        measure(&snapshot, &executor.metrics);
        if executor.writer.claims().current().is_some() {
            for pool in snapshot.pools.keys() {
                write(&executor, &api, pool, &PoolSums::of(pool, &snapshot)).await;
            }
        }
        drop(snapshot);
        if !executor.wait_for_change(&mut changes, PAUSE, &shutdown).await {
            return;
        }
    }
}

async fn write(executor: &Executor, api: &Api<NodePool>, pool: &PoolName, sums: &PoolSums) {
    let resources = allocatable_amounts(&sums.resources);
    let (cost, planned) = (sums.cost.to_string(), sums.planned.to_string());
    let changed = change_status(api, &executor.writer, &pool.0, None, |object| {
        let status = object.status.get_or_insert_default();
        let before = status.clone();
        status.nodes = Some(sums.nodes);
        status.resources.clone_from(&resources);
        status.usd_per_hour = Some(cost.clone());
        status.planned_usd_per_hour = Some(planned.clone());
        *status != before
    });
    if let Changed::Not(outcome) = changed.await {
        debug!(pool = %pool, ?outcome, "the status was not written; it is when something changes next");
    }
}
