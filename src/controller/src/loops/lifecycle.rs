//! The lifecycle loop: after each change, asks core's `lifecycle` for actions on claims, nodes and instances.

use std::sync::Arc;
use std::time::Duration;

use poolwright_core::lifecycle::{PlacementMode, decide};
use tracing::trace;

use super::deadlines::MonotonicDeadlines;
use super::leader_loop::LeaderLoop;
use crate::edge::signal::Receiver;
use crate::executor::Executor;
use crate::executor::context::Context;
use crate::leader::LeaderTerm;

/// The time until the next look without a change or timer.
const IDLE: Duration = Duration::from_mins(1);

/// The lifecycle loop.
pub struct Lifecycle {
    placement: PlacementMode,
    context: Context,
    executor: Arc<Executor>,
    deadlines: MonotonicDeadlines,
}

impl Lifecycle {
    /// Creates a loop that directs pods to their nodes in the given way.
    pub fn new(placement: PlacementMode, context: Context, executor: Arc<Executor>) -> Self {
        Self { placement, context, executor, deadlines: MonotonicDeadlines::default() }
    }
}

impl LeaderLoop for Lifecycle {
    const NAME: &'static str = "the lifecycle";
    const DEBOUNCE: Duration = Duration::from_millis(100);

    fn changes(&self) -> Receiver<()> {
        self.context.world.changes()
    }

    fn begin(&mut self, _: LeaderTerm) {
        self.deadlines = MonotonicDeadlines::default();
    }

    async fn look(&mut self) -> Option<Duration> {
        self.executor.unrecorded().all_recorded().await;
        self.context.world.expire_setbacks();
        let now = self.context.clock.moment();
        let mut snapshot = self.context.world.snapshot();
        self.deadlines.hold(&mut snapshot, now);
        let decision = decide(&snapshot, now.wall, self.placement);
        let took = self.context.clock.monotonic().saturating_sub(now.monotonic);
        self.context.metrics.decision_duration.observe(took.as_secs_f64());
        trace!(actions = decision.actions.len(), "decided");
        self.executor.submit(decision.actions, &snapshot);
        let timer =
            decision.wake_at.map(|at| Duration::try_from(at.duration_since(now.wall)).unwrap_or_default());
        let retry = self.executor.next_retry().map(|at| at.saturating_sub(now.monotonic));
        let next = [timer, retry, Some(IDLE)].into_iter().flatten().min();
        next.map(|next| next.max(Self::DEBOUNCE))
    }
}
