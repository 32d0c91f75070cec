//! Spot offerings that the catalogue lacks. The plan buys on demand what it might get cheaper, so it says so.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{Plan, PlannedClaim};
use poolwright_core::{Snapshot, rules};
use poolwright_terms::CapacityType;
use poolwright_terms::labels::CAPACITY_TYPE;

/// The most types that the note names.
const SHOWN: usize = 4;

/// Returns a note on the types that the plan buys on demand because the catalogue has no spot offering of them; `None` if there are
/// none. Spot that the pool, the flags or the whole catalogue exclude is not missed.
pub fn note(plan: &Plan, snapshot: &Snapshot) -> Option<String> {
    let missed: BTreeSet<&str> = plan
        .claims
        .iter()
        .filter(|claim| is_missed(claim, snapshot))
        .map(|claim| claim.offering().instance_type.as_str())
        .collect();
    let (is, spot) = if missed.len() == 1 { ("it is", "price") } else { ("they are", "prices") };
    let named: Vec<&str> = missed.iter().take(SHOWN).copied().collect();
    let more = missed.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more types") } else { String::new() };
    (!missed.is_empty()).then(|| {
        format!(
            "the catalogue has no spot {spot} of {}{more}, so {is} planned on demand; --catalogue takes spot prices (docs/catalogue.md)",
            named.join(", ")
        )
    })
}

/// Returns whether a claim is bought on demand only because the catalogue lacks the spot price.
fn is_missed(claim: &PlannedClaim, snapshot: &Snapshot) -> bool {
    let offering = claim.offering();
    let Some(Ok(catalogue)) = snapshot.catalogues.get(&claim.node_class) else { return false };
    let labels = BTreeMap::from([(CAPACITY_TYPE.to_owned(), CapacityType::Spot.as_str().to_owned())]);
    let allows_spot = snapshot.pools.get(&claim.pool).is_some_and(|pool| {
        let of_capacity = pool.requirements.iter().filter(|one| one.key == CAPACITY_TYPE);
        of_capacity.into_iter().all(|one| rules::matches(one, &labels))
    });
    offering.capacity_type == CapacityType::OnDemand
        && allows_spot
        && has_spot(catalogue, |_| true)
        && !has_spot(catalogue, |name| name == offering.instance_type.as_str())
}

fn has_spot(catalogue: &Catalogue, of: impl Fn(&str) -> bool) -> bool {
    let is_spot = |id: &poolwright_catalog::OfferingId| id.capacity_type == CapacityType::Spot;
    catalogue.offerings().iter().any(|one| is_spot(&one.id) && of(one.id.instance_type.as_str()))
}
