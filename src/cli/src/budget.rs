//! The time a solve may take, and when its first plan was there.

use std::time::Duration;

use poolwright_controller::clock::Clock;
use poolwright_report::Times;
use poolwright_solver::{Solution, StopSignal};

/// Stops the solver when its time is up.
pub struct Budget<'c> {
    clock: &'c dyn Clock,
    start: Duration,
    /// None: it may take as long as it takes.
    limit: Option<Duration>,
    first: Option<Duration>,
}

impl<'c> Budget<'c> {
    /// From now on, for a plan that is to be there after `limit`: a twentieth is kept for what comes after the solver (the
    /// independent check, the baselines). Without a limit the solver stops by itself, at its work limit at the latest.
    pub fn new(clock: &'c dyn Clock, limit: Option<Duration>) -> Self {
        let limit = limit.map(|limit| limit.saturating_sub(limit / 20));
        Self { clock, start: clock.monotonic(), limit, first: None }
    }

    /// How long it has been.
    pub fn times(&self) -> Times {
        let elapsed = self.elapsed();
        Times { elapsed, first: self.first.unwrap_or(elapsed) }
    }

    fn elapsed(&self) -> Duration {
        self.clock.monotonic().saturating_sub(self.start)
    }
}

impl StopSignal for Budget<'_> {
    fn should_stop(&mut self) -> bool {
        self.limit.is_some_and(|limit| self.elapsed() >= limit)
    }

    fn improved(&mut self, _plan: &Solution) {
        if self.first.is_none() {
            self.first = Some(self.elapsed());
        }
    }
}
