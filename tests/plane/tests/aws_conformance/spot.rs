//! Spot capacity: its price, its launch, and the fallback to on-demand.

use poolwright_catalog::{Catalogue, RankedOffering, UsdPerHour};
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{CloudProvider, LaunchError};
use poolwright_terms::CapacityType;

use crate::world::{AwsWorld, pool};

const ZONE: &str = "us-east-1a";

/// Makes a world that sells two types as spot at nearly the same price.
async fn world() -> AwsWorld {
    let world = AwsWorld::new().await.unwrap();
    world.front.sell_spot([("g5.xlarge", ZONE, "0.4001"), ("g5.2xlarge", ZONE, "0.41")]);
    world
}

/// Returns the offering of a type in the zone.
fn ranked(catalogue: &Catalogue, name: &str, capacity_type: CapacityType) -> RankedOffering {
    let found = catalogue.offerings().iter().find(|one| {
        let id = &one.id;
        id.instance_type.as_str() == name && id.zone.as_str() == ZONE && id.capacity_type == capacity_type
    });
    let found = found.unwrap_or_else(|| panic!("{name} is not sold as {capacity_type:?}"));
    RankedOffering {
        offering: found.id.clone(),
        price: found.price.known(),
        allocatable: catalogue.types()[&found.id.instance_type].allocatable.clone(),
    }
}

#[tokio::test]
async fn a_spot_offering_has_the_current_price_of_its_zone_or_none() {
    let world = world().await;
    let catalogue = world.connect().await.unwrap().catalogue(&world.node_class()).await.unwrap();
    let price = |name: &str, zone: &str| {
        let mut all = catalogue.offerings().iter();
        let is_it = |id: &poolwright_catalog::OfferingId| {
            id.instance_type.as_str() == name
                && id.zone.as_str() == zone
                && id.capacity_type == CapacityType::Spot
        };
        all.find(|one| is_it(&one.id)).and_then(|one| one.price.known()).map(UsdPerHour::micros)
    };
    assert_eq!(price("g5.xlarge", ZONE), Some(400_100));
    assert_eq!(price("g5.2xlarge", ZONE), Some(410_000));
    assert_eq!(price("g5.xlarge", "us-east-1b"), None);
    assert_eq!(price("g4dn.xlarge", ZONE), None);
}

#[tokio::test]
async fn ec2_chooses_the_spot_offering_with_more_capacity_at_a_similar_price() {
    let world = world().await;
    let provider = world.connect().await.unwrap();
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let [first, second] =
        ["g5.xlarge", "g5.2xlarge"].map(|name| ranked(&catalogue, name, CapacityType::Spot));
    world.front.set_stock([(pool(&first.offering), 1), (pool(&second.offering), 50)]);
    let launched = provider.launch(&world.request(0, &[first, second.clone()])).await.unwrap();
    assert_eq!(launched.instance.offering, second.offering);
    let listed = world.connect().await.unwrap().list().await.unwrap();
    assert!(matches!(&listed[..], [one] if one.offering == second.offering), "{listed:?}");

    let [fleet] = &world.front.fleets()[..] else { panic!("one order for both") };
    assert_eq!(fleet["TargetCapacitySpecification.DefaultTargetCapacityType"], "spot");
    assert_eq!(fleet["SpotOptions.AllocationStrategy"], "price-capacity-optimized");
    let types = fleet.iter().filter(|(name, _)| name.ends_with(".InstanceType"));
    let types: std::collections::BTreeSet<&str> = types.map(|(_, value)| value.as_str()).collect();
    assert_eq!(types, ["g5.2xlarge", "g5.xlarge"].into());
    assert!(!fleet.keys().any(|name| name.ends_with(".Priority")), "{fleet:?}");
}

#[tokio::test]
async fn on_demand_replaces_spot_without_stock_or_quota_and_the_reason_is_reported() {
    let world = world().await;
    let provider = world.connect().await.unwrap();
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let spot = ranked(&catalogue, "g5.xlarge", CapacityType::Spot);
    let bought = ranked(&catalogue, "g5.xlarge", CapacityType::OnDemand);
    let codes = [
        ("InsufficientInstanceCapacity", false),
        ("UnfulfillableCapacity", false),
        ("MaxSpotInstanceCountExceeded", true),
    ];
    for (number, (code, is_quota)) in codes.into_iter().enumerate() {
        world.front.refuse([(pool(&spot.offering), code.to_owned())]);
        let launched =
            provider.launch(&world.request(number, &[spot.clone(), bought.clone()])).await.unwrap();
        assert_eq!(launched.instance.offering, bought.offering, "{code}");
        let [failed] = &launched.failed[..] else { panic!("{code}: {:?}", launched.failed) };
        assert_eq!(failed.offering, spot.offering, "{code}");
        assert_eq!(matches!(failed.error, LaunchError::Quota(_)), is_quota, "{code}: {}", failed.error);
    }
}
