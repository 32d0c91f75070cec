//! The offerings of a region, and its catalogue.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use poolwright_catalog::{
    Catalogue, CatalogueOrigin, InstanceType, InstanceTypeName, Offering, OfferingId, Price, PriceSource,
    UnknownPrice, UsdPerHour, Zone, sanity,
};
use poolwright_terms::{CapacityType, labels};

use super::interruptions::InterruptionRates;
use super::on_demand::OnDemandPrices;
use super::reservation::{Reservation, Reserved};
use super::spot::{self, SpotPrices};
use crate::instance::{Class, Selection, Settings, TypeFacts, Unusable, UsageClass, class, instance_type};

/// The current data about a region.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// The region.
    pub region: &'a str,
    /// The names of the usable zones that offer each type, from DescribeInstanceTypeOfferings.
    pub zones: &'a BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
    /// On-demand prices.
    pub on_demand: &'a OnDemandPrices,
    /// Spot prices.
    pub spot: &'a SpotPrices,
    /// The spot interruption rates.
    pub interruptions: &'a InterruptionRates,
    /// The reservations that the node class selects.
    pub reservations: &'a [Reservation],
    /// The current time.
    pub now: Timestamp,
}

/// An instance type that is left out of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The name.
    pub instance_type: InstanceTypeName,
    /// The reason, and the next step if there is one.
    pub reason: String,
    /// Whether the reason is that no resources are left for pods.
    pub too_small: bool,
}

/// A catalogue, and the types and reservations that are not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketCatalogue {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// The types that are left out.
    pub left_out: Vec<LeftOut>,
    /// The reservations of the reserved offerings, and the reservations that are not used.
    pub reserved: Reserved,
    /// Remarks for the reader.
    pub notes: Vec<String>,
}

/// Returns the on-demand and spot offerings of these types. The rules of [`sanity`] quarantine implausible prices. A type that
/// EC2 sells only in capacity blocks ([`class::is_sold_in_blocks_only`]) has no offering here, unless the price list of the
/// region has a price for it. Types and zones whose names are not valid label values are skipped.
pub fn offerings(types: &[(&TypeFacts, InstanceType)], market: Market<'_>) -> Vec<Offering> {
    let mut offerings = Vec::new();
    for (facts, kind) in types {
        let zones = market.zones.get(&kind.name).into_iter().flatten();
        if class::is_sold_in_blocks_only(facts) && market.on_demand.price(&kind.name).known().is_none() {
            continue;
        }
        for zone in zones.filter(|zone| labels::is_value(zone.as_str()) && !zone.as_str().is_empty()) {
            let offer = |capacity_type, price, interruptions| Offering {
                id: OfferingId { instance_type: kind.name.clone(), zone: zone.clone(), capacity_type },
                region: Some(market.region.to_owned()),
                price,
                available: None,
                interruptions,
                notice: None,
            };
            // The prices of a region do not apply to its Local Zones and Wavelength Zones.
            let is_of_region = is_of_region(zone.as_str(), market.region);
            let on_demand = if is_of_region {
                market.on_demand.price(&kind.name)
            } else {
                Price::Unknown(UnknownPrice::Missing)
            };
            if let Some(spot) = market.spot.get(&kind.name, zone)
                && facts.usage_classes.contains(&UsageClass::Spot)
            {
                let price = with_confidence(spot.price.clone(), on_demand.known());
                let interruptions = market.interruptions.of(&kind.name).filter(|_| is_of_region);
                offerings.push(offer(CapacityType::Spot, price, interruptions));
            }
            if facts.usage_classes.contains(&UsageClass::OnDemand) {
                offerings.push(offer(CapacityType::OnDemand, on_demand, None));
            }
        }
    }
    let kinds: Vec<_> = types.iter().map(|(_, kind)| kind.clone()).collect();
    sanity::quarantine(&kinds, &mut offerings);
    offerings
}

/// Returns whether a zone is an availability zone of the region, by its name: `us-east-1a` of `us-east-1`, but not the Local Zone
/// `us-east-1-atl-1a`.
fn is_of_region(zone: &str, region: &str) -> bool {
    zone.strip_prefix(region).is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

/// Marks the source of a spot price at or below a tenth of the on-demand price. That is AWS's minimum, so the price says little
/// about the available capacity. The price itself stays.
fn with_confidence(spot: Price, on_demand: Option<UsdPerHour>) -> Price {
    match (spot, on_demand) {
        // Round up to the micro-dollar.
        (Price::Known(mut quote), Some(on_demand))
            if quote.usd_per_hour.micros() <= on_demand.micros().div_ceil(10) =>
        {
            quote.source = PriceSource::from(spot::AT_FLOOR);
            Price::Known(quote)
        }
        (spot, _) => spot,
    }
}

/// Makes the catalogue of a region from the selected types and their offerings.
pub fn catalogue(
    described: &[TypeFacts],
    selection: &Selection,
    settings: &Settings,
    market: Market<'_>,
) -> MarketCatalogue {
    let mut left_out = Vec::new();
    let mut types: BTreeMap<&InstanceTypeName, (&TypeFacts, InstanceType)> = BTreeMap::new();
    for facts in described {
        let kind = match selection.leaves_out(facts) {
            Some(reason) => Err((reason, false)),
            None => instance_type(facts, settings).map_err(|class| {
                (class.reason().unwrap_or_default(), class == Class::Unusable(Unusable::TooSmall))
            }),
        };
        match kind {
            Ok(kind) => {
                types.insert(&facts.name, (facts, kind));
            }
            Err((reason, too_small)) => {
                left_out.push(LeftOut { instance_type: facts.name.clone(), reason, too_small });
            }
        }
    }
    let reserved =
        Reserved::of(market.reservations, market.region, market.now, |name| types.contains_key(name));
    let types: Vec<_> = types.into_values().collect();
    let mut all = offerings(&types, market);
    let notes = notes(market, &all);
    all.extend(reserved.offerings.iter().cloned());
    let origin = CatalogueOrigin::of(source(market, &reserved), &all);
    let types = types.into_iter().map(|(_, kind)| kind).collect();
    MarketCatalogue { catalogue: Catalogue::new(origin, types, all), left_out, reserved, notes }
}

/// Names the sources of the prices.
fn source(market: Market<'_>, reserved: &Reserved) -> String {
    let mut sources = vec![format!("on-demand: {}", market.on_demand.source())];
    if !market.spot.is_empty() {
        sources.push(format!("spot: {}", spot::SOURCE));
    }
    if !reserved.offerings.is_empty() {
        sources.push("capacity reservations".to_owned());
    }
    format!("aws {} ({})", market.region, sources.join("; "))
}

fn notes(market: Market<'_>, offerings: &[Offering]) -> Vec<String> {
    let mut notes: Vec<String> = market.on_demand.note().map(str::to_owned).into_iter().collect();
    let first = |what: &str, refused: &[String]| {
        let (first, number) = (refused.first()?, refused.len());
        Some(format!("{number} {what} could not be used; the first: {first}"))
    };
    let texts = |refused: &mut dyn Iterator<Item = String>| refused.collect::<Vec<_>>();
    let on_demand = texts(&mut market.on_demand.refused().iter().map(ToString::to_string));
    let spot = texts(&mut market.spot.refused().iter().map(ToString::to_string));
    notes.extend(first("entries of the price list", &on_demand));
    notes.extend(first("entries of the spot price history", &spot));
    let local: BTreeSet<_> = offerings
        .iter()
        .map(|offering| offering.id.zone.as_str())
        .filter(|zone| !is_of_region(zone, market.region))
        .collect();
    if !local.is_empty() {
        let zones = local.into_iter().collect::<Vec<_>>().join(", ");
        notes.push(format!(
            "no on-demand prices are known for {zones}: Local Zones have their own prices; to buy there all the same, list instance types in allowUnknownPrices of the NodePool"
        ));
    }
    notes
}
