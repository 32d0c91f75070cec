//! The options of a solve.

use crate::lp::{Backend, Seed};
use crate::stages::Stages;

/// The options of a solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The gap at which to stop: `(cost - bound) / bound`.
    pub gap_target: f64,
    /// Up to this many pods, the search goes on below `gap_target` to the optimum, for up to an eighth of `work`.
    pub finish_pods: u64,
    /// The work units to spend. One is about half a microsecond of one core. Unlike time, work is deterministic.
    pub work: u64,
    /// The seed of the search. The same seed gives the same plan.
    pub seed: u64,
    /// The solver of the linear programs.
    pub backend: Backend,
    /// The number of threads for pricing; 0 for one per processor, at most 8. The plan does not depend on it.
    pub threads: usize,
    /// The stages of the search that are enabled: all of them, except in measurements.
    pub stages: Stages,
}

impl Default for Options {
    /// Returns a gap of 0.1% and about ten seconds of work.
    fn default() -> Self {
        Self {
            gap_target: 0.001,
            finish_pods: 0,
            work: 20_000_000,
            seed: 0,
            backend: Backend::default(),
            threads: 0,
            stages: Stages::default(),
        }
    }
}

impl Options {
    /// Returns the LP backend and its seed.
    pub(crate) fn lp(&self) -> Seed {
        Seed { backend: self.backend, number: (self.seed % (1 << 31)) as i32 }
    }
}
