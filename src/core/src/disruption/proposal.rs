//! Which nodes leave, as data.

use crate::action::{Action, ConditionUpdate};
use crate::model::plan::Plan;
use crate::model::{Cause, Claim};
use crate::model::{ClaimName, Uid};
use poolwright_catalog::UsdPerHour;
use poolwright_terms::{ConditionStatus, ConditionType};

/// What was found in one search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Nodes to empty, if any.
    pub proposal: Option<Proposal>,
    /// What was noticed: conditions and events.
    pub actions: Vec<Action>,
    /// Claims that were looked at together.
    pub together: Vec<ClaimName>,
    /// Claims that were tried by themselves.
    pub alone: Vec<ClaimName>,
    /// Whether there are others that this round has not looked at yet.
    pub more: bool,
}

/// Nodes to empty, and what is bought for their pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The nodes' claims.
    pub leave: Vec<NodeToEmpty>,
    /// A plan for the cluster in which they leave. Its claims are bought once that is recorded.
    pub plan: Plan,
    /// What is paid less in the end.
    pub saving: UsdPerHour,
}

/// A claim whose node is to be emptied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeToEmpty {
    /// Which.
    pub claim: ClaimName,
    /// UID of the claim; a later claim of the same name is left alone.
    pub uid: Uid,
    /// What to record.
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
