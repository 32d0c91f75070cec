//! Commitments (savings plans): the part that existing nodes use, and the part of prices that they pay.
//!
//! Clouds bill commitments by the hour. Disrupted nodes do not count, because their replacements will outlast them. All other
//! nodes use their part first, and a plan may use the rest.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;

use crate::model::PlanOptions;
use crate::model::plan::Commitment;
use crate::model::{Claim, ClaimName, Snapshot};

/// Returns whether a claim's node stays in the cluster, now or once it has joined.
fn stays(claim: &Claim) -> bool {
    claim.deleting_since.is_none() && claim.leaving().is_none() && !claim.is_ending()
}

/// Returns the claims of a snapshot whose nodes stay.
pub(crate) fn staying(snapshot: &Snapshot) -> Vec<&Claim> {
    snapshot.claims.values().map(Arc::as_ref).filter(|claim| stays(claim)).collect()
}

/// Returns the amount left of each commitment after the nodes of these claims have used their part. Commitments cover only
/// on-demand offerings.
pub fn left(commitments: &[Commitment], claims: &[&Claim]) -> Vec<UsdPerHour> {
    let of = |commitment: &Commitment| {
        let rate = |claim: &&Claim| commitment.rates.get(&claim.current_offering().offering);
        let used: u128 = claims.iter().filter_map(rate).map(|rate| u128::from(rate.micros())).sum();
        let used = UsdPerHour::from_micros(u64::try_from(used).unwrap_or(u64::MAX));
        commitment.left.saturating_sub(used)
    };
    commitments.iter().map(of).collect()
}

/// Subtracts the amounts that staying nodes use from the commitments.
pub(crate) fn subtract_used(snapshot: &Snapshot, options: &mut Cow<'_, PlanOptions>) {
    if options.commitments.is_empty() {
        return;
    }
    let left = left(&options.commitments, &staying(snapshot));
    for (commitment, left) in options.to_mut().commitments.iter_mut().zip(left) {
        commitment.left = left;
    }
}

/// Returns the part of each claim's price that commitments pay. As in the clouds' billing, the largest discount is covered first,
/// ties go by name, and the last claim may be covered in part. Claims with unknown prices get nothing.
pub(crate) fn shares<'c>(
    commitments: &[Commitment],
    claims: &[&'c Claim],
) -> BTreeMap<&'c ClaimName, UsdPerHour> {
    let mut shares = BTreeMap::new();
    for commitment in commitments {
        let covered = |claim: &&'c Claim| {
            let current = claim.current_offering();
            let rate = commitment.rates.get(&current.offering)?.micros();
            Some((current.price?.micros(), rate.max(1), &claim.name))
        };
        let mut nodes: Vec<(u64, u64, &ClaimName)> = claims.iter().filter_map(covered).collect();
        // The key is in millionths of the rate, which is precise enough to compare discounts.
        nodes.sort_by_key(|(price, rate, name)| {
            (Reverse(u128::from(*price) * 1_000_000 / u128::from(*rate)), *name)
        });
        let mut left = commitment.left.micros();
        for (price, rate, name) in nodes {
            let used = rate.min(left);
            left -= used;
            let paid = u128::from(price) * u128::from(used) / u128::from(rate);
            shares.insert(name, UsdPerHour::from_micros(u64::try_from(paid).unwrap_or(u64::MAX)));
        }
    }
    shares
}

/// Returns the saving if some of the staying claims are removed: their prices, minus the commitments that no other node would
/// use.
pub(crate) fn worth(commitments: &[Commitment], staying: &[&Claim], gone: &[&Claim]) -> UsdPerHour {
    let prices: UsdPerHour = gone.iter().filter_map(|claim| claim.current_offering().price).sum();
    if commitments.is_empty() {
        return prices;
    }
    let rest: Vec<&Claim> =
        staying.iter().copied().filter(|claim| gone.iter().all(|one| one.name != claim.name)).collect();
    let paid = |claims: &[&Claim]| -> UsdPerHour { shares(commitments, claims).into_values().sum() };
    let lost = paid(staying).saturating_sub(paid(&rest));
    prices.saturating_sub(lost)
}
