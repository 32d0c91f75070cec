//! Interruption back-off: the price of an offering counts as higher after the cloud has reclaimed instances of it.
//!
//! An offering that was just reclaimed is probably out of stock, or will be reclaimed again soon. So other offerings are
//! preferred, but not at any price: if all others cost more than the raised price, trying again is cheaper. Each further reclaim
//! raises the price further.

use jiff::Timestamp;
use poolwright_catalog::{Offering, OfferingId, UsdPerHour};
use poolwright_terms::NodeClassRef;
use std::collections::BTreeMap;

use crate::model::Reclaims;
use crate::model::plan::PlannedClaim;
use crate::model::{Pool, Snapshot};

/// The factor on the price after the first reclaim. On-demand GPU capacity costs about two to three and a half times as much as
/// spot (<https://aws.amazon.com/ec2/spot/pricing/>). So if all spot capacity of a type is reclaimed, the same type is bought
/// on demand, but nothing more expensive.
const TIMES: u64 = 4;
/// The most times that the factor doubles, up to 64 times the price.
const DOUBLINGS: u32 = 4;

fn times(reclaims: Reclaims) -> u64 {
    TIMES << reclaims.consecutive.saturating_sub(1).min(DOUBLINGS)
}

/// Returns the recent reclaims of an offering of a pool's node class, if they still count.
pub(crate) fn of(snapshot: &Snapshot, pool: &Pool, offering: &Offering, now: Timestamp) -> Option<Reclaims> {
    remembered(&snapshot.reclaims, pool, offering).copied().filter(|reclaims| reclaims.until > now)
}

/// Returns the raised price with which a reclaimed offering counts.
pub(crate) fn weighed(price: UsdPerHour, reclaims: Reclaims) -> UsdPerHour {
    UsdPerHour::from_micros(price.micros().saturating_mul(times(reclaims)))
}

/// Returns the message for a reclaimed offering that was not chosen.
pub(crate) fn avoided(id: &OfferingId, price: UsdPerHour, reclaims: Reclaims) -> String {
    format!(
        "{id} at {price:#} is cheaper, but the cloud takes such instances back: until {} it counts as {} times its price",
        reclaims.until,
        times(reclaims)
    )
}

/// Returns the message for a reclaimed offering that was chosen.
pub(crate) fn chosen_all_the_same(reclaims: Reclaims) -> String {
    format!(
        "the cloud takes such instances back, so until {} it counts as {} times its price, and is still the cheapest",
        reclaims.until,
        times(reclaims)
    )
}

/// Returns the amount that counts for a new node in addition to its price.
pub(crate) fn of_claim(snapshot: &Snapshot, now: Timestamp, claim: &PlannedClaim) -> UsdPerHour {
    if snapshot.reclaims.is_empty() {
        return UsdPerHour::ZERO;
    }
    let key = (claim.node_class.clone(), claim.offering().clone());
    let reclaims = snapshot.reclaims.get(&key).filter(|reclaims| reclaims.until > now);
    let counted = claim.price().zip(reclaims).map(|(price, of)| weighed(price, *of).saturating_sub(price));
    counted.unwrap_or_default()
}

/// Looks up an offering of a pool's node class.
pub(crate) fn remembered<'m, T>(
    memory: &'m BTreeMap<(NodeClassRef, OfferingId), T>,
    pool: &Pool,
    offering: &Offering,
) -> Option<&'m T> {
    // The map is usually empty. Then no key needs to be built.
    let memory = Some(memory).filter(|memory| !memory.is_empty());
    memory?.get(&(pool.node_class.clone(), offering.id.clone()))
}
