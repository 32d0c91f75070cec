//! Conditions of NodeClaims, NodePools and node classes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// True, False or Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known.
    Unknown,
}

impl ConditionStatus {
    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Returns the status with this name in the API. Any other name counts as `Unknown`.
    pub fn named(name: &str) -> Self {
        match name {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

/// The types of the conditions of NodeClaims, NodePools and node classes. Providers add types of their own to their node classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionType {
    /// Claim: an instance exists.
    Launched,
    /// Claim: its node joined the cluster.
    Registered,
    /// Claim: its node is ready and advertises the promised resources; pods may use it.
    Initialized,
    /// Claim: no workload pod is on its node or planned for it.
    Empty,
    /// Claim: it differs from what its pool would create now.
    Drifted,
    /// Claim: its node has a condition that its pool repairs after a while.
    Unhealthy,
    /// Claim: its cloud announced an interruption of its instance.
    Interrupted,
    /// Claim: its node admits only planned pods, because others would run cheaper elsewhere.
    Retiring,
    /// Claim: its node is closed to pods because it will be terminated.
    Disrupting,
    /// Claim: it is deleted, and its node has no pod left to wait for.
    Drained,
    /// Claim: it is deleted, and no volume of its pods is attached to its node any more.
    VolumesDetached,
    /// Claim: its instance is being terminated.
    InstanceTerminating,
    /// Claim: its instance seems to run, but its cloud does not find it.
    InstanceUnlisted,
    /// Pool or node class: the summary of its other conditions.
    Ready,
    /// Pool: its spec is valid.
    ValidationSucceeded,
    /// Pool: its node class exists and is ready.
    NodeClassReady,
    /// Pool: a limit leaves pods waiting.
    LimitReached,
    /// Pool: its monthly budget lasts until the month ends.
    BudgetOnTrack,
}

impl ConditionType {
    /// Every condition type.
    pub const ALL: [Self; 18] = [
        Self::Launched,
        Self::Registered,
        Self::Initialized,
        Self::Empty,
        Self::Drifted,
        Self::Unhealthy,
        Self::Interrupted,
        Self::Retiring,
        Self::Disrupting,
        Self::Drained,
        Self::VolumesDetached,
        Self::InstanceTerminating,
        Self::InstanceUnlisted,
        Self::Ready,
        Self::ValidationSucceeded,
        Self::NodeClassReady,
        Self::LimitReached,
        Self::BudgetOnTrack,
    ];

    /// Returns the type that has this name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launched => "Launched",
            Self::Registered => "Registered",
            Self::Initialized => "Initialized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Unhealthy => "Unhealthy",
            Self::Interrupted => "Interrupted",
            Self::Retiring => "Retiring",
            Self::Disrupting => "Disrupting",
            Self::Drained => "Drained",
            Self::VolumesDetached => "VolumesDetached",
            Self::InstanceTerminating => "InstanceTerminating",
            Self::InstanceUnlisted => "InstanceUnlisted",
            Self::Ready => "Ready",
            Self::ValidationSucceeded => "ValidationSucceeded",
            Self::NodeClassReady => "NodeClassReady",
            Self::LimitReached => "LimitReached",
            Self::BudgetOnTrack => "BudgetOnTrack",
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
