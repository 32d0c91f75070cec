//! Tests of a claim's alternative offerings, and of its reason.

use poolwright_catalog::ResourceName;
use poolwright_core::plan::{NeverStop, PlanOptions, plan};

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

#[test]
fn an_alternative_never_takes_more_of_a_limit_than_what_was_planned() {
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 1), None, &[("a", "1.00")]),
        Kind("large", capacity(8, 16, 1), None, &[("a", "1.10")]),
    ]);
    let mut limited = pool("gpu");
    limited.limits.resources.insert(ResourceName::new(ResourceName::CPU), 100_000);
    let plan = planned(&with(cluster(kinds.clone(), [limited]), [pod("a", requests(1, 1, 1))]));
    assert_eq!(offered(&plan), ["small/a/on-demand"]);
    let plan = planned(&with(cluster(kinds, [pool("gpu")]), [pod("a", requests(1, 1, 1))]));
    assert_eq!(offered(&plan), ["small/a/on-demand", "large/a/on-demand"]);
}

#[test]
fn the_default_limit_on_money_gives_alternatives_the_room_that_it_has() {
    let kinds = catalogue(vec![
        Kind("small", capacity(4, 16, 1), None, &[("a", "1.00")]),
        Kind("large", capacity(4, 16, 1), None, &[("a", "1.10")]),
    ]);
    let pods = [pod("a", requests(1, 1, 1)), pod("b", requests(1, 1, 1))];
    let snapshot = with(cluster(kinds, [pool("gpu")]), pods);
    let offerings = |most| {
        let options = PlanOptions { default_usd_per_hour: Some(usd(most)), ..PlanOptions::default() };
        let plan = plan(&snapshot, at(10), &options, &mut NeverStop);
        plan.claims.iter().map(|claim| claim.offerings.len()).sum::<usize>()
    };
    assert_eq!(offerings("500"), 4, "both nodes have an alternative");
    assert_eq!(offerings("2.10"), 3, "the limit has room for one dearer node");
    assert_eq!(offerings("2.00"), 2, "the limit has room for the planned nodes alone");
}

#[test]
fn an_offering_held_back_is_neither_planned_nor_an_alternative() {
    let mut snapshot = with(cluster(aws(), [pool("gpu")]), [pod("a", requests(1, 1, 1))]);
    snapshot.held_back.insert((node_class(), id("g5.xlarge", "a")), at(60));
    assert_eq!(offered(&planned_at(&snapshot, 10)), ["g5.xlarge/b/on-demand", "g6.xlarge/a/on-demand"]);
    assert_eq!(offered(&planned_at(&snapshot, 60))[0], "g5.xlarge/a/on-demand", "its time is over");
}
