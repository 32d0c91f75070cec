//! The caller's control over a running solve: the caller can stop it and follow its progress. Only the caller has a
//! clock.

use poolwright_catalog::UsdPerHour;

use crate::solution::Solution;

/// The caller's callbacks during a solve. The solver calls them between units of work.
pub trait StopSignal {
    /// Returns whether to stop. The solver asks at least every few milliseconds, and returns its best plan on `true`.
    fn should_stop(&mut self) -> bool;
    /// Returns whether half of the time is over. The first of two steps stops then, so that the second has time.
    fn is_half_over(&mut self) -> bool {
        self.should_stop()
    }
    /// Returns whether nobody waits for the answer any more, in which case [`Self::should_stop`] is true as well. The solver then
    /// makes no first plan either and leaves out all pods, planning begins no further solve, and its answer may be of no use.
    fn is_abandoned(&mut self) -> bool {
        false
    }
    /// Receives every better feasible plan.
    fn improved(&mut self, _plan: &Solution) {}
    /// Receives the progress after each lower objective, each higher bound, and each round of pricing.
    fn progress(&mut self, _progress: &Progress) {}
    /// Receives the work units that the solver has just spent.
    fn spent(&mut self, _units: u64) {}
}

/// A [`StopSignal`] that stops when half of the time of another one is over, so that a second step has time.
pub struct FirstHalf<'a>(pub &'a mut dyn StopSignal);

impl StopSignal for FirstHalf<'_> {
    fn should_stop(&mut self) -> bool {
        self.0.is_half_over()
    }

    fn is_abandoned(&mut self) -> bool {
        self.0.is_abandoned()
    }

    fn improved(&mut self, plan: &Solution) {
        self.0.improved(plan);
    }

    fn progress(&mut self, progress: &Progress) {
        self.0.progress(progress);
    }

    fn spent(&mut self, units: u64) {
        self.0.spent(units);
    }
}

/// The progress of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The objective of the best plan so far.
    pub objective: UsdPerHour,
    /// The certified bound so far.
    pub bound: UsdPerHour,
    /// The number of pricing rounds so far, including those of dives.
    pub rounds: u64,
    /// The number of pod classes after merging equal ones.
    pub classes: usize,
    /// The number of candidates after dropping dominated ones.
    pub candidates: usize,
}

/// A [`StopSignal`] that never stops. Only convergence or the work budget ends the solve, so it is deterministic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverStop;

impl StopSignal for NeverStop {
    fn should_stop(&mut self) -> bool {
        false
    }
}
