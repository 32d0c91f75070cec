//! The figures that users read about a plan, a pool, a simulation or a solution.
//!
//! This crate holds the documents with these figures, and computes each figure once. A plan's [`plan::Document`] feeds the table,
//! JSON and YAML. A pool's [`PoolSums`] feed its status and the metrics. A simulation's [`replay::Report`] feeds text,
//! JSON, CSV and the drawing. A solution's [`solved::Solved`] feeds table and JSON. [`job::Work`] tells how long a job takes on spot
//! nodes. [`ledger`] folds the rows of the ledger, and [`bill::Book`] adds up what nodes cost and who held them.
//!
//! It must not read input, decide anything, write text for terminals, or use Kubernetes types or a clock.

pub mod bill;
pub mod job;
pub mod ledger;
pub mod money;
pub mod plan;
mod pods;
mod pool;
pub mod replay;
pub mod solved;

pub use money::Cost;
pub use pods::WaitingPods;
pub use pool::PoolSums;

use std::time::Duration;

/// The duration of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From start to finish.
    pub elapsed: Duration,
    /// From start to the first plan.
    pub first: Duration,
}

impl Times {
    /// Returns the seconds from start to finish, as documents show them.
    pub fn elapsed_seconds(self) -> f64 {
        money::six_decimals(self.elapsed.as_secs_f64())
    }

    /// Returns the seconds from start to the first plan, as documents show them.
    pub fn first_plan_seconds(self) -> f64 {
        money::six_decimals(self.first.as_secs_f64())
    }
}
