//! The loop that updates gauges of the cluster's state. It runs on every replica, whether it leads or not.

use std::time::Duration;

use poolwright_core::{Claim, Snapshot, Stage};
use poolwright_report::{PoolSums, WaitingPods};

use super::leader_loop::LeaderLoop;
use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;
use crate::executor::context::Context;

/// The loop that updates gauges.
pub struct Gauges {
    context: Context,
}

impl Gauges {
    /// Creates a loop that updates gauges.
    pub fn new(context: Context) -> Self {
        Self { context }
    }
}

impl LeaderLoop for Gauges {
    const NAME: &'static str = "gauges";
    const PAUSE: Duration = Duration::from_secs(1);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    async fn look(&mut self) -> Option<Duration> {
        measure(&self.context.world.snapshot(), &self.context.metrics);
        None
    }
}

/// Returns the stage of a claim, as metrics name it.
fn stage(claim: &Claim) -> &'static str {
    if claim.deleting_since.is_some() {
        return "terminating";
    }
    match claim.start_stage() {
        Stage::Pending => "pending",
        Stage::Launched => "launched",
        Stage::Registered => "registered",
        _ => "initialized",
    }
}

fn measure(snapshot: &Snapshot, metrics: &Metrics) {
    metrics.claims.reset();
    metrics.pool_cost.reset();
    metrics.pool_planned_cost.reset();
    for claim in snapshot.claims.values() {
        metrics.claims.with_label_values(&[claim.pool.0.as_str(), stage(claim)]).inc();
    }
    for pool in snapshot.pools.keys() {
        let sums = PoolSums::of(pool, snapshot);
        metrics.pool_cost.with_label_values(&[pool.0.as_str()]).set(sums.cost.usd_per_hour.as_f64());
        metrics
            .pool_planned_cost
            .with_label_values(&[pool.0.as_str()])
            .set(sums.planned.usd_per_hour.as_f64());
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    metrics.offerings_held_back.set(count(snapshot.held_back.len()));
    metrics.offerings_taken_back.set(count(snapshot.reclaims.len()));
    let waiting = WaitingPods::of(snapshot);
    for (phase, pods) in
        [("unschedulable", waiting.unschedulable), ("waiting", waiting.waiting), ("gated", waiting.gated)]
    {
        metrics.pods_waiting.with_label_values(&[phase]).set(count(pods));
    }
}
