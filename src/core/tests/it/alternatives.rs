//! Tests of a claim's alternative offerings, and of its reason.

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{NeverStop, PlanOptions, plan};
use poolwright_core::{Pool, PoolLimits, Snapshot};

use crate::kit::*;

fn offered(plan: &poolwright_core::plan::Plan) -> Vec<String> {
    plan.claims[0].offerings.iter().map(|ranked| ranked.offering.to_string()).collect()
}

#[test]
fn alternatives_hold_the_same_pods_at_most_a_fifth_dearer_the_same_type_first() {
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [pod("a", requests(1, 1, 1))]));
    assert_eq!(offered(&plan), ["g5.xlarge/a/on-demand", "g5.xlarge/b/on-demand", "g6.xlarge/a/on-demand"]);
    assert_eq!(plan.claims[0].offerings[2].price, Some(usd("1.10")));
    assert_eq!(plan.claims[0].offerings[2].allocatable, capacity(4, 16, 1));
    assert_eq!(
        plan.claims[0].reason,
        "g5.xlarge on-demand in a at $1.01/h holds 1 pod (1 x nvidia.com/gpu); next best: g6.xlarge at $1.10/h, 9 % dearer"
    );
}

#[test]
fn a_type_that_the_pods_do_not_admit_is_no_alternative() {
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "a10g".into());
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [wants]));
    assert_eq!(offered(&plan), ["g5.xlarge/a/on-demand", "g5.xlarge/b/on-demand"]);
}

/// Returns a cluster with two pods, each of which needs a node of its own. The dearer type has more cores.
fn two_pods_in(pool: Pool) -> Snapshot {
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 1), None, &[("a", "1.00")]),
        Kind("large", capacity(8, 16, 1), None, &[("a", "1.10")]),
    ]);
    with(cluster(kinds, [pool]), ["a", "b"].map(|name| pod(name, requests(1, 1, 1))))
}

/// Returns the number of offerings of both claims.
fn offerings(snapshot: &Snapshot, options: &PlanOptions) -> usize {
    let plan = plan(snapshot, at(10), options, &mut NeverStop);
    assert_eq!(plan.refused, Vec::<String>::new());
    plan.claims.iter().map(|claim| claim.offerings.len()).sum()
}

#[test]
fn alternatives_take_no_more_of_a_limit_than_it_has_for_the_largest_of_each_claim() {
    let default = |most| PlanOptions { default_usd_per_hour: Some(usd(most)), ..PlanOptions::default() };
    let by_default = |most| offerings(&two_pods_in(pool("gpu")), &default(most));
    let of_pool = |most| {
        let mut own = pool("gpu");
        own.limits.usd_per_hour = Some(usd(most));
        offerings(&two_pods_in(own), &PlanOptions::default())
    };
    let over_all = |most| {
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        offerings(&two_pods_in(pool("gpu")), &PlanOptions { limits, ..PlanOptions::default() })
    };
    for (most, count, why) in [
        ("500", 4, "both nodes have an alternative"),
        ("2.10", 3, "the limit has room for one dearer node"),
        ("2.00", 2, "the limit has room for the planned nodes alone"),
    ] {
        assert_eq!([by_default(most), of_pool(most), over_all(most)], [count; 3], "{most}: {why}");
    }
    let cores = |most: u64| {
        let mut own = pool("gpu");
        own.limits.resources.insert(ResourceName::new(ResourceName::CPU), most * 1000);
        offerings(&two_pods_in(own), &PlanOptions::default())
    };
    assert_eq!([cores(100), cores(12), cores(11), cores(8)], [4, 3, 2, 2]);
}

#[test]
fn a_claim_in_flight_counts_as_its_dearest_alternative_until_it_is_launched() {
    let mut own = pool("gpu");
    own.limits.usd_per_hour = Some(usd("3.10"));
    let snapshot = two_pods_in(own);
    let in_flight = carried_out(&snapshot, &planned(&snapshot), 10);
    let third = with(in_flight.clone(), [pod("c", requests(1, 1, 1))]);
    assert_eq!(planned_at(&third, 20).claims.len(), 0, "two claims may cost 2.20, so 0.90 is left");
    let launched = in_flight.claims.values().map(|claim| launched((**claim).clone())).collect::<Vec<_>>();
    assert_eq!(planned_at(&with(third, launched), 30).claims.len(), 1, "they cost 2.00");
}

#[test]
fn an_offering_held_back_is_neither_planned_nor_an_alternative() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [pod("a", requests(1, 1, 1))]);
    snapshot.held_back.insert((node_class(), id("g5.xlarge", "a")), at(60));
    assert_eq!(offered(&planned_at(&snapshot, 10)), ["g5.xlarge/b/on-demand", "g6.xlarge/a/on-demand"]);
    assert_eq!(offered(&planned_at(&snapshot, 60))[0], "g5.xlarge/a/on-demand", "its time is over");
}
