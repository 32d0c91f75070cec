//! Tests of the simulated cloud: the conformance suite of providers, and the behaviour of clouds towards their customers.

mod world;

use std::time::Duration;

use async_trait::async_trait;
use poolwright_catalog::OfferingId;
use poolwright_provider_contract::LaunchError;
use poolwright_provider_contract::conformance::{Failure, Fixture, World, run_all};
use poolwright_sim::accidents::Rates;
use poolwright_sim::cloud::{Notice, Quotas};
use poolwright_terms::CapacityType;
use world::SimWorld;

struct Sim;

#[async_trait(?Send)]
impl Fixture for Sim {
    async fn world(&self, _: &'static str) -> Result<Box<dyn World>, Failure> {
        Ok(Box::new(SimWorld::new(1, Rates::NONE, Quotas::new())))
    }
}

#[tokio::test(start_paused = true)]
async fn the_simulated_cloud_passes_the_conformance_suite() {
    let report = run_all(&Sim).await;
    println!("{report}");
    assert!(report.passed(), "{report}");
}

#[tokio::test(start_paused = true)]
async fn an_order_beyond_the_quota_of_a_family_is_refused_and_buys_nothing_until_there_is_room() {
    let family = ("g4dn".to_owned(), CapacityType::OnDemand);
    let world = SimWorld::new(1, Rates::NONE, Quotas::from([(family, 50)]));
    let provider = world.caller();
    let large = world.request("a", "g4dn.12xlarge", CapacityType::OnDemand);
    provider.launch(&large).await.expect("48 of 50 processors");
    let small = world.request("b", "g4dn.xlarge", CapacityType::OnDemand);
    let error = provider.launch(&small).await.expect_err("52 of 50 processors");
    let LaunchError::AllFailed(failed) = &error else { panic!("{error}") };
    assert!(matches!(&failed[0].error, LaunchError::Quota(why) if why.contains("48 of 50")), "{error}");
    assert_eq!(provider.list().await.expect("a list").len(), 1);
    // Spot instances have their own quota.
    provider.launch(&world.request("c", "g4dn.xlarge", CapacityType::Spot)).await.expect("no quota");
    while !provider.terminate(&large.key).await.expect("no accidents") {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    provider.launch(&small).await.expect("there is room");
}

#[tokio::test(start_paused = true)]
async fn prices_of_spot_instances_move_and_stay_below_those_on_demand() {
    let world = SimWorld::new(3, Rates { prices_move: 1_000, ..Rates::NONE }, Quotas::new());
    let class = world.node_class();
    let provider = world.caller();
    let before = provider.catalogue(&class).await.expect("a catalogue");
    tokio::time::sleep(Duration::from_mins(11)).await;
    let after = provider.catalogue(&class).await.expect("a catalogue");
    let mut moved = 0;
    for (one, other) in before.offerings().iter().zip(after.offerings()) {
        assert_eq!(one.id, other.id);
        let (Some(was), Some(is)) = (one.price.known(), other.price.known()) else {
            assert_eq!(one.price, other.price, "{}", one.id);
            continue;
        };
        if one.id.capacity_type != CapacityType::Spot {
            assert_eq!(was, is, "{}", one.id);
            continue;
        }
        moved += usize::from(was != is);
        let on_demand = OfferingId { capacity_type: CapacityType::OnDemand, ..one.id.clone() };
        let dear = after.offering(&on_demand).and_then(|offering| offering.price.known());
        assert!(dear.is_none_or(|dear| is < dear), "{} at {is} $/h, on demand {dear:?}", one.id);
    }
    assert!(moved > 0, "no price has moved");
}

/// Returns a spot instance that is interrupted with notice, from the first seed that has one.
async fn interrupted(zone: &str) -> (SimWorld, poolwright_sim::cloud::Machine) {
    for seed in 1..50 {
        let world = SimWorld::new(seed, Rates { interrupted: 1_000, ..Rates::NONE }, Quotas::new());
        let mut request = world.request("a", "g4dn.xlarge", CapacityType::Spot);
        request.offerings.retain(|one| one.offering.zone.as_str() == zone);
        world.caller().launch(&request).await.expect("an instance");
        let (_, machine) = world.cloud.machines().remove(0);
        let joins = machine.joins.expect("it joins");
        if machine.notice.is_some_and(|(at, _)| at > joins + Duration::from_mins(1)) {
            return (world, machine);
        }
    }
    panic!("no seed interrupts with notice after the node has joined")
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_taken_back_with_notice_is_closed_two_minutes_before() {
    let (world, machine) = interrupted("us-east-1a").await;
    let (at, how) = machine.notice.expect("it is told");
    let dies = machine.dies.expect("it ends");
    assert_eq!((how, dies.saturating_sub(at)), (Notice::Closes, Duration::from_mins(2)));
    world.live_until(at.saturating_sub(Duration::from_secs(1))).await;
    let taints = |world: &SimWorld| world.taints("a").expect("the node is there");
    assert!(taints(&world).iter().all(|key| !key.contains("/interrupted")));
    world.live_until(at + Duration::from_secs(1)).await;
    assert!(taints(&world).iter().any(|key| key.contains("/interrupted")));
    assert!(world.cloud.is_running(&machine.instance.provider_id));
    world.live_until(dies + Duration::from_secs(1)).await;
    assert!(!world.cloud.is_running(&machine.instance.provider_id));
    world.live_until(dies + Duration::from_mins(2)).await;
    assert_eq!(world.taints("a"), None, "its node is gone");
}
