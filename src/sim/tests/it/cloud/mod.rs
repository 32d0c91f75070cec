//! Tests of the simulated cloud: the conformance suite of providers, and the behaviour of clouds towards their customers.

mod world;

use std::collections::BTreeSet;
use std::time::Duration;

use self::world::SimWorld;
use async_trait::async_trait;
use axum::http::Method;
use poolwright_catalog::OfferingId;
use poolwright_provider_contract::conformance::{Failure, Fixture, World, run_all};
use poolwright_provider_contract::{LaunchError, LaunchRequest};
use poolwright_sim::accidents::Rates;
use poolwright_sim::cloud::{Machine, Notice, Quotas, Reservation};
use poolwright_terms::{CapacityType, InterruptionKind};
use serde_json::{Value, json};

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
async fn a_cloud_that_shows_another_account_says_that_an_instance_is_gone_and_does_not_terminate_it() {
    let world = SimWorld::new(1, Rates { wrong_account: 1_000, ..Rates::NONE }, Quotas::new());
    let provider = world.caller();
    let request = world.request("a", "g4dn.xlarge", CapacityType::OnDemand);
    let launched = provider.launch(&request).await.expect("an instance").instance;
    assert!(provider.list().await.expect("a list").is_empty());
    assert!(provider.get(&launched.provider_id).await.expect("an answer").is_none());
    assert!(provider.terminate(&request.key).await.expect("an answer"));
    assert!(world.cloud.is_running(&launched.provider_id));
    world.live_until(world.cloud.blind_until()).await;
    assert!(!provider.terminate(&request.key).await.expect("an answer"), "it terminates from now on");
    assert!(!world.cloud.is_running(&launched.provider_id));
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
        assert!(dear.is_none_or(|dear| is < dear), "{} at {is:#}, on demand {dear:?}", one.id);
    }
    assert!(moved > 0, "no price has moved");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_has_so_many_instances_and_ends_with_them_after_an_announcement() {
    let world = SimWorld::new(1, Rates::NONE, Quotas::new());
    let offering = OfferingId {
        instance_type: "g4dn.xlarge".into(),
        zone: "us-east-1a".into(),
        capacity_type: CapacityType::Reserved,
    };
    let ends = Duration::from_mins(30);
    world.cloud.reserve(Reservation { offering: offering.clone(), instances: 1, ends: Some(ends) });
    let free = || world.cloud.catalogue().offering(&offering).and_then(|one| one.available);
    let provider = world.caller();
    let wanted = |name: &str| world.request(name, "g4dn.xlarge", CapacityType::Reserved);
    assert_eq!(free(), Some(1));
    let launched = provider.launch(&wanted("a")).await.expect("one is free").instance;
    assert_eq!((&launched.offering, free()), (&offering, Some(0)));
    let error = provider.launch(&wanted("b")).await.expect_err("it has one instance");
    let LaunchError::AllFailed(failed) = &error else { panic!("{error}") };
    assert!(matches!(&failed[0].error, LaunchError::StockOut(why) if why.contains("used up")), "{error}");

    let heard = provider.interruptions().await.expect("no accidents");
    let said = &heard[0].interruptions[0];
    assert_eq!(said.kind, InterruptionKind::ReservationEnd);
    let deadline = said.deadline.expect("the cloud says when");
    assert_eq!(deadline.duration_since(said.noticed).as_mins(), 10);
    assert!(world.cloud.is_running(&launched.provider_id));
    world.live_until(ends + Duration::from_secs(1)).await;
    assert!(!world.cloud.is_running(&launched.provider_id));
    assert_eq!(free(), Some(0), "nothing can be launched after the end");
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_chooses_launches_any_of_the_offerings_that_are_named_together_and_else_the_first() {
    let world = SimWorld::new(1, Rates::NONE, Quotas::new());
    world.cloud.choose_freely();
    let provider = world.caller();
    let mut request = world.request("a", "g4dn.xlarge", CapacityType::OnDemand);
    request.offerings.extend(world.request("a", "g4dn.12xlarge", CapacityType::OnDemand).offerings);
    let mut launched = [BTreeSet::new(), BTreeSet::new()];
    for number in 0..40 {
        let together = if number % 2 == 0 { request.offerings.len() } else { 0 };
        let (key, claim) = (format!("key-{number}"), format!("node-{number}"));
        let request = LaunchRequest { key, claim, together, ..request.clone() };
        let instance = provider.launch(&request).await.expect("an instance").instance;
        launched[number % 2].insert(instance.offering.instance_type.to_string());
    }
    let [chosen, first] = launched;
    assert_eq!(chosen.iter().collect::<Vec<_>>(), ["g4dn.12xlarge", "g4dn.xlarge"]);
    assert_eq!(first.iter().collect::<Vec<_>>(), ["g4dn.xlarge"]);
}

/// Returns a spot instance that is interrupted with notice, from the first seed that has one.
async fn interrupted(zone: &str) -> (SimWorld, Machine) {
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
    let ahead = Duration::from_mins(2);
    assert_eq!((how, dies.saturating_sub(at)), (Notice::Closes(ahead), ahead));
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

#[tokio::test(start_paused = true)]
async fn a_spot_machine_is_announced_as_long_before_its_end_as_its_offering_says() {
    let kinds = ["g2-standard-4", "g4dn.xlarge"];
    let world = SimWorld::selling(&kinds, 1, Rates::NONE, Quotas::new());
    world.cloud.reclaim_spot();
    for (kind, seconds) in kinds.into_iter().zip([30, 120]) {
        let request = world.request(kind, kind, CapacityType::Spot);
        world.caller().launch(&request).await.expect("an instance");
        let machines = world.cloud.machines();
        let is_one = |machine: &Machine| machine.instance.offering.instance_type.as_str() == kind;
        let (_, machine) = machines.iter().find(|(_, machine)| is_one(machine)).expect("it runs");
        let (told, _) = machine.notice.expect("it is told");
        let ends = machine.reclaimed.expect("it is taken back");
        assert_eq!(ends.saturating_sub(told), Duration::from_secs(seconds), "{kind}");
    }
}

/// The path of the pods of a namespace.
const PODS: &str = "/api/v1/namespaces/default/pods";

/// Returns the condition `PodScheduled` of a pod.
fn scheduled(world: &SimWorld, name: &str) -> Value {
    let pod = world.ask(&Method::GET, &format!("{PODS}/{name}"), "", &Value::Null).expect("the pod is there");
    let conditions = pod["status"]["conditions"].as_array().expect("it has conditions");
    conditions.iter().find(|one| one["type"] == "PodScheduled").expect("the scheduler has tried it").clone()
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_since_the_scheduler_refused_it_first_or_since_it_was_gated() {
    let world = SimWorld::new(1, Rates::NONE, Quotas::new());
    let pod = |name: &str, gates: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingGates": gates, "containers": [{"name": "work", "image": "work",
                "resources": {"requests": {"cpu": "1000"}}}]}})
    };
    let create =
        |body: &Value| world.ask(&Method::POST, PODS, "application/json", body).expect("it is accepted");
    create(&pod("large", json!([])));
    create(&pod("held", json!([{"name": "example.com/held"}])));
    world.live_until(Duration::from_mins(2)).await;
    let (large, held) = (scheduled(&world, "large"), scheduled(&world, "held"));
    assert_eq!((&large["reason"], &held["reason"]), (&json!("Unschedulable"), &json!("SchedulingGated")));

    let free = json!({"spec": {"schedulingGates": null}});
    let path = format!("{PODS}/held");
    world.ask(&Method::PATCH, &path, "application/merge-patch+json", &free).expect("the gate may go");
    world
        .caller()
        .launch(&world.request("a", "g4dn.xlarge", CapacityType::OnDemand))
        .await
        .expect("an instance");
    world.live_until(Duration::from_mins(10)).await;
    for (name, before) in [("large", large), ("held", held)] {
        let after = scheduled(&world, name);
        assert_eq!(after["reason"], "Unschedulable", "{name}");
        assert_ne!(after["message"], before["message"], "the node that joined is in the message of {name}");
        assert_eq!(after["lastTransitionTime"], before["lastTransitionTime"], "{name}");
    }
}
