//! Prepaid capacity: its offerings cost nothing and are limited, and a launch names the reservation.

use std::collections::BTreeMap;

use poolwright_catalog::{RankedOffering, UsdPerHour};
use poolwright_plane::aws::Capacity;
use poolwright_provider_contract::conformance::World;
use poolwright_provider_contract::{CloudProvider, LaunchError};
use poolwright_terms::CapacityType;
use serde_json::json;

use super::two_offerings;
use super::world::AwsWorld;

/// Returns the newest version of the cluster's first launch template.
pub async fn template(world: &AwsWorld) -> String {
    let ours = format!(
        "Action=DescribeLaunchTemplates&Version=2016-11-15&Filter.1.Name=tag:poolwright.dev/cluster&Filter.1.Value.1={}",
        world.cluster
    );
    let templates = world.front.call("ec2", &ours).await.unwrap();
    let name = templates.split("<launchTemplateName>").nth(1).and_then(|rest| rest.split('<').next());
    let versions = format!(
        "Action=DescribeLaunchTemplateVersions&Version=2016-11-15&LaunchTemplateName={}",
        name.expect("a template")
    );
    world.front.call("ec2", &versions).await.unwrap()
}

/// Returns the capacity type that each fleet asked for.
fn target(world: &AwsWorld) -> Vec<String> {
    let kind = "TargetCapacitySpecification.DefaultTargetCapacityType";
    world.front.fleets().into_iter().map(|fleet| fleet[kind].clone()).collect()
}

pub fn capacity(available: usize, block: bool) -> Capacity {
    Capacity {
        instance_type: "g5.xlarge".to_owned(),
        zone: "us-east-1a".to_owned(),
        total: 2,
        available,
        block,
        owner: "123456789012".to_owned(),
        open: false,
        tags: BTreeMap::new(),
    }
}

#[tokio::test]
async fn reserved_capacity_costs_nothing_and_is_launched_by_its_id() {
    let world = AwsWorld::new().await.unwrap();
    world.front.hold_capacity("cr-0a1b2c3d4e5f60718", capacity(2, false));
    world.front.hold_capacity("cr-00000000000000000", capacity(2, false));
    world.merge_class(json!({"capacityReservationSelectorTerms": [{"id": "cr-0a1b2c3d4e5f60718"}]}));
    let provider = world.connect().await.unwrap();
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let reserved: Vec<_> =
        catalogue.offerings().iter().filter(|one| one.id.capacity_type == CapacityType::Reserved).collect();
    let [reserved] = &reserved[..] else { panic!("{reserved:?}") };
    assert_eq!((reserved.price.known(), reserved.available), (Some(UsdPerHour::ZERO), Some(2)));
    let mut offerings = two_offerings(&provider, &world).await;
    let allocatable = offerings[0].allocatable.clone();
    offerings.insert(
        0,
        RankedOffering { offering: reserved.id.clone(), price: reserved.price.known(), allocatable },
    );

    let launched = provider.launch(&world.request(0, &offerings)).await.unwrap();
    assert_eq!(launched.instance.offering, reserved.id);
    assert_eq!(launched.failed, []);
    let fresh = world.connect().await.unwrap();
    assert_eq!(
        fresh.list().await.unwrap()[0].offering,
        reserved.id,
        "whoever comes next sees how it is paid for"
    );
    let data = template(&world).await;
    assert!(data.contains("<capacityReservationId>cr-0a1b2c3d4e5f60718</capacityReservationId>"), "{data}");
    assert!(!data.contains("capacity-block"), "{data}");
    assert_eq!(target(&world), ["on-demand"]);

    // The reservation is used up: the next offering is bought, and the failure says why.
    world.front.hold_capacity("cr-0a1b2c3d4e5f60718", capacity(0, false));
    let late = world.connect().await.unwrap();
    let launched = late.launch(&world.request(1, &offerings)).await.unwrap();
    assert_eq!(launched.instance.offering, offerings[1].offering);
    let [failed] = &launched.failed[..] else { panic!("{:?}", launched.failed) };
    assert_eq!(failed.offering, reserved.id);
    assert!(matches!(failed.error, LaunchError::StockOut(_)), "{}", failed.error);
}

/// Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html>.
#[tokio::test]
async fn a_capacity_block_launch_names_the_block() {
    let world = AwsWorld::new().await.unwrap();
    world.front.hold_capacity("cr-0a1b2c3d4e5f60718", capacity(1, true));
    world.merge_class(json!({"capacityReservationSelectorTerms": [{"id": "cr-0a1b2c3d4e5f60718"}]}));
    let provider = world.connect().await.unwrap();
    let catalogue = provider.catalogue(&world.node_class()).await.unwrap();
    let block = catalogue.offerings().iter().find(|one| one.id.capacity_type == CapacityType::Reserved);
    let block = block.expect("the block is sold");
    assert_eq!((block.price.known(), block.available), (Some(UsdPerHour::ZERO), Some(1)));
    let allocatable = catalogue.types()[&block.id.instance_type].allocatable.clone();
    let offerings = [RankedOffering { offering: block.id.clone(), price: block.price.known(), allocatable }];
    let launched = provider.launch(&world.request(0, &offerings)).await.unwrap();
    assert_eq!(launched.instance.offering, block.id);
    assert_eq!(target(&world), ["capacity-block"]);
    let data = template(&world).await;
    assert!(data.contains("<marketType>capacity-block</marketType>"), "{data}");
    assert!(data.contains("<capacityReservationId>cr-0a1b2c3d4e5f60718</capacityReservationId>"), "{data}");
    // A repeated launch gets the same instance, and nothing more is ordered.
    let again = world.connect().await.unwrap().launch(&world.request(0, &offerings)).await.unwrap();
    assert_eq!(again.instance.provider_id, launched.instance.provider_id);
    assert_eq!(target(&world).len(), 1);
}
