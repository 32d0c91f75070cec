//! Offerings of which the cloud took instances back lately count as dearer than they are.
//!
//! What was taken back a moment ago is likely out of stock, or taken back again soon. So whatever else holds the same pods is preferred,
//! but not at any price: where all of it is dearer than this, trying again costs less. Each time that it happens again in a row, more is
//! paid for something else.

use jiff::Timestamp;
use poolwright_catalog::{Offering, OfferingId, UsdPerHour};
use poolwright_terms::NodeClassRef;
use std::collections::BTreeMap;

use crate::model::TakenBack;
use crate::model::plan::PlannedClaim;
use crate::model::{Pool, Snapshot};

/// As how many times its price such an offering counts the first time. On-demand GPU capacity costs about two to three and a half times
/// what spot does (<https://aws.amazon.com/ec2/spot/pricing/>): when all spot capacity of a kind is being taken back, the same on demand
/// is bought, and nothing that is dearer still.
const TIMES: u64 = 4;
/// How often that doubles at most: 64 times its price.
const DOUBLINGS: u32 = 4;

fn times(taken_back: TakenBack) -> u64 {
    TIMES << taken_back.row.saturating_sub(1).min(DOUBLINGS)
}

/// What the cloud took back of an offering of a pool's node class, as far as that still counts.
pub(crate) fn of(snapshot: &Snapshot, pool: &Pool, offering: &Offering, now: Timestamp) -> Option<TakenBack> {
    remembered(&snapshot.taken_back, pool, offering).copied().filter(|taken_back| taken_back.until > now)
}

/// What the price of such an offering counts as.
pub(crate) fn weighed(price: UsdPerHour, taken_back: TakenBack) -> UsdPerHour {
    UsdPerHour::from_micros(price.micros().saturating_mul(times(taken_back)))
}

/// Why something else was chosen.
pub(crate) fn avoided(id: &OfferingId, price: UsdPerHour, taken_back: TakenBack) -> String {
    format!(
        "{id} at {price} $/h is cheaper, but the cloud takes such instances back: until {} it counts as {} times its price",
        taken_back.until,
        times(taken_back)
    )
}

/// Why it was chosen all the same.
pub(crate) fn chosen_all_the_same(taken_back: TakenBack) -> String {
    format!(
        "the cloud takes such instances back, so until {} it counts as {} times its price, and is still the cheapest",
        taken_back.until,
        times(taken_back)
    )
}

/// What is counted of a node to buy beside its price.
pub(crate) fn of_claim(snapshot: &Snapshot, now: Timestamp, claim: &PlannedClaim) -> UsdPerHour {
    if snapshot.taken_back.is_empty() {
        return UsdPerHour::ZERO;
    }
    let key = (claim.node_class.clone(), claim.offering().clone());
    let taken_back = snapshot.taken_back.get(&key).filter(|taken_back| taken_back.until > now);
    let counted = claim.price().zip(taken_back).map(|(price, of)| weighed(price, *of).saturating_sub(price));
    counted.unwrap_or_default()
}

/// What is remembered of an offering of a pool's node class.
pub(crate) fn remembered<'m, T>(
    memory: &'m BTreeMap<(NodeClassRef, OfferingId), T>,
    pool: &Pool,
    offering: &Offering,
) -> Option<&'m T> {
    // Nearly always nothing is, and a key is made for nothing.
    let memory = Some(memory).filter(|memory| !memory.is_empty());
    memory?.get(&(pool.node_class.clone(), offering.id.clone()))
}
