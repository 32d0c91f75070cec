//! What offerings cost besides their price, and how many there are: interruptions, stock, money paid beforehand.

use poolwright_catalog::{CapacityType, Catalogue, Offering, Price, PriceSource, Quote};
use poolwright_core::plan::{Commitment, Plan, PlanOptions, SpotRisk, UnplacedReason, plan};
use poolwright_core::{Pod, Snapshot};
use poolwright_solver::NeverStop;

use crate::kit::*;

fn planned_with(snapshot: &Snapshot, options: &PlanOptions) -> Plan {
    let plan = plan(snapshot, at(10), options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan
}

/// `aws()` with other offerings than those it has, by type and zone.
fn with_offerings(change: impl Fn(&Offering) -> Vec<Offering>) -> Catalogue {
    let base = aws();
    let offerings = base.offerings().iter().flat_map(change).collect();
    Catalogue::new(base.origin().clone(), base.types().values().cloned().collect(), offerings)
}

fn spot(of: &Offering, price: &str, interruptions: u32) -> Offering {
    let mut spot = of.clone();
    spot.id.capacity_type = CapacityType::Spot;
    let quote = Quote { usd_per_hour: usd(price), source: PriceSource::new("test"), as_of: None };
    spot.price = Price::Known(quote);
    spot.interruptions = Some(interruptions);
    spot
}

fn three() -> [Pod; 3] {
    ["a", "b", "c"].map(|name| pod(name, requests(1, 1, 1)))
}

#[test]
fn no_more_nodes_are_bought_of_an_offering_than_can_be_had() {
    let catalogue = with_offerings(|offering| {
        let available = (offering.id.instance_type.as_str() == "g5.xlarge").then_some(1);
        vec![Offering { available, ..offering.clone() }]
    });
    let plan = planned(&with(cluster(catalogue, [pool("gpu")]), three()));
    let types: Vec<_> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    assert_eq!(types.iter().filter(|name| **name == "g5.xlarge").count(), 2, "one in each of two zones");
    assert_eq!(types.iter().filter(|name| **name == "g6.xlarge").count(), 1);
    let none = with_offerings(|offering| vec![Offering { available: Some(0), ..offering.clone() }]);
    let plan = planned(&with(cluster(none, [pool("gpu")]), three()));
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    assert!(plan.unplaced[0].message.contains("that can be had are taken"), "{}", plan.unplaced[0].message);
}

#[test]
fn spot_is_bought_as_long_as_its_interruptions_lose_less_than_it_saves() {
    let snapshot = |rate: u32| {
        let catalogue = with_offerings(|offering| vec![offering.clone(), spot(offering, "0.5", rate)]);
        with(cluster(catalogue, [pool("gpu")]), [pod("a", requests(1, 1, 1))])
    };
    let risk = SpotRisk { per_gpu_micros: 10_000_000, prior: 0 };
    let options = PlanOptions { spot_risk: Some(risk), ..PlanOptions::default() };
    // One in ten a day or so: 10 $ x 0.01 = 0.10 $/h.
    let plan = planned_with(&snapshot(10_000), &options);
    assert_eq!(plan.claims[0].offering().capacity_type, CapacityType::Spot);
    assert_eq!((plan.cost, plan.risk), (usd("0.5"), usd("0.1")));
    assert_eq!(plan.bound, usd("0.6"));
    // 10 $ x 0.1 = 1 $/h is more than spot saves.
    let plan = planned_with(&snapshot(100_000), &options);
    assert_eq!(plan.claims[0].offering().capacity_type, CapacityType::OnDemand);
    assert_eq!((plan.cost, plan.risk), (usd("1.006"), usd("0")));
    assert!(
        plan.claims[0].offerings.iter().all(|ranked| ranked.offering.capacity_type == CapacityType::OnDemand)
    );
    // Nobody asked to count it.
    let plan = planned(&snapshot(100_000));
    assert_eq!((plan.cost, plan.risk), (usd("0.5"), usd("0")));
}

#[test]
fn a_commitment_pays_until_it_is_used_up() {
    let snapshot = with(cluster(aws(), [pool("gpu")]), three());
    let catalogue = aws();
    let rates =
        catalogue.offerings().iter().filter(|offering| offering.id.instance_type.as_str() == "g6.xlarge");
    let rates = rates.map(|offering| (offering.id.clone(), usd("0.55"))).collect();
    let commitments = vec![Commitment { name: "plan".into(), left: usd("1.1"), rates }];
    let options = PlanOptions { commitments, ..PlanOptions::default() };
    let plan = planned_with(&snapshot, &options);
    let types: Vec<_> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    assert_eq!(types.iter().filter(|name| **name == "g6.xlarge").count(), 2);
    assert_eq!(plan.cost, usd("1.006"));
    assert_eq!(plan.covered, usd("2.2"));
    assert_eq!(plan.commitments[0].used, usd("1.1"));
    assert_eq!(plan.bound, plan.cost);
}

#[test]
fn what_is_ordered_and_not_launched_is_among_what_can_be_had_and_is_not_sold_again() {
    let catalogue = || {
        with_offerings(|offering| {
            let available = (offering.id.instance_type.as_str() == "g5.xlarge").then_some(1);
            vec![Offering { available, ..offering.clone() }]
        })
    };
    let before = with(cluster(catalogue(), [pool("gpu")]), [pod("a", requests(1, 1, 1))]);
    let first = planned(&before);
    assert_eq!(first.claims[0].instance_type().as_str(), "g5.xlarge");
    let types_of = |snapshot: Snapshot| -> Vec<String> {
        let plan = planned(&with(snapshot, ["b", "c"].map(|name| pod(name, requests(1, 1, 1)))));
        plan.claims.iter().map(|claim| claim.instance_type().to_string()).collect()
    };
    let count = |types: &[String]| types.iter().filter(|name| *name == "g5.xlarge").count();
    let ordered = types_of(carried_out(&before, &first, 5));
    assert_eq!((ordered.len(), count(&ordered)), (2, 1), "the one in the other zone: {ordered:?}");
    // Once it is launched, what the catalogue says was read after it, or will be.
    let there = with(before, first.claims.iter().map(|claim| launched(created(claim, 5))));
    assert_eq!(count(&types_of(there)), 2);
}
