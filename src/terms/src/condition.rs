//! Conditions of NodeClaims, NodePools and node classes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// True, False or Unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Unknown.
    Unknown,
}

impl ConditionStatus {
    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status with this name in the API; `Unknown` for any other name.
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
    /// Claim: its node is ready and advertises what was promised; pods may use it.
    Initialized,
    /// Claim: no workload pod is on its node or planned for it.
    Empty,
    /// Claim: it no longer matches its pool.
    Drifted,
    /// Claim: its node has an unhealthy condition for which the pool replaces nodes.
    Unhealthy,
    /// Claim: its cloud reclaims the instance or has announced another interruption.
    Interrupted,
    /// Claim: its node is closed to pods and will be terminated.
    Disrupting,
    /// Claim: its node is drained.
    Drained,
    /// Claim: the volumes of its node's pods are detached.
    VolumesDetached,
    /// Claim: its instance is being terminated.
    InstanceTerminating,
    /// Pool or node class: usable.
    Ready,
    /// Pool: its spec is valid.
    ValidationSucceeded,
    /// Pool: its node class exists and can buy.
    NodeClassReady,
    /// Pool: a limit keeps it from buying what pods need.
    LimitReached,
}

impl ConditionType {
    /// Every condition type.
    pub const ALL: [Self; 15] = [
        Self::Launched,
        Self::Registered,
        Self::Initialized,
        Self::Empty,
        Self::Drifted,
        Self::Unhealthy,
        Self::Interrupted,
        Self::Disrupting,
        Self::Drained,
        Self::VolumesDetached,
        Self::InstanceTerminating,
        Self::Ready,
        Self::ValidationSucceeded,
        Self::NodeClassReady,
        Self::LimitReached,
    ];

    /// The type with this name in the API.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Launched => "Launched",
            Self::Registered => "Registered",
            Self::Initialized => "Initialized",
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Unhealthy => "Unhealthy",
            Self::Interrupted => "Interrupted",
            Self::Disrupting => "Disrupting",
            Self::Drained => "Drained",
            Self::VolumesDetached => "VolumesDetached",
            Self::InstanceTerminating => "InstanceTerminating",
            Self::Ready => "Ready",
            Self::ValidationSucceeded => "ValidationSucceeded",
            Self::NodeClassReady => "NodeClassReady",
            Self::LimitReached => "LimitReached",
        }
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
