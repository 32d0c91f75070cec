//! Planning: which pods want a node, what room there is, what is bought for the rest.
//!
//! [`plan()`] is the table of contents. `prepare` lists the steps from the cluster as it is to the cluster that is planned for;
//! `attempt` lists those of one attempt: it places pods, packs the rest, and makes claims; `attempts` tries again with what an attempt
//! has shown; `audit` checks; `report` adds up.

pub(crate) mod attempt;
pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod claims;
pub(crate) mod context;
pub(crate) mod groups;
pub(crate) mod moved;
pub(crate) mod order_replicas;
pub(crate) mod pack;
pub(crate) mod pending;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod report;
pub(crate) mod unplaced;

pub use crate::demand::{ExpectedPods, expected};
pub use crate::model::options::{PlanOptions, Sharing, SpotRisk};
pub use crate::model::plan::{
    Baselines, Commitment, CommitmentUse, Counts, Moved, MovedTo, PlacedPod, Plan, PlannedClaim, PlannedGpu,
    PlannedInstance, PlannedShare, PoolFindings, Solve, Target, UnplacedPod, UnplacedReason,
};
pub use crate::model::plan_cache::PlanCache;
pub use crate::model::relaxed::{PreferencePolicy, RelaxedPreference, RelaxedReason};
pub use crate::supply::commitments::left as left_of_commitments;

use jiff::Timestamp;
pub use poolwright_solver::{NeverStop, StopSignal};

use crate::model::Snapshot;
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;

/// Plans. Same snapshot, time and options: same plan, unless `stop` stops the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, stop: &mut dyn StopSignal) -> Plan {
    let prepared = prepare::prepare(snapshot, now, options);
    let (context, mut supply) = PlanContext::new(&prepared);
    // Each attempt places pods, packs the rest onto new nodes, and makes claims of those nodes.
    let Attempt { mut plan, limits_reached, violations, .. } = context.weigh(&supply, stop);
    context.audit(&mut plan, &violations);
    report::limits_reached(&mut supply, limits_reached.into_iter().chain(prepared.ordered.limits.clone()));
    report::complete(&mut plan, &prepared, &context, supply);
    plan
}
