//! Rule: a spot price is below the on-demand price.

use std::collections::BTreeMap;

use poolwright_terms::CapacityType;

use crate::instance::InstanceType;
use crate::offering::Offering;
use crate::price::UnknownPrice;

/// Compares with the on-demand price of the same zone or, if that is unknown, with the cheapest on-demand price of the region.
pub(super) fn check(_types: &[InstanceType], offerings: &[Offering]) -> Vec<(usize, UnknownPrice)> {
    let mut by_zone = BTreeMap::new();
    let mut by_region = BTreeMap::new();
    for offering in offerings.iter().filter(|offering| offering.id.capacity_type == CapacityType::OnDemand) {
        if let Some(price) = offering.price.known() {
            by_zone.insert((&offering.id.instance_type, &offering.id.zone), price);
            by_region
                .entry((&offering.id.instance_type, &offering.region))
                .and_modify(|cheapest| *cheapest = price.min(*cheapest))
                .or_insert(price);
        }
    }
    let mut found = Vec::new();
    for (at, offering) in offerings.iter().enumerate() {
        if offering.id.capacity_type != CapacityType::Spot {
            continue;
        }
        let on_demand = by_zone
            .get(&(&offering.id.instance_type, &offering.id.zone))
            .or_else(|| by_region.get(&(&offering.id.instance_type, &offering.region)));
        if let (Some(spot), Some(on_demand)) = (offering.price.known(), on_demand)
            && spot >= *on_demand
        {
            found.push((at, UnknownPrice::SpotNotBelowOnDemand { spot, on_demand: *on_demand }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::InstanceTypeName;
    use crate::money::UsdPerHour;
    use crate::offering::{OfferingId, Zone};
    use crate::price::{Price, Quote};

    fn offering(zone: &str, capacity_type: CapacityType, micros: u64) -> Offering {
        Offering {
            id: OfferingId {
                instance_type: InstanceTypeName::from("g5.xlarge"),
                zone: Zone::from(zone),
                capacity_type,
            },
            region: Some("r".into()),
            available: None,
            interruptions: None,
            notice: None,
            price: Price::Known(Quote {
                usd_per_hour: UsdPerHour::from_micros(micros),
                source: "test".into(),
                as_of: None,
            }),
        }
    }

    #[test]
    fn a_spot_price_that_equals_on_demand_is_quarantined_and_one_below_is_not() {
        let offerings = [
            offering("a", CapacityType::OnDemand, 100),
            offering("a", CapacityType::Spot, 100),
            offering("b", CapacityType::OnDemand, 100),
            offering("b", CapacityType::Spot, 99),
        ];
        let spot_equals_on_demand = UnknownPrice::SpotNotBelowOnDemand {
            spot: UsdPerHour::from_micros(100),
            on_demand: UsdPerHour::from_micros(100),
        };
        assert_eq!(check(&[], &offerings), [(1, spot_equals_on_demand)]);
    }

    #[test]
    fn a_spot_zone_without_an_on_demand_price_is_compared_with_the_region() {
        let offerings = [offering("a", CapacityType::OnDemand, 100), offering("b", CapacityType::Spot, 101)];
        assert_eq!(check(&[], &offerings).len(), 1);
    }

    #[test]
    fn a_spot_price_with_nothing_to_compare_it_with_stands() {
        assert_eq!(check(&[], &[offering("a", CapacityType::Spot, 1)]), []);
    }
}
