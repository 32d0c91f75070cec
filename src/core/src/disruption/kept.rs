//! The reasons why consolidation leaves a node as it is. A search returns them as data, the first one for each node.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{OfferingId, Usd};

use crate::disruption::payback::Shortfall;
use crate::model::{PodKey, PoolName};
use crate::rules::format::{count, list};

/// The most pods that are named.
const NAMED: usize = 3;

/// The first reason why consolidation leaves a node as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Its claim is being deleted.
    BeingDeleted,
    /// It is being emptied already, for this reason.
    Disrupting(String),
    /// It is unhealthy, and repair replaces it now.
    Repaired,
    /// It is not open to pods yet.
    NotOpen,
    /// It is to be replaced for another reason than cost, but something keeps it.
    Blocked(String),
    /// Its pool keeps a fixed number of nodes.
    FixedNumber(PoolName),
    /// Its pool is being deleted.
    PoolBeingDeleted(PoolName),
    /// Its pool consolidates no node at any age of its pods.
    Never(PoolName),
    /// It runs no workload pod.
    NoWork,
    /// It opened, or its newest pod came, less than `after` ago.
    NotQuiet {
        /// The pool.
        pool: PoolName,
        /// `consolidateAfter` of the pool.
        after: SignedDuration,
        /// The time at which this ends.
        until: Timestamp,
        /// The pod that came last; `None` if the node opened after it came.
        newest: Option<PodKey>,
    },
    /// Pods are planned for it.
    Planned(Vec<PodKey>),
    /// Its price is unknown, so nobody can say what would be saved.
    PriceUnknown(OfferingId),
    /// An annotation, its pool, or a pod keeps it.
    Obstacle(String),
    /// The controller of a pod is unknown, so nobody knows whether the pod would be recreated.
    UnknownMaker(String),
    /// A PodDisruptionBudget allows no eviction.
    PodBudget(String),
    /// Its pods moved not long ago.
    Moved(String),
    /// Its pods would lose more than the node costs until they end. Amounts in micro-dollars.
    LossAboveCost {
        /// The loss.
        lost: u64,
        /// The cost of the node until its pods end, at most for `paybackWithin`.
        costs: u64,
    },
    /// A disruption budget of its pool, or of all pools together, allows no more nodes.
    NodeBudget(String),
    /// Consolidation waits until no node is bought and no pod gives way.
    NotNow(String),
    /// The time of the search was over.
    NoTime,
    /// A pod has no other place.
    NoPlace(String),
    /// Another pod would be worse off.
    WorseForOthers(PodKey),
    /// Too few nodes of its pool would be on demand.
    OnDemandFloor(PoolName),
    /// The buffer of a pool would have less room, and no node can be bought for it.
    BufferRoom(PoolName),
    /// The prices of the nodes that its pods would need are unknown.
    NewPriceUnknown,
    /// The independent check refused the plan without it.
    Refused(String),
    /// A pod would go to a new node of a pool with a lower weight.
    LowerWeight(PoolName),
    /// The move does not pay off.
    NotWorth {
        /// What is missing.
        shortfall: Shortfall,
        /// The places that its pods would get.
        places: String,
        /// `paybackWithin` of the pool.
        payback: SignedDuration,
    },
}

impl Kept {
    /// Returns whether the node might be worth emptying if this reason went away, so that the saving is of interest.
    pub const fn hides_saving(&self) -> bool {
        matches!(
            self,
            Self::FixedNumber(_)
                | Self::Never(_)
                | Self::NotQuiet { .. }
                | Self::Obstacle(_)
                | Self::PodBudget(_)
                | Self::Moved(_)
                | Self::LossAboveCost { .. }
                | Self::NodeBudget(_)
                | Self::LowerWeight(_)
        )
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeingDeleted => f.write_str("it is being deleted"),
            Self::Disrupting(why) => write!(f, "it is being emptied already: {}", why.trim_end_matches('.')),
            Self::Repaired => f.write_str("it is unhealthy, and repair replaces it now"),
            Self::NotOpen => f.write_str("it is not open to pods yet"),
            Self::FixedNumber(pool) => {
                write!(f, "pool {pool} keeps a fixed number of nodes (spec.replicas)")
            }
            Self::PoolBeingDeleted(pool) => write!(f, "pool {pool} is being deleted"),
            Self::Never(pool) => {
                write!(f, "pool {pool} moves no pods to save money (disruption.consolidateAfter: Never)")
            }
            Self::NoWork => f.write_str(
                "it runs no workload pod, so there is nothing to move (scaleToZero.after decides when it goes)",
            ),
            Self::NotQuiet { pool, after, until, newest } => {
                let what = match newest {
                    Some(pod) => format!("pod {pod} came"),
                    None => "the node opened".to_owned(),
                };
                write!(f, "{what} less than {after:#} ago (disruption.consolidateAfter of pool {pool}); that ends at {until:.0}")
            }
            Self::Planned(pods) => {
                let pods: Vec<String> = pods.iter().map(ToString::to_string).collect();
                let are = if pods.len() == 1 { "is" } else { "are" };
                write!(f, "{} {are} planned for it: {}", count(pods.len(), "pod"), list(&pods, NAMED))
            }
            Self::PriceUnknown(offering) => write!(
                f,
                "the price of {offering} is unknown, and so is the saving; add the price to the catalogue"
            ),
            Self::Blocked(why)
            | Self::NoPlace(why)
            | Self::Obstacle(why)
            | Self::UnknownMaker(why)
            | Self::PodBudget(why)
            | Self::Moved(why)
            | Self::NodeBudget(why) => f.write_str(why),
            Self::LossAboveCost { lost, costs } => write!(
                f,
                "moving its pods would lose work worth {:#}, more than the {:#} that the node costs until they end",
                Usd((*lost).into()),
                Usd((*costs).into())
            ),
            Self::NotNow(why) => write!(f, "{why}, and consolidation waits until that is done"),
            Self::NoTime => f.write_str("the time of the search was over before this node was tried"),
            Self::WorseForOthers(pod) => {
                write!(f, "its pods could go elsewhere only if pod {pod} lost its place")
            }
            Self::OnDemandFloor(pool) => write!(
                f,
                "without it, too few nodes of pool {pool} would be on demand (spot.onDemandFloor)"
            ),
            Self::BufferRoom(pool) => write!(
                f,
                "without it, the buffer of pool {pool} would have less room, and no node can be bought for it"
            ),
            Self::NewPriceUnknown => f.write_str("its pods would need nodes whose prices are unknown"),
            Self::Refused(why) => write!(f, "the independent check refused the plan without it: {why}"),
            Self::LowerWeight(pool) => write!(
                f,
                "its pods would go to a new node of pool {pool}, whose weight is lower than that of its own pool"
            ),
            Self::NotWorth { shortfall, places, payback } => shortfall.write(f, places, *payback),
        }
    }
}

impl Shortfall {
    fn write(&self, f: &mut fmt::Formatter<'_>, places: &str, payback: SignedDuration) -> fmt::Result {
        match self {
            Self::NoSaving { before, after } => write!(
                f,
                "its pods cost no less elsewhere: {after:#} ({places}), and this node costs {before:#}"
            ),
            Self::Small { before, after, least } => write!(
                f,
                "emptying it would save {:#}, less than 1 % of its price ({least:#}): its pods would cost {after:#} elsewhere ({places})",
                before.saturating_sub(*after)
            ),
            Self::Loss { before, after, saves, costs } => write!(
                f,
                "emptying it would save {:#} ({places}), but moving its pods costs more than it saves within {payback:#} or until they end: {:#} against {:#} (disruption.paybackWithin)",
                before.saturating_sub(*after),
                Usd((*costs).into()),
                Usd((*saves).into())
            ),
        }
    }
}
