//! Kinds of interruptions that clouds announce.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Reason;

/// What happens to an instance.
///
/// Ordered by certainty: of two notices about one instance, the greater counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InterruptionKind {
    /// It is likely to be reclaimed.
    Rebalance,
    /// It has maintenance at the deadline.
    Maintenance,
    /// It fails the cloud's own checks.
    Unhealthy,
    /// Its capacity reservation ends.
    ReservationEnd,
    /// The owner of its capacity reservation reclaims it.
    ReservationReclaim,
    /// Its spot capacity is reclaimed.
    Reclaim,
    /// It is being stopped or terminated now.
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

    /// The reason of the condition `Interrupted`.
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

    /// The name in the API and in metrics.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Whether it is certain to happen.
    pub const fn is_certain(self) -> bool {
        !matches!(self, Self::Rebalance)
    }

    /// Whether more instances of the same offering are likely to be reclaimed soon.
    pub const fn tells_of_the_offering(self) -> bool {
        matches!(self, Self::Rebalance | Self::ReservationEnd | Self::ReservationReclaim | Self::Reclaim)
    }

    /// What happens, in words: `spot capacity is taken back`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Rebalance => "spot capacity is likely to be taken back",
            Self::Maintenance => "its machine is serviced",
            Self::Unhealthy => "the cloud's own checks of it fail",
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
