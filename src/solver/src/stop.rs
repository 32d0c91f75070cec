//! The caller's control over a running solve: it can stop the solve, and it receives its progress. Only the caller has a clock.

use poolwright_catalog::UsdPerHour;

use crate::solution::Solution;

/// The caller's callbacks during a solve. The solver calls them between units of work.
pub trait StopSignal {
    /// Whether to stop. The solver asks at least every few milliseconds, and returns its best plan on `true`.
    fn should_stop(&mut self) -> bool;
    /// Hears of every better feasible plan.
    fn improved(&mut self, _plan: &Solution) {}
    /// Hears of a lower objective, a higher bound, and every round of pricing.
    fn progress(&mut self, _progress: &Progress) {}
    /// Hears of work units when the solver spends them.
    fn spent(&mut self, _units: u64) {}
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
