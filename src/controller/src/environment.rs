//! The clocks, threads and suspension that a controller runs with.

use crate::edge::clock::{SharedClock, SystemClock};
use crate::edge::stoppable::Stoppable;
use crate::loops::compute::{Spawner, blocking_threads};

/// The environment of a controller. A simulator replaces it.
pub struct Environment {
    /// The clocks.
    pub clock: SharedClock,
    /// Runs the computation of plans.
    pub spawner: Spawner,
    /// Suspends and resumes the process.
    pub stoppable: Stoppable,
}

impl Default for Environment {
    /// Returns the production environment: the system clocks, tokio's blocking threads, and no suspension.
    fn default() -> Self {
        Self { clock: SystemClock::shared(), spawner: blocking_threads(), stoppable: Stoppable::default() }
    }
}
