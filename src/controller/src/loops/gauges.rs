//! Gauges that show the cluster as it stands. Every replica keeps them, whether it leads or not.

use std::time::Duration;

use poolwright_core::{Claim, PodPhase, PodRole, Snapshot};
use poolwright_terms::ConditionType;

use super::leader_loop::LeaderLoop;
use super::pool_status::Sums;
use crate::acts::context::Context;
use crate::edge::metrics::Metrics;
use crate::edge::signal::Receiver;

/// Keeps the gauges.
pub struct Gauges {
    context: Context,
}

impl Gauges {
    /// A loop that keeps them.
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

fn measure(snapshot: &Snapshot, metrics: &Metrics) {
    metrics.claims.reset();
    metrics.pool_cost.reset();
    metrics.pool_planned_cost.reset();
    for claim in snapshot.claims.values() {
        metrics.claims.with_label_values(&[claim.pool.0.as_str(), stage(claim)]).inc();
    }
    for pool in snapshot.pools.keys() {
        let sums = Sums::of(pool, snapshot);
        metrics.pool_cost.with_label_values(&[pool.0.as_str()]).set(sums.cost.as_f64());
        metrics.pool_planned_cost.with_label_values(&[pool.0.as_str()]).set(sums.planned.as_f64());
    }
    let count = |remembered: usize| i64::try_from(remembered).unwrap_or(i64::MAX);
    metrics.offerings_held_back.set(count(snapshot.held_back.len()));
    metrics.offerings_taken_back.set(count(snapshot.taken_back.len()));
    let mut waiting = [("unschedulable", 0), ("waiting", 0), ("gated", 0)];
    for pod in snapshot.pods.unbound().filter(|pod| pod.role == PodRole::Workload) {
        match pod.phase {
            PodPhase::Unschedulable { .. } => waiting[0].1 += 1,
            PodPhase::Waiting => waiting[1].1 += 1,
            PodPhase::Gated => waiting[2].1 += 1,
            PodPhase::Bound { .. } | PodPhase::Finished => {}
        }
    }
    for (state, count) in waiting {
        metrics.pods_waiting.with_label_values(&[state]).set(count);
    }
}
