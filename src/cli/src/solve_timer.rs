//! Limits and measures the time of a solve.

use std::time::Duration;

use poolwright_controller::clock::Clock;
use poolwright_report::Times;
use poolwright_solver::{Solution, StopSignal};

/// Stops the solver when its time is over, and measures when it found its first plan.
pub struct SolveTimer<'c> {
    clock: &'c dyn Clock,
    start: Duration,
    /// `None` if there is no limit.
    limit: Option<Duration>,
    first: Option<Duration>,
}

impl<'c> SolveTimer<'c> {
    /// Starts a timer. A twentieth of `limit` is kept for the independent check and the baselines, which follow the solver.
    /// Without a limit, the solver stops by itself, at its work limit at the latest.
    pub fn new(clock: &'c dyn Clock, limit: Option<Duration>) -> Self {
        let limit = limit.map(|limit| limit.saturating_sub(limit / 20));
        Self { clock, start: clock.monotonic(), limit, first: None }
    }

    /// Returns the duration of the solve, and the time until its first plan.
    pub fn times(&self) -> Times {
        let elapsed = self.elapsed();
        Times { elapsed, first: self.first.unwrap_or(elapsed) }
    }

    fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.start)
    }
}

impl StopSignal for SolveTimer<'_> {
    fn should_stop(&mut self) -> bool {
        self.limit.is_some_and(|limit| self.elapsed() >= limit)
    }

    fn improved(&mut self, _plan: &Solution) {
        if self.first.is_none() {
            self.first = Some(self.elapsed());
        }
    }
}
