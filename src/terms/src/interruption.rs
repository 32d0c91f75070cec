//! Interruptions that a cloud may announce for an instance.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reason;

/// The kind of an interruption.
///
/// The order is by certainty. If a cloud announces two kinds for one instance, the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InterruptionKind {
    /// The cloud will probably take the instance back.
    Rebalance,
    /// The cloud will maintain its machine at the deadline; the instance is then unavailable or gone.
    Maintenance,
    /// The instance fails the cloud's own checks.
    Unhealthy,
    /// The capacity reservation of the instance ends.
    ReservationEnd,
    /// The owner of its capacity reservation takes the capacity back.
    ReservationReclaim,
    /// The cloud takes the spot instance back.
    Reclaim,
    /// The cloud is stopping or terminating the instance now.
    Ending,
}

impl InterruptionKind {
    /// Every kind, the least certain first.
    pub const ALL: [Self; 7] = [
        Self::Rebalance,
        Self::Maintenance,
        Self::Unhealthy,
        Self::ReservationEnd,
        Self::ReservationReclaim,
        Self::Reclaim,
        Self::Ending,
    ];

    /// Returns the reason of the condition `Interrupted`.
    pub const fn reason(self) -> Reason {
        match self {
            Self::Rebalance => Reason::Rebalance,
            Self::Maintenance => Reason::Maintenance,
            Self::Unhealthy => Reason::Unhealthy,
            Self::ReservationEnd => Reason::ReservationEnd,
            Self::ReservationReclaim => Reason::ReservationReclaim,
            Self::Reclaim => Reason::Reclaim,
            Self::Ending => Reason::Ending,
        }
    }

    /// Returns the name in the API and in metrics.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Returns whether the interruption will certainly happen.
    pub const fn is_certain(self) -> bool {
        !matches!(self, Self::Rebalance)
    }

    /// Returns whether more instances of the same offering are likely to be lost soon.
    pub const fn tells_of_the_offering(self) -> bool {
        matches!(self, Self::Rebalance | Self::ReservationEnd | Self::ReservationReclaim | Self::Reclaim)
    }

    /// Returns the interruption in words, such as `spot capacity is taken back`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rebalance => "spot capacity is likely to be taken back",
            Self::Maintenance => "the cloud maintains its machine",
            Self::Unhealthy => "it fails the cloud's own checks",
            Self::ReservationEnd => "its reservation ends",
            Self::ReservationReclaim => "its reservation is taken back",
            Self::Reclaim => "spot capacity is taken back",
            Self::Ending => "it is being stopped or terminated",
        }
    }
}

impl fmt::Display for InterruptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
