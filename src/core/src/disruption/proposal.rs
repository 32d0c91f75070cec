//! Proposals: the result of a search for nodes to empty.

use std::collections::BTreeMap;

use crate::action::{Action, ConditionUpdate};
use crate::disruption::kept::Kept;
use crate::model::plan::Plan;
use crate::model::{Cause, Claim};
use crate::model::{ClaimName, Uid};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::{ConditionStatus, ConditionType};

/// The result of one search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Nodes to empty, if any.
    pub proposal: Option<Proposal>,
    /// Conditions and events about the findings.
    pub actions: Vec<Action>,
    /// Claims that were considered together.
    pub tried_together: Vec<ClaimName>,
    /// Claims that were tried alone.
    pub tried_alone: Vec<ClaimName>,
    /// Claims for whose pods it looked for room that other pods would make.
    pub tried_with_room: Vec<ClaimName>,
    /// Whether this round has not tried all claims yet.
    pub has_untried: bool,
    /// The first reason that kept each open node from being consolidated, as far as the search came.
    pub kept: BTreeMap<ClaimName, Kept>,
}

/// Nodes to empty, and the plan for their pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The nodes' claims.
    pub nodes_to_empty: Vec<NodeToEmpty>,
    /// The plan without these nodes. Its claims are created after the disruption is recorded.
    pub plan: Plan,
    /// The saving per hour.
    pub saving: UsdPerHour,
    /// Whether pods of nodes that stay give way to the pods of these nodes.
    pub makes_room: bool,
}

/// A claim whose node will be emptied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeToEmpty {
    /// The claim.
    pub claim: ClaimName,
    /// UID of the claim; a later claim of the same name is left alone.
    pub uid: Uid,
    /// The condition to write.
    pub condition: ConditionUpdate,
}

pub(crate) fn leave(claim: &Claim, cause: Cause, message: String) -> NodeToEmpty {
    let condition = ConditionUpdate {
        kind: ConditionType::Disrupting,
        status: ConditionStatus::True,
        reason: cause.reason(),
        message,
    };
    NodeToEmpty { claim: claim.name.clone(), uid: claim.uid.clone(), condition }
}
