//! The clocks, threads, planner and suspension that a controller runs with.

use std::sync::Arc;

use poolwright_core::plan::plan;

use crate::edge::clock::{SharedClock, SystemClock};
use crate::edge::stoppable::Stoppable;
use crate::loops::compute::{PlanFunction, Spawner, blocking_threads};

/// The environment of a controller. A simulator replaces it.
pub struct Environment {
    /// The clocks.
    pub clock: SharedClock,
    /// Runs the computation of plans.
    pub spawner: Spawner,
    /// Makes plans.
    pub plan: PlanFunction,
    /// Suspends and resumes the process.
    pub stoppable: Stoppable,
}

impl Default for Environment {
    /// Returns the production environment: the system clocks, tokio's blocking threads, the planner of `core`, and no suspension.
    fn default() -> Self {
        Self {
            clock: SystemClock::shared(),
            spawner: blocking_threads(),
            plan: Arc::new(plan),
            stoppable: Stoppable::default(),
        }
    }
}
