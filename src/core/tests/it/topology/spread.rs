//! Tests of topology spread over zones.

use super::*;

#[test]
fn pods_spread_over_zones_go_to_all_zones_that_can_be_bought_in() {
    let snapshot = there(["p", "q", "r", "s", "t", "u", "v"].map(|name| spreading(app(name, "web"), 1)));
    let plan = planned(&snapshot);
    assert_eq!(counts(&snapshot, &plan), [3, 2, 2], "{:?}", zones(&snapshot, &plan));
    assert_eq!(plan.unplaced, []);
}

#[test]
fn a_larger_skew_leaves_pods_where_it_is_cheapest() {
    let dear_b = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10"), ("b", "0.50")])]);
    let pods = ["p", "q", "r", "s"].map(|name| spreading(app(name, "web"), 4));
    let snapshot = with(cluster(dear_b, [pool("cpu")]), pods);
    assert_eq!(zones(&snapshot, &planned(&snapshot)).keys().collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_zone_that_sells_only_what_is_dear_is_not_opened_for_a_spread_unless_the_rule_wants_so_many() {
    let dear_c = || {
        catalogue(vec![
            Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10"), ("b", "0.12")]),
            Kind("p5", capacity(8, 64, 8), Some("h100"), &[("c", "6.00")]),
        ])
    };
    let pods = |min_domains| {
        ["p", "q", "r"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.spreads[0].min_domains = min_domains;
            pod
        })
    };
    let zones_of = |min_domains| {
        let snapshot = with(cluster(dear_c(), [pool("cpu")]), pods(min_domains));
        let plan = planned(&snapshot);
        assert_eq!(plan.unplaced, []);
        zones(&snapshot, &plan).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(zones_of(None), ["a", "b"]);
    assert_eq!(zones_of(Some(3)), ["a", "b", "c"]);
}

#[test]
fn pods_that_run_count_and_the_zone_with_fewest_comes_first() {
    let nodes = [node_in("n", "a", 0), node_in("m", "b", 0)];
    let running = apps(["r", "s"], "web").map(|pod| bound(pod, "n"));
    let snapshot =
        with(with(there(running), nodes), [spreading(app("p", "web"), 1), spreading(app("q", "web"), 1)]);
    assert_eq!(zones(&snapshot, &planned(&snapshot)).keys().collect::<Vec<_>>(), ["b", "c"]);
}

#[test]
fn pods_that_are_being_deleted_do_not_count_in_a_spread() {
    let leaving = apps(["r", "s"], "web").map(|pod| Pod { deleting_since: Some(at(1)), ..bound(pod, "n") });
    let only_a = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
    let snapshot = with(with(cluster(only_a, [pool("cpu")]), leaving), [spreading(app("p", "web"), 1)]);
    let snapshot = with(snapshot, [node_in("n", "a", 0), node_in("m", "b", 0)]);
    assert_eq!(planned(&snapshot).claims.len(), 1);
}

#[test]
fn a_zone_with_a_node_but_nothing_to_buy_holds_the_others_back_and_is_named() {
    let only_a = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
    let pods = ["p", "q"].map(|name| spreading(app(name, "web"), 1));
    let snapshot = with(with(cluster(only_a, [pool("cpu")]), [node_in("m", "b", 0)]), pods);
    let plan = planned(&snapshot);
    assert_eq!(counts(&snapshot, &plan), [1]);
    assert_eq!(
        message(&plan, "q"),
        "is spread over `topology.kubernetes.io/zone` with a maxSkew of 1 (a has 1, b has 0), and a cannot take one more; raise maxSkew, use whenUnsatisfiable: ScheduleAnyway, or let a pool buy where there are fewest"
    );
}

#[test]
fn nodes_that_its_own_affinity_excludes_are_no_domain_unless_the_rule_says_so() {
    let only_a = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
    let pods = |ignore_node_affinity: bool| {
        ["p", "q"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.node_selector.insert("poolwright.dev/nodepool".into(), "cpu".into());
            pod.spec.spreads[0].ignore_node_affinity = ignore_node_affinity;
            pod
        })
    };
    let planned = |ignore_node_affinity| {
        let snapshot = with(cluster(only_a.clone(), [pool("cpu")]), [node_in("m", "b", 0)]);
        planned(&with(snapshot, pods(ignore_node_affinity)))
    };
    assert_eq!(planned(false).unplaced.len(), 0, "node m is none of the pool");
    assert_eq!(planned(true).unplaced.len(), 1);
}

#[test]
fn nodes_with_taints_that_it_does_not_tolerate_count_unless_the_rule_honors_taints() {
    let only_a = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
    let mut tainted = node_in("m", "b", 8);
    tainted.taints = vec![taint("team", "x")];
    let planned = |honor_node_taints| {
        let pods = ["p", "q"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.spreads[0].honor_node_taints = honor_node_taints;
            pod
        });
        planned(&with(with(cluster(only_a.clone(), [pool("cpu")]), [tainted.clone()]), pods))
    };
    assert_eq!(planned(false).unplaced.len(), 1);
    assert_eq!(planned(true).unplaced.len(), 0);
}

#[test]
fn fewer_domains_than_wanted_take_the_least_count_for_zero() {
    let two = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10"), ("b", "0.10")])]);
    let planned = |min_domains| {
        let pods = ["p", "q", "r", "s"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.spreads[0].min_domains = min_domains;
            pod
        });
        planned(&with(cluster(two.clone(), [pool("cpu")]), pods))
    };
    assert_eq!(planned(Some(2)).unplaced.len(), 0);
    assert_eq!(planned(Some(3)).unplaced.len(), 2, "one in each of the two zones");
}

#[test]
fn a_zone_that_is_out_of_stock_is_left_for_another_within_the_skew() {
    let mut snapshot = there(["p", "q"].map(|name| spreading(app(name, "web"), 1)));
    for kind in ["c7.large", "c7.xlarge"] {
        for zone in ["a", "b"] {
            snapshot.held_back.insert((node_class(), id(kind, zone)), at(1000));
        }
    }
    let plan = planned(&snapshot);
    assert_eq!(zones(&snapshot, &plan).keys().collect::<Vec<_>>(), ["c"], "no node is in a or b");
    assert_eq!(plan.unplaced, []);
}
