//! Stages of claims.

use poolwright_terms::ConditionType;
use serde::{Deserialize, Serialize};

use crate::model::claim::Claim;

/// The stage of a claim (its state), from intent to the end of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Stage {
    /// No instance is launched yet.
    Pending,
    /// The instance is launched, and its node has not joined.
    Launched,
    /// Its node has joined and is not open to pods yet.
    Registered,
    /// Its node is open to pods.
    Initialized,
    /// Its node is closed to pods and will be terminated.
    Disrupting,
    /// The claim is deleted, and its node is drained.
    Draining,
    /// Its instance is being terminated.
    Terminating,
}

impl Claim {
    /// The stage of the claim, derived from its conditions.
    pub fn stage(&self) -> Stage {
        if self.deleting_since.is_some() {
            let terminates = self.since(ConditionType::InstanceTerminating).is_some();
            return if terminates { Stage::Terminating } else { Stage::Draining };
        }
        if self.since(ConditionType::Disrupting).is_some() { Stage::Disrupting } else { self.start_stage() }
    }

    /// The stage that its node has reached on the way to open, whether or not it is disrupted: at most [`Stage::Initialized`].
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
    /// The name, for people and programs.
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

    /// Whether the node is not open yet.
    pub const fn is_starting(self) -> bool {
        matches!(self, Self::Pending | Self::Launched | Self::Registered)
    }

    /// Whether the node is being removed.
    pub const fn is_leaving(self) -> bool {
        matches!(self, Self::Disrupting | Self::Draining | Self::Terminating)
    }
}
