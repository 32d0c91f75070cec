//! The caller's hold on a running solve: it asks for the end, and hears how far the solve has come. The clock lives with
//! the caller.

use poolwright_catalog::UsdPerHour;

use crate::solution::Solution;

/// The caller's answer to "must I stop?", asked between units of work.
pub trait StopSignal {
    /// Asked at least every few milliseconds. `true` makes the solver return its best plan.
    fn should_stop(&mut self) -> bool;
    /// Told of every better feasible plan.
    fn improved(&mut self, _plan: &Solution) {}
    /// Told when the objective falls, when the bound rises, and after every round of pricing.
    fn progress(&mut self, _progress: &Progress) {}
    /// Told of work units as they are spent.
    fn spent(&mut self, _units: u64) {}
}

/// How far a solve has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Objective of the best plan so far.
    pub objective: UsdPerHour,
    /// The certified bound so far.
    pub bound: UsdPerHour,
    /// Rounds of pricing so far, over all stages and dives.
    pub rounds: u64,
    /// Pod classes after equal ones were merged.
    pub classes: usize,
    /// Kinds of nodes to buy after dominated ones were dropped.
    pub candidates: usize,
}

/// A [`StopSignal`] that never stops. The solve ends by convergence or by its work budget alone, so it is deterministic.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverStop;

impl StopSignal for NeverStop {
    fn should_stop(&mut self) -> bool {
        false
    }
}
