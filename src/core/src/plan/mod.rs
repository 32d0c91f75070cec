//! Planning: which pods want a node, what room there is, what is bought for the rest.

mod types;

pub use types::{
    Baselines, Counts, Placement, Plan, PlannedClaim, PoolFindings, Target, UnplacedPod, UnplacedReason,
};

use jiff::Timestamp;
use poolwright_solver::Watch;

use crate::model::Snapshot;

/// How to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Whether pods count that no scheduler has tried yet: for planning from files.
    pub include_waiting: bool,
    /// Pods of these schedulers count.
    pub schedulers: Vec<String>,
    /// How many offerings a claim may carry, the planned one included; at least one.
    pub max_offerings: usize,
    /// An alternative may cost at most this many percent more than the planned offering.
    pub max_dearer_percent: u32,
    /// Whether to work out what naive planning would cost.
    pub baselines: bool,
    /// Makes claim names of different planners differ: the CLI may leave it empty.
    pub salt: String,
}

impl Default for PlanOptions {
    /// Pods of `default-scheduler` that it could not place; 20 offerings, at most 20 % dearer; baselines.
    fn default() -> Self {
        Self {
            include_waiting: false,
            schedulers: vec!["default-scheduler".to_owned()],
            max_offerings: 20,
            max_dearer_percent: 20,
            baselines: true,
            salt: String::new(),
        }
    }
}

/// Plans. Same snapshot, time and options: same plan, unless `watch` stops the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, watch: &mut dyn Watch) -> Plan {
    let _ = (snapshot, now, options, watch);
    Plan::default()
}
