//! Tests of topology spread over zones, and over nodes once nothing more can be bought.

use poolwright_core::plan::Target;
use poolwright_core::{Pool, PoolLimits};

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
    let snapshot = with(there(running), nodes);
    let zones_of_new = |names: &[&str]| {
        let waiting = names.iter().map(|name| spreading(app(name, "web"), 1));
        let snapshot = with(snapshot.clone(), waiting);
        zones(&snapshot, &planned(&snapshot)).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(zones_of_new(&["p", "q"]), ["b"], "then each zone with nodes has two");
    assert_eq!(zones_of_new(&["p", "q", "t"]), ["b", "c"]);
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

#[test]
fn the_field_that_leaves_a_spread_pod_no_zone_is_named_with_the_change_that_helps() {
    let only_a = || catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
    let said = |node: Node, change: &dyn Fn(&mut Pod)| {
        let pods = ["p", "q"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            change(&mut pod);
            pod
        });
        message(&planned(&with(with(cluster(only_a(), [pool("cpu")]), [node]), pods)), "q")
    };
    let mut tainted = node_in("m", "b", 8);
    tainted.taints = vec![taint("team", "x")];
    assert_eq!(
        said(tainted.clone(), &|_| {}),
        "is spread over `topology.kubernetes.io/zone` with a maxSkew of 1 (a has 1, b has 0), and a cannot take one more; b counts although it does not tolerate the taints of the nodes there (nodeTaintsPolicy: Ignore); set nodeTaintsPolicy: Honor, raise maxSkew, use whenUnsatisfiable: ScheduleAnyway, or let a pool buy where there are fewest"
    );
    let excluded = said(node_in("m", "b", 8), &|pod| {
        pod.spec.node_selector.insert("poolwright.dev/nodepool".into(), "cpu".into());
        pod.spec.spreads[0].ignore_node_affinity = true;
    });
    assert!(
        excluded.contains("b counts although its own node selector or affinity excludes the nodes there (nodeAffinityPolicy: Ignore); set nodeAffinityPolicy: Honor, "),
        "{excluded}"
    );
    let hashed = said(node_in("m", "b", 0), &|pod| {
        pod.spec.spreads[0].match_label_keys = vec!["pod-template-hash".into()];
    });
    assert!(
        hashed.contains("b has 0; only pods with its value of `pod-template-hash` count (matchLabelKeys))"),
        "{hashed}"
    );
    assert!(!hashed.contains("counts although"), "the pod could go to b if the node had room: {hashed}");
}

#[test]
fn min_domains_are_named_where_they_alone_keep_a_pod_waiting() {
    let zones = |min_domains: u32| {
        let two = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10"), ("b", "0.10")])]);
        let pods = ["p", "q", "r"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.spreads[0].min_domains = Some(min_domains);
            pod
        });
        planned(&with(cluster(two, [pool("cpu")]), pods))
    };
    assert_eq!(zones(2).unplaced, []);
    let left = zones(3).unplaced;
    assert_eq!(left.len(), 1);
    assert_eq!(
        left[0].message,
        "is spread over `topology.kubernetes.io/zone` with a maxSkew of 1 (a has 1, b has 1), and a, b cannot take one more; while fewer than 3 domains exist (minDomains), the fewest count as 0; lower minDomains, raise maxSkew, use whenUnsatisfiable: ScheduleAnyway, or let a pool buy in more domains"
    );
}

#[test]
fn a_pod_that_may_not_go_to_the_zone_with_the_fewest_is_not_told_to_buy_there() {
    let told = |pinned: bool| {
        let pods = ["p", "q"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.spreads[0].ignore_node_affinity = true;
            if pinned {
                pod.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "a".into());
            }
            pod
        });
        let only_a = catalogue(vec![Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")])]);
        message(&planned(&with(with(cluster(only_a, [pool("cpu")]), [node_in("m", "b", 0)]), pods)), "q")
    };
    assert!(told(false).contains("let a pool buy where there are fewest"), "{}", told(false));
    let pinned = told(true);
    assert!(pinned.contains("a cannot take one more") && !pinned.contains("let a pool buy"), "{pinned}");
}

#[test]
fn min_domains_of_a_spread_over_nodes_are_named_beside_the_limit_that_allows_no_more_nodes() {
    let left = |min_domains: Option<u32>| {
        let pods = ["p", "q", "r"].map(|name| {
            let mut pod = over_nodes(name);
            pod.spec.spreads[0].min_domains = min_domains;
            pod
        });
        let unplaced = planned(&with(two_nodes_and_at_most(0), pods)).unplaced;
        unplaced.into_iter().map(|left| left.message).collect::<Vec<String>>()
    };
    let said = left(Some(3)).concat();
    assert!(said.starts_with("limit nodes = 0 of pool `cpu`"), "{said}");
    assert!(
        said.ends_with("node `m` has room for it, but its topology spread over nodes allows no more there while fewer than 3 nodes exist (minDomains); lower minDomains"),
        "{said}"
    );
    for enough in [None, Some(2)] {
        assert_eq!(left(enough), Vec::<String>::new(), "one node takes a second pod");
    }
}

/// Returns a cluster with two nodes for four pods each, and a pool that may buy this many nodes.
fn two_nodes_and_at_most(nodes: u64) -> Snapshot {
    let mut limited = pool("cpu");
    limited.limits.nodes = Some(nodes);
    with(cluster(three_zones(), [limited]), [node_in("m", "a", 4), node_in("n", "b", 4)])
}

fn over_nodes(name: &str) -> Pod {
    let mut pod = app(name, "web");
    pod.spec.spreads = vec![spread("kubernetes.io/hostname", 1, "web")];
    pod
}

/// Returns the number of planned pods on each existing and each new node, the largest first.
fn on_each_node(plan: &Plan) -> Vec<usize> {
    let mut existing: BTreeMap<&Target, usize> = BTreeMap::new();
    for placement in &plan.placements {
        *existing.entry(&placement.target).or_default() += 1;
    }
    let new = plan.claims.iter().map(|claim| claim.planned_pods.len());
    let mut counts: Vec<usize> = existing.into_values().chain(new).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[test]
fn pods_spread_over_nodes_fill_those_that_are_there_evenly_once_a_limit_lets_no_more_be_bought() {
    let plan = |nodes: u64, names: &[&str]| {
        planned(&with(two_nodes_and_at_most(nodes), names.iter().map(|name| over_nodes(name))))
    };
    let existing = plan(0, &["p", "q", "r", "s", "t"]);
    assert_eq!((on_each_node(&existing), existing.unplaced.len()), (vec![3, 2], 0));
    // The new node counts too, and has room for two pods.
    let with_new = plan(1, &["p", "q", "r", "s", "t", "u", "v"]);
    assert_eq!((on_each_node(&with_new), with_new.claims.len()), (vec![3, 2, 2], 1));
    assert_eq!(with_new.unplaced, []);
    let enough = plan(3, &["p", "q", "r"]);
    assert_eq!(on_each_node(&enough), [1, 1, 1], "a node that can be bought would be empty");
}

#[test]
fn pods_that_fill_nodes_evenly_keep_their_places_in_the_next_plan() {
    let snapshot = with(two_nodes_and_at_most(0), ["p", "q", "r", "s", "t"].map(over_nodes));
    let first = planned(&snapshot);
    assert_eq!(first.nominations.len(), 5);
    let again = planned(&carried_out(&snapshot, &first, 1));
    assert_eq!(again.nominations, first.nominations);
}

#[test]
fn a_zone_where_a_limit_lets_nothing_be_bought_holds_no_pod_back() {
    let pods = ["p", "q", "r"].map(|name| spreading(app(name, "web"), 1));
    let snapshot = with(two_nodes_and_at_most(0), pods);
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, []);
    assert_eq!(on_each_node(&plan), [2, 1], "zone c has no node, so it is no domain");
}

#[test]
fn a_spread_pod_for_which_a_limit_leaves_no_node_in_any_zone_is_left_out_and_the_others_get_nodes() {
    let limits = PoolLimits { usd_per_hour: Some(usd("0.25")), ..PoolLimits::default() };
    let large = |name| Pod { spec: pod(name, requests(2, 1, 0)).spec, ..app(name, "web") };
    let pods = ["p", "q", "r"].map(|name| spreading(large(name), 1));
    let plan = planned(&with(cluster(three_zones(), [Pool { limits, ..pool("cpu") }]), pods));
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(plan.unplaced.len(), 1);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    let said = &plan.unplaced[0].message;
    assert!(said.contains("usdPerHour = 0.25") && !said.contains("in other places it no"), "{said}");
}
