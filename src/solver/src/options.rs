//! How far a solve goes.

use crate::lp::{Backend, Seed};
use crate::stages::Stages;

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Stop when `(cost - bound) / bound` is at most this.
    pub gap_target: f64,
    /// Work units to spend; one is about half a microsecond of one core. Deterministic, unlike time.
    pub work: u64,
    /// Varies the search; the same seed gives the same plan.
    pub seed: u64,
    /// Who solves the linear programs.
    pub backend: Backend,
    /// Threads for pricing; 0 for as many as there are processors, 8 at most. The answer does not depend on it.
    pub threads: usize,
    /// The parts of the search that are on: all of them, except in measurements.
    pub stages: Stages,
}

impl Default for Options {
    /// A tenth of a percent, or about ten seconds of work.
    fn default() -> Self {
        Self {
            gap_target: 0.001,
            work: 20_000_000,
            seed: 0,
            backend: Backend::default(),
            threads: 0,
            stages: Stages::default(),
        }
    }
}

impl Options {
    /// Which LP solves, and its seed.
    pub(crate) fn lp(&self) -> Seed {
        Seed { backend: self.backend, number: (self.seed % (1 << 31)) as i32 }
    }
}
