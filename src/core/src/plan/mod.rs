//! The planner: finds places for pending pods on existing nodes, and buys nodes for the rest.
//!
//! Start reading at [`plan()`]. `prepare` lists the steps from the current cluster to the cluster to plan for. `attempt` lists
//! the steps of one attempt: place pods, pack the rest, create claims. `attempts` repeats attempts and uses the lessons of
//! earlier ones. `cut` and `fewer_domains` say what to try if a limit leaves out pods with a topology spread.
//! `captives` finds the pods for which room on expensive nodes is kept.
//! `namespace_limits` plans without pods that are beyond a limit of their namespace. `audit` checks the plan, and `report`
//! computes its figures, and `rule_costs` what weights and preferences cost.

pub(crate) mod attempt;
pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod captives;
pub(crate) mod claims;
pub(crate) mod context;
pub(crate) mod cut;
pub(crate) mod effort;
pub(crate) mod fewer_domains;
pub(crate) mod gang_limits;
pub(crate) mod gang_nodes;
pub(crate) mod gang_takes;
pub(crate) mod groups;
pub(crate) mod left_by;
pub(crate) mod listed;
pub(crate) mod listing;
pub(crate) mod moved;
pub(crate) mod namespace_limits;
pub(crate) mod once;
pub(crate) mod order_replicas;
pub(crate) mod own_nodes;
pub(crate) mod pack;
pub(crate) mod pending;
pub(crate) mod place;
pub(crate) mod prepare;
pub(crate) mod report;
pub(crate) mod retire;
pub(crate) mod rule_costs;
pub(crate) mod spot_rule;
pub(crate) mod unplaced;

pub use crate::demand::{ExpectedPods, MOST_OF_OWNER, expected};
pub use crate::model::baseline::{Baseline, Baselines};
pub use crate::model::options::{MinValuesPolicy, PlanOptions, Sharing, SpotRisk};
pub use crate::model::plan::{
    Commitment, CommitmentUse, CostRule, Counts, LabelChoice, Moved, MovedTo, OverTime, PlacedPod, Plan,
    PlannedClaim, PlannedGpu, PlannedInstance, PlannedShare, PoolFindings, RuleCost, Solve, SolveNode,
    Target, UnplacedPod, UnplacedReason,
};
pub use crate::model::plan_cache::PlanCache;
pub use crate::model::relaxed::{PreferencePolicy, RelaxedPreference, WhyRelaxed};
pub use crate::plan::groups::held_by_groups;
pub use crate::supply::commitments::left as left_of_commitments;
pub use crate::supply::monthly_budget::outlook as budget_outlook;
pub use crate::supply::namespace_use::rates as namespace_rates;

use jiff::Timestamp;
pub use poolwright_solver::{NeverStop, StopSignal};

use crate::model::Snapshot;
use crate::plan::once::plan_once;

/// Makes a plan. The same snapshot, time and options give the same plan, unless `stop` ends the solver early.
pub fn plan(snapshot: &Snapshot, now: Timestamp, options: &PlanOptions, stop: &mut dyn StopSignal) -> Plan {
    let mut plan = plan_once(snapshot, now, options, stop);
    if options.baselines {
        rule_costs::tell(&mut plan, snapshot, now, options, stop);
    }
    plan
}
