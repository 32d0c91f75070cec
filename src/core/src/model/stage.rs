//! How far a claim is.

use poolwright_terms::ConditionType;
use serde::{Deserialize, Serialize};

use crate::model::claim::Claim;

/// How far a claim is: from the intent to have a node to the end of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// Nothing is launched yet.
    Pending,
    /// There is an instance, and no node.
    Launched,
    /// Its node has joined and is not open to pods.
    Registered,
    /// Its node is open to pods.
    Initialized,
    /// Its node is closed to pods because it will be given back.
    Disrupting,
    /// Its claim is deleted: its pods go.
    Draining,
    /// Its instance is being given back.
    Terminating,
}

impl Claim {
    /// How far it is, as its conditions say.
    pub fn stage(&self) -> Stage {
        if self.deleting_since.is_some() {
            let terminates = self.since(ConditionType::InstanceTerminating).is_some();
            return if terminates { Stage::Terminating } else { Stage::Draining };
        }
        if self.since(ConditionType::Disrupting).is_some() { Stage::Disrupting } else { self.start_stage() }
    }

    /// How far its node has come on the way to open, whether it leaves or not: at most [`Stage::Initialized`].
    pub fn start_stage(&self) -> Stage {
        let is = |kind| self.since(kind).is_some();
        if is(ConditionType::Initialized) {
            Stage::Initialized
        } else if is(ConditionType::Registered) {
            Stage::Registered
        } else if self.launched.is_some() || is(ConditionType::Launched) {
            Stage::Launched
        } else {
            Stage::Pending
        }
    }
}

impl Stage {
    /// As people and machines read it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Launched => "Launched",
            Self::Registered => "Registered",
            Self::Initialized => "Initialized",
            Self::Disrupting => "Disrupting",
            Self::Draining => "Draining",
            Self::Terminating => "Terminating",
        }
    }

    /// On its way to be opened.
    pub const fn is_starting(self) -> bool {
        matches!(self, Self::Pending | Self::Launched | Self::Registered)
    }

    /// On its way out.
    pub const fn is_leaving(self) -> bool {
        matches!(self, Self::Disrupting | Self::Draining | Self::Terminating)
    }
}
