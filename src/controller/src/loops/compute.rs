//! Runs the computation of plans outside the async threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use poolwright_core::Snapshot;
use poolwright_core::plan::{Plan, PlanOptions};
use poolwright_solver::StopSignal;
use tokio::sync::oneshot;

use crate::edge::clock::SharedClock;

/// Runs a computation outside the async threads. A simulator in virtual time runs it inline, because the virtual clock would not
/// wait for another thread.
pub type Spawner = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// Makes a plan, as [`poolwright_core::plan::plan()`] does. A simulator adds a bug.
pub type PlanFunction =
    Arc<dyn Fn(&Snapshot, Timestamp, &PlanOptions, &mut dyn StopSignal) -> Plan + Send + Sync>;

/// Returns a [`Spawner`] that uses tokio's threads for blocking work.
pub fn blocking_threads() -> Spawner {
    Arc::new(|work| {
        tokio::task::spawn_blocking(work);
    })
}

/// Computes plans with a time limit.
#[derive(Clone)]
pub struct Compute {
    /// The threads.
    pub spawner: Spawner,
    /// The clock.
    pub clock: SharedClock,
    /// What makes plans.
    pub plan: PlanFunction,
}

impl Compute {
    /// Runs a computation. The solver is asked to stop after `limit`. Returns `None` if the computation panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        limit: Duration,
        work: impl FnOnce(&mut dyn StopSignal) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let stop = Arc::new(AtomicBool::new(false));
        // If the caller stops waiting (leadership lost, shutdown), this is dropped, and the solver stops.
        let _stop_on_drop = StopOnDrop(stop.clone());
        let deadline = self.clock.monotonic().saturating_add(limit);
        let mut limit = TimeLimit { deadline, half: limit / 2, clock: self.clock.clone(), stop };
        (self.spawner)(Box::new(move || {
            // If nobody waits any more, the result is dropped.
            let _ = sender.send(work(&mut limit));
        }));
        receiver.await.ok()
    }
}

struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct TimeLimit {
    clock: SharedClock,
    deadline: Duration,
    /// The length of its second half.
    half: Duration,
    stop: Arc<AtomicBool>,
}

impl StopSignal for TimeLimit {
    fn should_stop(&mut self) -> bool {
        self.is_abandoned() || self.clock.monotonic() >= self.deadline
    }

    fn is_half_over(&mut self) -> bool {
        self.is_abandoned() || self.clock.monotonic() >= self.deadline.saturating_sub(self.half)
    }

    fn is_abandoned(&mut self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::clock::Clock;
    use crate::edge::clock::testing::TestClock;

    #[test]
    fn the_solver_stops_at_its_limit_and_when_nothing_waits_for_it() {
        let clock = Arc::new(TestClock::new());
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = clock.monotonic() + Duration::from_secs(10);
        let half = Duration::from_secs(5);
        let mut limit = TimeLimit { clock: clock.clone(), deadline, half, stop: stop.clone() };
        assert!(!limit.should_stop() && !limit.is_abandoned());
        drop(StopOnDrop(stop));
        assert!(limit.should_stop() && limit.is_half_over() && limit.is_abandoned());
        let mut limit = TimeLimit { clock: clock.clone(), deadline, half, stop: Arc::default() };
        assert!(!limit.is_half_over());
        clock.advance(half);
        assert!(limit.is_half_over() && !limit.should_stop());
        clock.advance(half);
        assert!(limit.should_stop() && !limit.is_abandoned(), "somebody waits for what there is");
    }
}
