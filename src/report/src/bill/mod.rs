//! The bill of nodes, split among those who held them.
//!
//! All sums are whole micro-dollars and close exactly: the charges of a node's span add up to what the span cost. So any sum of charges
//! over all nodes is the bill, whatever they are grouped by.

mod amount;
mod book;
mod method;
mod shares;
mod split;
#[cfg(test)]
mod tests;

pub use amount::Micros;
pub use book::{Book, By, Key, Saved, Sums, Totals, Unpriced};
pub use method::{Method, Rates, Split};
pub use split::{Charge, PARTS};

use serde::Serialize;

use crate::money::HOUR;

/// Who or what pays a part of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Class {
    /// The pods of workloads, for what they held. Whether they used it, the ledger does not tell.
    Pods,
    /// Nobody held it, on a node that was open to pods.
    Unallocated,
    /// Pods of DaemonSets and of the node itself held it.
    System,
    /// The free part of a node that was not open to pods: it started, or was drained.
    StartingOrDraining,
    /// The cost of the nodes less their prices on a rate card.
    Difference,
}

impl Class {
    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Unallocated => "unallocated",
            Self::System => "system and daemons",
            Self::StartingOrDraining => "starting or draining",
            Self::Difference => "difference to the rate card",
        }
    }

    /// Returns whether it is a class of idle time.
    pub const fn is_idle(self) -> bool {
        matches!(self, Self::Unallocated | Self::System | Self::StartingOrDraining)
    }
}
