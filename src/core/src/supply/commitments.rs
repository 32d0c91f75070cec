//! Money paid beforehand, and the nodes that are there: what they use of it, and what it pays of their prices.
//!
//! Clouds bill a commitment by the hour, so nodes that go use nothing that matters: what is bought in their place runs on when they
//! are gone. All others take their part first, and a plan may use the rest.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use poolwright_catalog::UsdPerHour;

use crate::model::PlanOptions;
use crate::model::plan::Commitment;
use crate::model::{Claim, ClaimName, Snapshot};

/// Whether a claim's node stays, or comes to stay.
fn stays(claim: &Claim) -> bool {
    claim.deleting_since.is_none() && claim.leaving().is_none() && !claim.is_ending()
}

/// The claims of a snapshot whose nodes stay.
pub(crate) fn staying(snapshot: &Snapshot) -> Vec<&Claim> {
    snapshot.claims.values().map(Arc::as_ref).filter(|claim| stays(claim)).collect()
}

/// What is left of each commitment when the nodes of these claims have used their part of it. A commitment has rates for what it
/// covers, which is never spot nor reserved, so only what is bought on demand uses any.
pub fn left(commitments: &[Commitment], claims: &[&Claim]) -> Vec<UsdPerHour> {
    let of = |commitment: &Commitment| {
        let rate = |claim: &&Claim| commitment.rates.get(&claim.current_offering().offering);
        let used: u128 = claims.iter().filter_map(rate).map(|rate| u128::from(rate.micros())).sum();
        let used = UsdPerHour::from_micros(u64::try_from(used).unwrap_or(u64::MAX));
        commitment.left.saturating_sub(used)
    };
    commitments.iter().map(of).collect()
}

/// Takes off commitments what the nodes that stay use of them.
pub(crate) fn subtract_used(snapshot: &Snapshot, options: &mut Cow<'_, PlanOptions>) {
    if options.commitments.is_empty() {
        return;
    }
    let left = left(&options.commitments, &staying(snapshot));
    for (commitment, left) in options.to_mut().commitments.iter_mut().zip(left) {
        commitment.left = left;
    }
}

/// What commitments pay of the price of each of these claims: the best discounts first, as clouds do it, of equal ones by name, the last
/// one in part. What has no known price has nothing to be paid.
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
        // In millionths of the rate, which is enough to tell discounts apart.
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

/// What is paid less when some of the claims that stay are gone: their prices, less what commitments pay of them and of nothing else
/// then.
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
