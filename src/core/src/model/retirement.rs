//! Retirement: nodes that admit no newcomers, because pods that would join their pods would run cheaper elsewhere.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{OfferingId, Usd, UsdPerHour};
use poolwright_terms::NodeClassRef;
use serde::{Deserialize, Serialize};

use crate::model::names::{ClaimName, PoolName};
use crate::model::pod::PodSpec;
use crate::model::pod_key::PodKey;

/// The reason why a node retires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retirement {
    /// A recent pod. The next one like it would run cheaper elsewhere.
    pub newcomer: PodKey,
    /// The expected time by which the newcomer would postpone the end of the node.
    pub extension: SignedDuration,
    /// The cost of this time.
    pub here: Usd,
    /// What its room there is worth, if it takes room that is kept for pods without a cheaper home.
    #[serde(default)]
    pub displaced: Usd,
    /// The cost of a node of its own, until it has ended.
    pub elsewhere: Usd,
    /// The expected time until the node's pods have ended; zero if it has none.
    pub ends_in: SignedDuration,
}

impl fmt::Display for Retirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { newcomer, extension, here, displaced, elsewhere, ends_in } = self;
        let end = if ends_in.is_zero() {
            "it runs no pod".to_owned()
        } else {
            format!("its last pod is expected to end in {}", about(*ends_in))
        };
        if *displaced > Usd::default() {
            return write!(
                f,
                "a pod like {newcomer} would keep this node {} longer, for {here:#}, and take room worth {displaced:#} that is kept \
                 for pods without a cheaper home; it costs {elsewhere:#} on a node of its own; {end}",
                about(*extension)
            );
        }
        write!(
            f,
            "a pod like {newcomer} would keep this node {} longer, for {here:#}, and costs {elsewhere:#} on a node of its own; {end}",
            about(*extension)
        )
    }
}

/// Writes a duration with the precision of a guess: `40 min`, `3.5 h`, `6 days`.
pub fn about(duration: SignedDuration) -> String {
    let minutes = (duration.as_secs() + 30) / 60;
    match minutes {
        ..1 => "less than a minute".to_owned(),
        1..100 => format!("{minutes} min"),
        100..2880 => format!("{}.{} h", minutes / 60, minutes % 60 / 6),
        _ => format!("{} days", (minutes + 720) / 1440),
    }
}

/// The nodes that retire, as the last plan decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retirements {
    /// The time of the decision; `None` before the first one.
    pub decided: Option<Timestamp>,
    /// Whether it is the last leader's decision, which the claims' conditions record, and `claims` is empty. A new leader keeps it
    /// until its own first decision.
    pub inherited: bool,
    /// The retiring nodes, by claim.
    pub claims: BTreeMap<ClaimName, Retirement>,
    /// The lowest price of a node for one pod with a spec, by pool: what recent pods would cost elsewhere.
    pub prices: Arc<PricesElsewhere>,
}

/// The lowest prices of nodes for one pod, which change slowly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PricesElsewhere {
    /// When the first of them was worked out.
    pub since: Option<Timestamp>,
    /// The offerings that were held back then, and what was left of each limit. With others, the prices differ.
    pub terms: (BTreeMap<(NodeClassRef, OfferingId), Timestamp>, Vec<u64>),
    /// The lowest price in each pool that sells a node for such a pod.
    pub by_spec: BTreeMap<PodSpec, Vec<(PoolName, UsdPerHour)>>,
}

/// The time after which a decision is void unless a plan renews it. Then all nodes open.
const VOID_AFTER: SignedDuration = SignedDuration::from_mins(5);

impl Retirements {
    /// Returns the reason why a claim's node retires; `None` if it does not, or if the decision is void.
    pub fn of(&self, claim: &ClaimName, now: Timestamp) -> Option<&Retirement> {
        self.claims.get(claim).filter(|_| self.are_valid(now))
    }

    /// Returns whether the recorded decisions of the last leader hold.
    pub fn are_inherited(&self, now: Timestamp) -> bool {
        self.inherited && self.are_valid(now)
    }

    fn are_valid(&self, now: Timestamp) -> bool {
        // A decision of the future was made before the clock was set back.
        self.decided.is_some_and(|decided| now.duration_since(decided).abs() <= VOID_AFTER)
    }
}
