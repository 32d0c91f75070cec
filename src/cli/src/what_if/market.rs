//! Changes of what may be bought: types and zones that are missing, prices, and interruption rates.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_catalog::{Catalogue, Interruptions, Offering, Price, PriceSource, Quote, UsdPerHour};
use poolwright_core::plan::SpotRisk;
use poolwright_core::{Operator, Pool, Snapshot};
use poolwright_terms::{CapacityType, labels};

use super::offerings;
use super::pattern::{fits, instead};
use crate::args::{Factor, NewPrice, PriceChange, WHOLE};
use crate::exit::Failure;

/// Leaves out the instance types of a pattern.
///
/// # Errors
///
/// No pool may buy such a type.
pub fn without(snapshot: &mut Snapshot, pattern: &str) -> Result<(), Failure> {
    let sold = types(snapshot);
    if !sold.iter().any(|name| fits(pattern, name)) {
        return Err(unmatched(
            "--without",
            pattern,
            "no instance type that may be bought has this name",
            &sold,
        ));
    }
    in_catalogues(snapshot, |catalogue| catalogue.filtered(|kind, _| !fits(pattern, kind.name.as_str())));
    Ok(())
}

/// Returns whether anything may be bought.
pub fn sells(snapshot: &Snapshot) -> bool {
    !offerings(snapshot).is_empty()
}

/// Leaves out the offerings of a zone. Returns whether a pool might buy one.
pub fn without_zone(snapshot: &mut Snapshot, zone: &str) -> bool {
    let is_there = zones(snapshot).contains(zone);
    in_catalogues(snapshot, |catalogue| catalogue.filtered(|_, offering| offering.id.zone.as_str() != zone));
    is_there
}

/// Returns the zones of what may be bought.
pub fn zones(snapshot: &Snapshot) -> BTreeSet<&str> {
    offerings(snapshot).into_iter().map(|offering| offering.id.zone.as_str()).collect()
}

/// Returns the GPU models of what may be bought.
pub fn models(snapshot: &Snapshot) -> BTreeSet<&str> {
    let bought = types(snapshot);
    let kinds = catalogues(snapshot).flat_map(|catalogue| catalogue.types().values());
    let kinds = kinds.filter(|kind| bought.contains(kind.name.as_str()));
    kinds.filter_map(|kind| Some(kind.gpu.as_ref()?.model.as_str())).collect()
}

/// Leaves out all spot offerings.
///
/// # Errors
///
/// No pool may buy any.
pub fn without_spot(snapshot: &mut Snapshot) -> Result<(), Failure> {
    if !buys_spot(snapshot) {
        return Err(Failure::bad_input(
            "--no-spot: matches nothing, because no pool may buy a spot node; remove the flag",
        ));
    }
    in_catalogues(snapshot, |catalogue| {
        catalogue.filtered(|_, offering| offering.id.capacity_type != CapacityType::Spot)
    });
    Ok(())
}

/// Returns whether a pool may buy a spot node.
fn buys_spot(snapshot: &Snapshot) -> bool {
    offerings(snapshot).iter().any(|offering| offering.id.capacity_type == CapacityType::Spot)
}

/// Lets all pools buy spot nodes.
///
/// # Errors
///
/// No pool forbids them.
pub fn with_spot(snapshot: &mut Snapshot) -> Result<(), Failure> {
    let mut pools: Vec<Pool> = snapshot.pools.values().map(|pool| Pool::clone(pool)).collect();
    // Without a pool, the flags of the plan allow them.
    let mut changed = snapshot.has_implicit_pool();
    for pool in &mut pools {
        let of_capacity = pool.requirements.iter_mut().filter(|one| one.key == labels::CAPACITY_TYPE);
        for requirement in of_capacity {
            let spot = CapacityType::Spot.as_str();
            changed |= match &mut requirement.operator {
                Operator::In(values) => values.insert(spot.to_owned()),
                Operator::NotIn(values) => values.remove(spot),
                _ => false,
            };
        }
    }
    if !changed {
        return Err(Failure::bad_input(
            "--spot: matches nothing, because every pool may buy spot nodes already; remove the flag",
        ));
    }
    snapshot.pools.extend(pools.into_iter().map(|pool| (pool.name.clone(), Arc::new(pool))));
    if !buys_spot(snapshot) {
        return Err(Failure::bad_input("--spot: no spot offering may be bought; use a catalogue with some"));
    }
    Ok(())
}

/// Changes the prices of what may be bought. `prices` has those of nodes that run, and changes too.
///
/// # Errors
///
/// No type that may be bought or that runs has such a name, or it has no price that changes.
pub fn price(snapshot: &mut Snapshot, prices: &mut Catalogue, change: &PriceChange) -> Result<(), Failure> {
    let mut known = types(snapshot);
    let running = snapshot.nodes.values().filter_map(|node| node.labels.get(labels::INSTANCE_TYPE));
    known.extend(running.map(String::as_str));
    let claims = snapshot.claims.values();
    known.extend(claims.map(|claim| claim.current_offering().offering.instance_type.as_str()));
    if !known.iter().any(|name| fits(&change.types, name)) {
        let why = "no instance type that may be bought, or that runs, has this name";
        return Err(unmatched("--price", &change.types, why, &known));
    }
    let mut changed = 0;
    let mut of = |catalogue: &Catalogue| {
        let offerings = catalogue.offerings().iter().map(|offering| match priced(offering, change) {
            Some(priced) => {
                changed += 1;
                priced
            }
            None => offering.clone(),
        });
        let offerings = offerings.collect();
        catalogue.with_offerings(offerings)
    };
    in_catalogues(snapshot, &mut of);
    *prices = of(prices);
    if changed == 0 {
        return Err(Failure::bad_input(format!(
            "--price {}: matches nothing, because no such offering has a known price to change",
            change.written
        )));
    }
    Ok(())
}

/// Returns an offering with its new price; `None` if the change is not about it.
fn priced(offering: &Offering, change: &PriceChange) -> Option<Offering> {
    let id = &offering.id;
    if !fits(&change.types, id.instance_type.as_str()) {
        return None;
    }
    let (old, as_of) = match &offering.price {
        Price::Known(quote) => (Some(quote.usd_per_hour), quote.as_of),
        Price::Unknown(_) => (None, None),
    };
    let times = |percent: u64| {
        let scaled = u128::from(old?.micros()) * u128::from(percent);
        let rounded = (scaled + u128::from(WHOLE / 2)) / u128::from(WHOLE);
        // Nothing becomes free. What is paid for already is free of charge, and stays so.
        let least = u64::from(old? > UsdPerHour::ZERO);
        Some(UsdPerHour::from_micros(u64::try_from(rounded).unwrap_or(u64::MAX).max(least)))
    };
    let usd_per_hour = match change.to {
        NewPrice::Rise(percent) => times(WHOLE + percent)?,
        NewPrice::Fall(percent) => times(WHOLE - percent)?,
        NewPrice::Be(amount) if id.capacity_type == CapacityType::OnDemand => amount,
        NewPrice::Be(_) => return None,
    };
    let source = PriceSource::new(format!("--price {}", change.written));
    let quote = Quote { usd_per_hour, source, as_of };
    Some(Offering { price: Price::Known(quote), ..offering.clone() })
}

/// Multiplies the interruption rates of spot offerings. Those without a rate count with the usual one.
///
/// # Errors
///
/// No pool may buy a spot node.
pub fn interrupt(snapshot: &mut Snapshot, times: Factor) -> Result<(), Failure> {
    if !buys_spot(snapshot) {
        return Err(Failure::bad_input(
            "--interruptions: matches nothing, because no pool may buy a spot node; add --spot, or remove the flag",
        ));
    }
    let usual = SpotRisk::default().prior;
    in_catalogues(snapshot, |catalogue| {
        let offerings = catalogue.offerings().iter().map(|offering| {
            if offering.id.capacity_type != CapacityType::Spot {
                return offering.clone();
            }
            let known = offering.interruptions.as_ref();
            let rate = known.map_or(usual, |known| known.per_million_hours);
            let interruptions = Interruptions {
                per_million_hours: u32::try_from(times.of(rate.into())).unwrap_or(u32::MAX),
                source: PriceSource::new(format!("--interruptions x{times}")),
                as_of: known.and_then(|known| known.as_of),
            };
            Offering { interruptions: Some(interruptions), ..offering.clone() }
        });
        catalogue.with_offerings(offerings.collect())
    });
    Ok(())
}

/// Returns the names of the types that may be bought.
fn types(snapshot: &Snapshot) -> BTreeSet<&str> {
    offerings(snapshot).into_iter().map(|offering| offering.id.instance_type.as_str()).collect()
}

fn catalogues(snapshot: &Snapshot) -> impl Iterator<Item = &Catalogue> {
    snapshot.catalogues.values().filter_map(|sold| sold.as_deref().ok())
}

/// Changes what each node class sells.
pub fn in_catalogues(snapshot: &mut Snapshot, mut change: impl FnMut(&Catalogue) -> Catalogue) {
    for sold in snapshot.catalogues.values_mut().flatten() {
        *sold = Arc::new(change(sold));
    }
}

fn unmatched(flag: &str, written: &str, why: &str, known: &BTreeSet<&str>) -> Failure {
    Failure::bad_input(format!(
        "{flag} {written}: matches nothing, because {why}; {}",
        instead(written, known)
    ))
}

#[cfg(test)]
pub mod tests {
    use poolwright_catalog::{InstanceTypeName, OfferingId, Zone, builtin};
    use poolwright_core::Requirement;

    use super::*;
    use crate::plan::implicit;

    /// Returns a snapshot with a pool that may buy the types of one region with these capacity types.
    pub fn world(values: &[CapacityType]) -> Snapshot {
        let catalogue = builtin().filtered(|_, offering| {
            offering.id.zone.as_str().starts_with("us-east-1") && values.contains(&offering.id.capacity_type)
        });
        let mut world = Snapshot::default();
        let pool = implicit();
        world.catalogues.insert(pool.node_class.clone(), Ok(Arc::new(catalogue)));
        world.pools.insert(pool.name.clone(), Arc::new(pool));
        world
    }

    /// Lets the pool of a world buy only this type.
    fn only(world: &mut Snapshot, name: &str) {
        let operator = Operator::In([name.to_owned()].into());
        let requirements = vec![Requirement { key: labels::INSTANCE_TYPE.to_owned(), operator }];
        let pool = Pool { requirements, ..implicit() };
        world.pools.insert(pool.name.clone(), Arc::new(pool));
    }

    fn id(name: &str) -> OfferingId {
        OfferingId {
            instance_type: InstanceTypeName::from(name),
            zone: Zone::from("us-east-1a"),
            capacity_type: CapacityType::OnDemand,
        }
    }

    fn price_of(snapshot: &Snapshot, name: &str) -> Option<UsdPerHour> {
        catalogues(snapshot).find_map(|catalogue| catalogue.offering(&id(name))?.price.known())
    }

    fn told(result: Result<(), Failure>) -> String {
        match result {
            Err(Failure::BadInput(told)) => told,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn types_of_a_pattern_are_left_out_and_a_pattern_without_a_type_is_refused() {
        let mut world = world(&[CapacityType::OnDemand]);
        assert!(price_of(&world, "g5.xlarge").is_some() && price_of(&world, "g6.xlarge").is_some());
        without(&mut world, "g5.*").expect("there are such types");
        assert!(price_of(&world, "g5.xlarge").is_none() && price_of(&world, "g6.xlarge").is_some());
        let again = told(without(&mut world, "g5.*"));
        assert!(again.starts_with("--without g5.*: matches nothing, because"), "{again}");
        let misspelt = told(without(&mut world, "g6.xlarg"));
        assert!(misspelt.ends_with("; did you mean g6.xlarge?"), "{misspelt}");
    }

    #[test]
    fn a_zone_is_left_out() {
        let mut world = world(&[CapacityType::OnDemand]);
        assert!(zones(&world).contains("us-east-1a"));
        assert!(without_zone(&mut world, "us-east-1a"));
        assert!(!zones(&world).contains("us-east-1a"));
        assert!(!without_zone(&mut world, "us-east-1a"), "it is gone");
    }

    #[test]
    fn prices_change_also_those_of_nodes_that_run() {
        let (mut world, mut prices) = (world(&[CapacityType::OnDemand]), builtin());
        let change = |to| PriceChange { types: "g5.xlarge".to_owned(), to, written: "g5.xlarge".to_owned() };
        let before = price_of(&world, "g5.xlarge").expect("a price");
        price(&mut world, &mut prices, &change(NewPrice::Rise(WHOLE))).expect("it has a price");
        assert_eq!(price_of(&world, "g5.xlarge"), Some(before.times(2)));
        assert_eq!(
            prices.offering(&id("g5.xlarge")).and_then(|one| one.price.known()),
            Some(before.times(2))
        );
        price(&mut world, &mut prices, &change(NewPrice::Fall(WHOLE / 2))).expect("it has a price");
        assert_eq!(price_of(&world, "g5.xlarge"), Some(before));
        let set = UsdPerHour::from_micros(1);
        price(&mut world, &mut prices, &change(NewPrice::Be(set))).expect("it has a price");
        price(&mut world, &mut prices, &change(NewPrice::Fall(WHOLE - 1))).expect("it has a price");
        assert_eq!(price_of(&world, "g5.xlarge"), Some(set), "nothing becomes free");
        let unknown = PriceChange { types: "g55.*".to_owned(), ..change(NewPrice::Be(set)) };
        assert!(told(price(&mut world, &mut prices, &unknown)).contains("matches nothing"));
    }

    #[test]
    fn a_type_that_no_pool_may_buy_is_refused() {
        let (mut world, mut prices) = (world(&[CapacityType::OnDemand]), builtin());
        only(&mut world, "g5.xlarge");
        assert_eq!(types(&world), BTreeSet::from(["g5.xlarge"]));
        assert_eq!(models(&world), BTreeSet::from(["a10g"]));
        assert!(told(without(&mut world, "g6.xlarge")).contains("matches nothing"));
        let to = NewPrice::Rise(WHOLE);
        let change = PriceChange { types: "g6.xlarge".to_owned(), to, written: "g6.xlarge".to_owned() };
        assert!(told(price(&mut world, &mut prices, &change)).contains("matches nothing"));
        only(&mut world, "none");
        assert!(!sells(&world) && zones(&world).is_empty());
        assert!(!without_zone(&mut world, "us-east-1a"), "nothing is bought there");
    }

    #[test]
    fn a_change_of_spot_without_spot_is_refused() {
        let mut without = world(&[CapacityType::OnDemand]);
        assert!(told(without_spot(&mut without)).contains("matches nothing"));
        assert!(told(with_spot(&mut without)).contains("no spot offering may be bought"));
        assert!(told(interrupt(&mut without, Factor::HALF_MORE)).contains("matches nothing"));
        let mut with = world(&[CapacityType::OnDemand, CapacityType::Spot]);
        with_spot(&mut with).expect("there are spot offerings");
        interrupt(&mut with, Factor::HALF_MORE).expect("there are spot offerings");
        without_spot(&mut with).expect("there are spot offerings");
        assert!(!buys_spot(&with) && sells(&with));
    }
}
