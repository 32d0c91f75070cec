//! What is asked of the planner about nodes that may leave.

use crate::action::Action;
use crate::disruption::past_moves::Moves;
use crate::lifecycle::allowance;
use crate::lifecycle::protection::Facts;
use crate::model::plan::Plan;
use crate::model::{Cause, Claim, ClaimName, PlanOptions, PoolName};
use poolwright_catalog::UsdPerHour;
use std::collections::{BTreeMap, BTreeSet};

/// One look.
pub(crate) struct Look<'a> {
    pub facts: Facts<'a>,
    pub(crate) current: &'a Plan,
    pub moves: &'a Moves,
    pub options: &'a PlanOptions,
    /// Claims whose nodes stay so far, and use what is paid beforehand.
    pub staying: Vec<&'a Claim>,
    /// How many more nodes of a pool may be disturbed, and what allows no more.
    pub(crate) left: BTreeMap<(PoolName, Cause), allowance::Allowance>,
    /// How many more nodes of all pools may be.
    pub(crate) over_all: BTreeMap<Cause, allowance::Allowance>,
    pub(crate) targets: BTreeSet<ClaimName>,
    pub(crate) actions: Vec<Action>,
    pub together: Vec<ClaimName>,
    pub(crate) alone: Vec<ClaimName>,
    pub(crate) more: bool,
}

/// A set of nodes that may leave together.
pub(crate) struct Tried {
    pub(crate) plan: Plan,
    pub(crate) before: UsdPerHour,
    /// Those of the set whose pods have no other place, and why.
    pub(crate) stuck: BTreeMap<ClaimName, String>,
}
