//! Tests of packing: the nodes that are bought for pods.

use crate::kit::*;

#[test]
fn two_pods_of_one_gpu_each_get_two_small_nodes_and_not_one_large_one() {
    let pods = [pod("a", requests(2, 8, 1)), pod("b", requests(2, 8, 1))];
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), pods));
    assert_eq!(bought(&plan), ["g5.xlarge: a", "g5.xlarge: b"]);
    assert_eq!(plan.cost, usd("2.012"));
    assert_eq!(plan.baselines.one_pod_per_node.cost, usd("2.012"));
    assert!(plan.bound <= plan.cost && plan.unplaced.is_empty());
    assert_eq!((plan.counts.total, plan.counts.on_new), (2, 2));
}

#[test]
fn one_node_is_bought_for_both_where_that_is_cheaper() {
    let cheap = catalogue(vec![
        Kind("one", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00")]),
        Kind("two", capacity(8, 32, 2), Some("a10g"), &[("a", "1.50")]),
    ]);
    let pods = [pod("a", requests(2, 8, 1)), pod("b", requests(2, 8, 1))];
    let plan = planned(&with(cluster(cheap, [pool("gpu")]), pods));
    assert_eq!(bought(&plan), ["two: a b"]);
}

#[test]
fn a_pod_without_a_gpu_buys_the_cheapest_node_that_holds_it() {
    let plan = planned(&with(cluster(aws(), [pool("any")]), [pod("a", requests(3, 4, 0))]));
    assert_eq!(bought(&plan), ["c7.xlarge: a"]);
}

#[test]
fn a_node_selector_decides_the_gpu_and_the_zone() {
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("poolwright.dev/gpu-model".into(), "l4".into());
    let mut zone = pod("b", requests(1, 1, 1));
    zone.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "b".into());
    let plan = planned(&with(cluster(aws(), [pool("gpu")]), [wants, zone]));
    assert_eq!(bought(&plan), ["g5.xlarge: b", "g6.xlarge: a"]);
    let in_b = plan.claims.iter().find(|claim| claim.planned_pods == [key("b")]).unwrap();
    assert_eq!(in_b.offering(), &id("g5.xlarge", "b"));
}

#[test]
fn the_same_snapshot_and_time_give_the_same_plan_and_names() {
    let pods = (0..30).map(|index| pod(&format!("p{index}"), requests(1 + index % 3, 4, index % 2)));
    let snapshot = with(cluster(aws(), [pool("gpu")]), pods);
    assert_eq!(planned(&snapshot), planned(&snapshot));
}

#[test]
fn names_are_those_of_the_pool_with_a_suffix_and_valid_for_the_api() {
    let long = "a".repeat(60) + ".b";
    let plan = planned(&with(cluster(aws(), [pool(&long)]), [pod("a", requests(1, 1, 1))]));
    let name = &plan.claims[0].name.0;
    assert!(name.len() <= 63 && name.starts_with(&"a".repeat(54)), "{name}");
    assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{name}");
}

#[test]
fn no_pods_is_an_empty_plan_that_costs_nothing() {
    let plan = planned(&cluster(aws(), [pool("gpu")]));
    assert!(plan.claims.is_empty() && plan.unplaced.is_empty() && plan.nominations.is_empty());
    assert_eq!((plan.cost, plan.counts.total), (usd("0"), 0));
}
