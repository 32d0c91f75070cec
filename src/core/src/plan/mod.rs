//! Planning: which pods want a node, what room there is, what is bought for the rest.
//!
//! [`plan()`] is the table of contents. `prepare` lists the steps from the cluster as it is to the cluster that is planned for;
//! `attempt` places pods, packs the rest, and makes claims; `audit` checks; `report` adds up.

mod attempt;
mod audit;
mod audit_company;
mod audit_gpus;
mod audit_topology;
mod bits;
mod caution;
mod claims;
mod classes;
pub(crate) mod committed;
mod company;
mod daemons;
mod gpus;
mod groups;
mod layout;
mod limits;
mod memory;
mod miss;
mod moved;
mod options;
mod order_replicas;
mod prepare;
mod profiles;
mod relaxed;
mod report;
mod risk;
mod room;
mod rounds;
mod rulings;
mod sticky;
mod supply;
mod topology;
mod types;
mod volumes;
mod wanting;
mod wishes;
mod words;

pub use committed::left as left_of_commitments;
pub use gpus::Sharing;
pub use memory::Memory;
pub use options::PlanOptions;
pub use relaxed::{Preferences, RelaxedPreference, RelaxedReason};
pub use risk::SpotRisk;
pub(crate) use room::labels_of_claim;
pub use rulings::{Candidacy, Ruling, rulings};
pub use types::{
    Baselines, Commitment, CommitmentUse, Counts, Moved, MovedTo, Placement, Plan, PlannedClaim, PlannedGpu,
    PlannedInstance, PlannedShare, PoolFindings, Solve, Target, UnplacedPod, UnplacedReason,
};

pub(crate) use profiles::Ruler;
pub(crate) use wishes::RELAXED;
pub(crate) use words::gist;

use jiff::Timestamp;
pub use poolwright_solver::{NeverStop, StopSignal};

use self::attempt::{Attempt, Scene};
use crate::model::Snapshot;

/// Plans. Same snapshot, time and options: same plan, unless `watch` stops the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, watch: &mut dyn StopSignal) -> Plan {
    let prepared = prepare::prepare(snapshot, now, options);
    let (scene, mut supply) = Scene::new(&prepared);
    // Each attempt places pods, packs the rest onto new nodes, and makes claims of those nodes.
    let Attempt { mut plan, limits_reached, violations, .. } = scene.weigh(&supply, watch);
    scene.audit(&mut plan, &violations);
    report::limits_reached(&mut supply, limits_reached.into_iter().chain(prepared.ordered.limits.clone()));
    report::complete(&mut plan, &prepared, &scene, supply);
    plan
}
