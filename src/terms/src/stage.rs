//! The stages of a claim, also called claim states.

use serde::{Deserialize, Serialize};

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

impl Stage {
    /// Returns the name, for people and programs.
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

    /// Returns whether the node is not open yet.
    pub const fn is_starting(self) -> bool {
        matches!(self, Self::Pending | Self::Launched | Self::Registered)
    }

    /// Returns whether the node is being removed.
    pub const fn is_leaving(self) -> bool {
        matches!(self, Self::Disrupting | Self::Draining | Self::Terminating)
    }
}
