//! What can be ordered in a region, and the catalogue of it.

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

/// What AWS says of a region now.
#[derive(Clone, Copy, Debug)]
pub struct Market<'a> {
    /// The region.
    pub region: &'a str,
    /// The zones each type is offered in, by name: DescribeInstanceTypeOfferings, of the zones that can be used.
    pub zones: &'a BTreeMap<InstanceTypeName, BTreeSet<Zone>>,
    /// On-demand prices.
    pub on_demand: &'a OnDemandPrices,
    /// Spot prices.
    pub spot: &'a SpotPrices,
    /// How often spot instances are taken back.
    pub interruptions: &'a InterruptionRates,
    /// Reservations that may be used.
    pub reservations: &'a [Reservation],
    /// The time.
    pub now: Timestamp,
}

/// A type that the catalogue does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its name.
    pub instance_type: InstanceTypeName,
    /// Why, and what to do about it.
    pub reason: String,
    /// Whether it is for what its node would keep: nothing would be left for pods.
    pub too_small: bool,
}

/// The catalogue, and what is not in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarketCatalogue {
    /// What can be ordered.
    pub catalogue: Catalogue,
    /// Types that are left out.
    pub left_out: Vec<LeftOut>,
    /// What is behind the reserved offerings, and what reservations are not sold from.
    pub reserved: Reserved,
    /// What a person should know of it.
    pub notes: Vec<String>,
}

/// What can be ordered of these types on demand and as spot, with every price that cannot be right in quarantine by the
/// rules of [`sanity`]. Of a type that [`class::is_sold_in_blocks_only`] there is nothing, unless the region's list has a
/// price for it all the same: then AWS sells it there by now. Types and zones whose names no label
/// can have are passed over.
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
            };
            // What AWS says of a region holds for none of its local and wavelength zones.
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

/// Whether a zone is an availability zone of the region, by its name: `us-east-1a` of `us-east-1`, and not the local zone
/// `us-east-1-atl-1a`.
fn is_of_region(zone: &str, region: &str) -> bool {
    zone.strip_prefix(region).is_some_and(|letter| matches!(letter.as_bytes(), [b'a'..=b'z']))
}

/// A spot price at a tenth of on-demand or below is where AWS's discounts end, and says little of what there is: it stands,
/// and its source says so.
fn with_confidence(spot: Price, on_demand: Option<UsdPerHour>) -> Price {
    match (spot, on_demand) {
        // A tenth, rounded up to the micro-dollar.
        (Price::Known(mut quote), Some(on_demand))
            if quote.usd_per_hour.micros() <= on_demand.micros().div_ceil(10) =>
        {
            quote.source = PriceSource::from(spot::AT_FLOOR);
            Price::Known(quote)
        }
        (spot, _) => spot,
    }
}

/// The catalogue of a region: the types that are described and selected, and what can be ordered of them.
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

/// Who said what is in it.
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
        Some(format!("{number} {what} could not be used, the first: {first}"))
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
            "no on-demand price is known in {zones}: AWS prices local zones apart; lay a catalogue file with prices over it"
        ));
    }
    notes
}
