//! The loop of the leader that keeps claims, nodes and instances going: whatever changes, decide and act.

use std::sync::Arc;
use std::time::Duration;

use poolwright_core::lifecycle::{Placement, decide};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::trace;

use crate::acts::executor::Executor;
use crate::edge::clock::SharedClock;
use crate::loops::deadlines::Anchors;
use crate::sees::ready::Ready;
use crate::sees::world::World;

/// Changes within this time are looked at together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Without any change or timer, how long until the next look.
const IDLE: Duration = Duration::from_mins(1);

/// The lifecycle loop.
pub struct Lifecycle {
    /// How pods come to the nodes they were planned for.
    pub placement: Placement,
    /// What is known.
    pub world: Arc<World>,
    /// Who acts.
    pub executor: Arc<Executor>,
    /// Time.
    pub clock: SharedClock,
    /// When the cluster is known.
    pub ready: Ready,
    /// Told to stop.
    pub shutdown: CancellationToken,
}

impl Lifecycle {
    /// Decides and acts while we lead, until told to stop.
    pub async fn run(self) {
        let claims = self.executor.writer.claims();
        claims.while_leading("the lifecycle", &self.shutdown, |_| self.lead()).await;
    }

    async fn lead(&self) {
        self.ready.wait().await;
        let mut changes = self.world.changes();
        let mut anchors = Anchors::default();
        loop {
            self.executor.rush.is_over().await;
            changes.mark_seen();
            self.world.forget_refusals();
            let now = self.clock.moment();
            let mut snapshot = self.world.snapshot();
            anchors.hold(&mut snapshot, now);
            let decision = decide(&snapshot, now.wall, self.placement);
            let took = self.clock.monotonic().saturating_sub(now.monotonic);
            self.executor.metrics.decision_duration.observe(took.as_secs_f64());
            trace!(actions = decision.actions.len(), "decided");
            self.executor.submit(decision.actions, &snapshot);
            drop(snapshot);
            let timer = decision
                .wake_at
                .map(|at| Duration::try_from(at.duration_since(now.wall)).unwrap_or_default());
            let retry = self.executor.next_retry().map(|at| at.saturating_sub(now.monotonic));
            let pause = [timer, retry, Some(IDLE)].into_iter().flatten().min().unwrap_or(IDLE);
            tokio::select! {
                biased;
                _ = changes.changed() => sleep(DEBOUNCE).await,
                () = sleep(pause.max(DEBOUNCE)) => {}
            }
        }
    }
}
