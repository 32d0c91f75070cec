//! What a node costs, by what it says about itself.

use poolwright_catalog::{Catalogue, Offering, OfferingId, UsdPerHour, Zone};
use poolwright_core::{Claim, Node};
use poolwright_terms::{CapacityType, domains, labels};

/// The offering of a node, with its price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Priced {
    /// The offering, as the catalogue names it.
    pub offering: OfferingId,
    /// Its region; `None` if the catalogue names none.
    pub region: Option<String>,
    /// Its price.
    pub price: UsdPerHour,
    /// Whether the node does not say how it was bought, so that it counts as on demand.
    pub is_assumed: bool,
}

/// Returns the offering and the price of a node, or why they are unknown: the end of a sentence. No price is guessed.
pub fn of_node(node: &Node, claim: Option<&Claim>, prices: &Catalogue) -> Result<Priced, String> {
    let (wanted, is_assumed) = match claim {
        Some(claim) => (claim.current_offering().offering.clone(), false),
        None => of_labels(node)?,
    };
    if prices.instance_type(&wanted.instance_type).is_none() {
        return Err(format!("the catalogue has no type {}", wanted.instance_type));
    }
    let OfferingId { instance_type, zone, capacity_type } = &wanted;
    let described = format!("{instance_type} in {zone} ({capacity_type})");
    let region = node.labels.get(labels::REGION).map(String::as_str);
    let Some(offering) = found(&wanted, region, prices) else {
        return Err(format!("the catalogue has no {described}"));
    };
    let Some(price) = offering.price.known() else {
        return Err(format!("the catalogue has no price of {described}"));
    };
    Ok(Priced { offering: offering.id.clone(), region: offering.region.clone(), price, is_assumed })
}

/// Says that so many nodes do not tell how they were bought; `None` if all do.
pub fn assumed(silent: usize) -> Option<String> {
    match silent {
        0 => None,
        1 => Some("1 node does not say how it was bought, so it counts as on demand".to_owned()),
        more => Some(format!("{more} nodes do not say how they were bought, so they count as on demand")),
    }
}

/// Returns what the labels of a node say, and whether they leave out how it was bought.
fn of_labels(node: &Node) -> Result<(OfferingId, bool), String> {
    let label = |key: &str| node.labels.get(key).ok_or_else(|| format!("it has no label {key}"));
    let (instance_type, zone) = (label(labels::INSTANCE_TYPE)?, label(labels::ZONE)?);
    let said = node.labels.iter().find_map(|(key, value)| match key.as_str() {
        labels::CAPACITY_TYPE => Some((key, value, value.parse().ok())),
        _ if domains::counterpart(key) == Some(labels::CAPACITY_TYPE) => {
            Some((key, value, domains::capacity_type(key, value)))
        }
        _ => None,
    });
    let capacity_type = match said {
        Some((_, _, Some(known))) => Some(known),
        Some((key, value, None)) => return Err(format!("its label {key}={value} is no known capacity type")),
        None => None,
    };
    let offering = OfferingId {
        instance_type: instance_type.as_str().into(),
        zone: Zone::new(zone.as_str()),
        capacity_type: capacity_type.unwrap_or(CapacityType::OnDemand),
    };
    Ok((offering, capacity_type.is_none()))
}

/// Returns an offering in its zone. A catalogue of prices by region has it in a zone named like the region of the node, and one without
/// regions in [`Zone::ANY`].
fn found<'c>(wanted: &OfferingId, region: Option<&str>, prices: &'c Catalogue) -> Option<&'c Offering> {
    let in_zone = |zone: &str| prices.offering(&OfferingId { zone: Zone::new(zone), ..wanted.clone() });
    prices.offering(wanted).or_else(|| in_zone(region?)).or_else(|| in_zone(Zone::ANY))
}

#[cfg(test)]
mod tests {
    use poolwright_catalog::read_csv;

    use super::super::testing::{catalogue, node};
    use super::*;

    fn priced(labels: &[(&str, &str)]) -> Result<Priced, String> {
        let mut of = node("n", "small", 4);
        for (key, value) in labels {
            of.labels.insert((*key).to_owned(), (*value).to_owned());
        }
        of_node(&of, None, &catalogue())
    }

    #[test]
    fn labels_of_every_cloud_say_how_a_node_was_bought() {
        for (key, value) in [
            ("karpenter.sh/capacity-type", "spot"),
            ("eks.amazonaws.com/capacityType", "SPOT"),
            ("cloud.google.com/gke-provisioning", "spot"),
        ] {
            let spot = priced(&[(key, value)]).expect(key);
            assert_eq!((spot.price, spot.is_assumed), (UsdPerHour::from_micros(400_000), false), "{key}");
        }
        let silent = priced(&[]).expect("it counts as on demand");
        assert_eq!((silent.price, silent.is_assumed), (UsdPerHour::from_micros(1_000_000), true));
    }

    #[test]
    fn prices_by_region_are_those_of_nodes_in_its_zones() {
        let prices = "instance_type,region,arch,allocatable_cpu_milli,allocatable_memory_mib,allocatable_pods,gpu_model,gpu_count,\
                      gpu_memory_mib_each,on_demand_usd_per_hour,price_source\n\
                      small,europe-west4,amd64,4000,16384,110,,0,,1.00,a letter\n";
        let prices = read_csv(&[("prices.csv", prices)]).expect("a catalogue");
        let mut of = node("n", "small", 4);
        of.labels.insert(labels::ZONE.to_owned(), "europe-west4-b".to_owned());
        assert!(of_node(&of, None, &prices).is_err(), "its region is unknown");
        of.labels.insert(labels::REGION.to_owned(), "europe-west4".to_owned());
        let found = of_node(&of, None, &prices).expect("the region has a price");
        assert_eq!(
            (found.offering.zone.as_str(), found.price),
            ("europe-west4", UsdPerHour::from_micros(1_000_000))
        );
    }

    #[test]
    fn a_price_that_is_unknown_is_not_guessed() {
        for (label, value, why) in [
            (labels::INSTANCE_TYPE, "huge", "the catalogue has no type huge"),
            (labels::ZONE, "zb", "the catalogue has no small in zb (on-demand)"),
            ("karpenter.sh/capacity-type", "reserved", "the catalogue has no small in za (reserved)"),
            (
                "karpenter.sh/capacity-type",
                "odd",
                "its label karpenter.sh/capacity-type=odd is no known capacity type",
            ),
        ] {
            assert_eq!(priced(&[(label, value)]).expect_err(value), why);
        }
        let mut bare = node("n", "small", 4);
        bare.labels.remove(labels::INSTANCE_TYPE);
        let why = of_node(&bare, None, &catalogue()).expect_err("its type is unknown");
        assert_eq!(why, "it has no label node.kubernetes.io/instance-type");
    }
}
