//! Tests of the expected loss of gangs on spot nodes: each node counts with the loss of the whole gang, once.

use poolwright_catalog::{Catalogue, Interruptions, Offering, Price, PriceSource, Quote, ResourceList};
use poolwright_core::plan::{Plan, PlanOptions, SpotRisk, plan};
use poolwright_core::{Pod, PodGroup, Snapshot, Uid};
use poolwright_solver::NeverStop;
use poolwright_terms::CapacityType;

use crate::kit::*;

/// The interruptions of spot nodes in a million hours.
const RATE: u32 = 12_500;

/// Returns an offering on spot for this price.
fn on_spot(of: &Offering, price: &str) -> Offering {
    let mut spot = of.clone();
    spot.id.capacity_type = CapacityType::Spot;
    let source = PriceSource::new("test");
    spot.price = Price::Known(Quote { usd_per_hour: usd(price), source: source.clone(), as_of: None });
    spot.interruptions = Some(Interruptions { per_million_hours: RATE, source, as_of: None });
    spot
}

/// Returns a catalogue with a node of four GPUs and a small one without, on demand and on spot.
fn market() -> Catalogue {
    let base = catalogue(vec![
        Kind("quad", capacity(48, 192, 4), Some("l4"), &[("a", "4.60")]),
        Kind("cpu", capacity(2, 4, 0), None, &[("a", "0.07")]),
    ]);
    let spot =
        |one: &Offering| on_spot(one, if one.id.instance_type.as_str() == "quad" { "1.88" } else { "0.02" });
    let offerings = base.offerings().iter().flat_map(|one| [one.clone(), spot(one)]).collect();
    Catalogue::new(base.origin().clone(), base.types().values().cloned().collect(), offerings)
}

/// Returns a plan for a gang of pods with these requests. An interruption loses so many dollars of each GPU.
fn plan_of(gang: &[ResourceList], dollars_per_gpu: u64) -> Plan {
    let group = PodGroup {
        key: object_key("train"),
        uid: Uid("group-train".into()),
        min_count: Some(gang.len() as u32),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let member = |(at, requests): (usize, &ResourceList)| Pod {
        group: Some("train".into()),
        ..pod(&format!("train-{at}"), requests.clone())
    };
    let pods: Vec<Pod> = gang.iter().enumerate().map(member).collect();
    let snapshot: Snapshot = with(with(cluster(market(), [pool("gpu")]), [group]), pods);
    let spot_risk = Some(SpotRisk { per_gpu_micros: dollars_per_gpu * 1_000_000, prior: 0 });
    let options = PlanOptions { spot_risk, ..PlanOptions::default() };
    let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    assert!(plan.unplaced.is_empty(), "{:?}", plan.unplaced);
    assert!(plan.bound <= plan.cost + plan.risk, "{}", plan.bound);
    plan
}

#[test]
fn a_launcher_beside_a_worker_adds_no_loss_so_it_gets_no_node_of_its_own() {
    // Eight GPUs lose $8, which is $0.10 per hour for each node.
    let plan = plan_of(&[requests(1, 2, 0), requests(40, 100, 4), requests(40, 100, 4)], 1);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (2, usd("3.76"), usd("0.20")));
    assert_eq!(plan.bound, usd("3.96"));
}

#[test]
fn a_launcher_on_a_spot_node_of_its_own_would_stop_the_whole_gang() {
    // No worker leaves it room. On spot its node would cost $0.02 and lose $0.10, and on demand it costs $0.07.
    let plan = plan_of(&[requests(1, 2, 0), requests(48, 100, 4), requests(48, 100, 4)], 1);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (3, usd("3.83"), usd("0.20")));
}

#[test]
fn a_node_that_is_partly_full_counts_with_the_loss_of_the_whole_gang() {
    let one_gpu = || vec![requests(40, 100, 1); 4];
    // Four GPUs lose $4, which is $0.05 per hour for each of the four nodes.
    let plan = plan_of(&one_gpu(), 1);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (4, usd("7.52"), usd("0.20")));
    assert_eq!(plan.bound, usd("7.72"));
    assert_eq!(plan.baselines.first_fit.risk, usd("0.20"));
    // A loss of $5.00 per hour and node is more than spot saves.
    let plan = plan_of(&one_gpu(), 100);
    assert_eq!((plan.cost, plan.risk), (usd("18.40"), usd("0")));
}

#[test]
fn pods_that_request_different_gpus_go_on_demand_if_the_loss_of_their_gang_is_more_than_spot_saves() {
    // On spot, each node would lose $300 x 0.0125 = $3.75 per hour and save $2.72.
    let plan = plan_of(&[requests(40, 100, 1), requests(40, 100, 2)], 100);
    assert_eq!((plan.cost, plan.risk), (usd("9.20"), usd("0")));
}

#[test]
fn pods_of_a_gang_on_one_node_count_once() {
    let plan = plan_of(&vec![requests(10, 40, 1); 4], 1);
    assert_eq!((plan.claims.len(), plan.cost, plan.risk), (1, usd("1.88"), usd("0.05")));
}
