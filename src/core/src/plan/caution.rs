//! Offerings of which the cloud took instances back lately count as dearer than they are.
//!
//! What was taken back a moment ago is likely out of stock, or taken back again soon. So whatever else holds the same pods is preferred,
//! but not at any price: where all of it is dearer than this, trying again costs less.

use jiff::Timestamp;
use poolwright_catalog::{OfferingId, UsdPerHour};

use super::PlannedClaim;
use crate::model::Snapshot;

/// As how many times its price such an offering counts. On-demand GPU capacity costs about two to three and a half times what spot does
/// (<https://aws.amazon.com/ec2/spot/pricing/>): when all spot capacity of a kind is being taken back, the same on demand is bought, and
/// nothing that is dearer still.
const TIMES: u64 = 4;

/// What the price of such an offering counts as.
pub(super) fn weighed(price: UsdPerHour) -> UsdPerHour {
    UsdPerHour::from_micros(price.micros().saturating_mul(TIMES))
}

/// Why something else was chosen.
pub(super) fn avoided(id: &OfferingId, price: UsdPerHour, until: Timestamp) -> String {
    format!(
        "{id} at {price} $/h is cheaper, but the cloud takes such instances back: until {until} it counts as {TIMES} times its price"
    )
}

/// Why it was chosen all the same.
pub(super) fn chosen_all_the_same(until: Timestamp) -> String {
    format!(
        "the cloud takes such instances back, so until {until} it counts as {TIMES} times its price, and is still the least"
    )
}

/// What is counted of a node to buy beside its price.
pub(super) fn of_claim(snapshot: &Snapshot, now: Timestamp, claim: &PlannedClaim) -> UsdPerHour {
    if snapshot.taken_back.is_empty() {
        return UsdPerHour::ZERO;
    }
    let until = snapshot.taken_back.get(&(claim.node_class.clone(), claim.offering().clone()));
    let price = claim.price().filter(|_| until.is_some_and(|until| *until > now)).unwrap_or_default();
    weighed(price).saturating_sub(price)
}
