//! On-demand prices of instance types, and the types that a catalogue has.

use std::collections::BTreeSet;

use poolwright_catalog::{Catalogue, InstanceTypeName, UsdPerHour};
use poolwright_terms::CapacityType;

use crate::what_if::pattern::instead;

/// Returns the on-demand price of a type.
///
/// # Errors
///
/// None is known, or there are several. The error is a sentence.
pub fn on_demand(catalogue: &Catalogue, kind: &str) -> Result<UsdPerHour, String> {
    let of = catalogue.offerings().iter().filter(|offering| {
        offering.id.instance_type.as_str() == kind && offering.id.capacity_type == CapacityType::OnDemand
    });
    let known: BTreeSet<UsdPerHour> =
        of.filter_map(|offering| offering.price.known()).filter(|price| *price > UsdPerHour::ZERO).collect();
    let mut prices = known.iter();
    match (prices.next(), prices.next()) {
        (Some(price), None) => Ok(*price),
        (Some(one), Some(other)) => Err(format!(
            "{kind} costs {one:#} and {other:#} on demand, by region; give its price in the column usd_per_hour"
        )),
        _ => Err(format!("no on-demand price of {kind} is known; give it in the column usd_per_hour")),
    }
}

/// Returns what to write instead if the catalogue has no such type.
pub fn unknown(catalogue: &Catalogue, name: &str) -> Option<String> {
    if catalogue.instance_type(&InstanceTypeName::from(name)).is_some() {
        return None;
    }
    let known: BTreeSet<&str> = catalogue.types().keys().map(InstanceTypeName::as_str).collect();
    Some(instead(name, &known))
}
