//! Tests of spread pods that get nodes in fewer zones than they could, because the scheduler counts only zones with nodes.

use poolwright_core::{NodeSelectorTerm, Preferences, Weighted};

use super::*;

type Prices = &'static [(&'static str, &'static str)];

const AT_10_CENTS: Prices = &[("a", "0.10"), ("b", "0.10"), ("c", "0.10"), ("d", "0.10"), ("e", "0.10")];
const AT_15_CENTS: Prices = &[("a", "0.15"), ("b", "0.15"), ("c", "0.15"), ("d", "0.15"), ("e", "0.15")];
const DEARER_IN_B: Prices = &[("a", "0.10"), ("b", "0.11"), ("c", "0.10"), ("d", "0.10"), ("e", "0.10")];

/// Returns a type for this number of pods, in five zones.
fn for_pods(name: &'static str, pods: u64, prices: Prices) -> Kind {
    Kind(name, capacity(pods, 4 * pods, 0), None, prices)
}

fn waiting(kinds: Vec<Kind>, pods: usize, min_domains: Option<u32>) -> Snapshot {
    let pod = |at: usize| {
        let mut pod = spreading(app(&format!("w{at}"), "web"), 1);
        pod.spec.spreads[0].min_domains = min_domains;
        pod
    };
    with(cluster(catalogue(kinds), [pool("cpu")]), (0..pods).map(pod))
}

fn eight_pods_two_per_node() -> Snapshot {
    waiting(vec![for_pods("c7.large", 2, AT_10_CENTS)], 8, None)
}

/// Returns the number of pods in each zone, the most first.
fn sorted_counts(snapshot: &Snapshot, plan: &Plan) -> Vec<usize> {
    let mut counts = counts(snapshot, plan);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    counts
}

#[test]
fn a_zone_without_nodes_stays_empty_if_that_saves_a_node_and_gives_no_zone_more_pods() {
    let snapshot = eight_pods_two_per_node();
    let plan = planned(&snapshot);
    assert_eq!((sorted_counts(&snapshot, &plan), plan.claims.len()), (vec![2, 2, 2, 2], 4));
    assert_eq!((plan.unplaced.len(), plan.cost, plan.bound), (0, usd("0.40"), usd("0.40")));
    let carried = carried_out(&snapshot, &plan, 1);
    let again = planned(&carried);
    assert_eq!((again.claims.len(), &again.nominations), (0, &plan.nominations), "the places are kept");
    let more = with(carried, [spreading(app("x", "web"), 1)]);
    let plan = planned(&more);
    assert_eq!((plan.claims.len(), sorted_counts(&more, &plan)), (1, vec![2, 2, 2, 2, 1]));
}

#[test]
fn a_zone_with_a_node_that_the_scheduler_counts_is_not_left_out() {
    let used = |selects_pool: bool| {
        let mut snapshot = with(eight_pods_two_per_node(), [node_in("n", "e", 0)]);
        for at in (0..8).filter(|_| selects_pool) {
            snapshot.pods.change(&key(&format!("w{at}")), |pod| {
                pod.spec.node_selector.insert("poolwright.dev/nodepool".into(), "cpu".into());
            });
        }
        let plan = planned(&snapshot);
        assert_eq!((plan.unplaced.len(), plan.claims.len()), (0, 4));
        zones(&snapshot, &plan).into_keys().collect::<Vec<_>>()
    };
    assert_eq!(used(false), ["a", "b", "c", "e"], "the node is full, but makes zone e count");
    assert_eq!(used(true), ["a", "b", "c", "d"], "the pods' own node selector excludes the node");
}

#[test]
fn min_domains_say_how_many_zones_are_enough() {
    let planned = |min_domains: Option<u32>| {
        let kinds = vec![for_pods("c7.medium", 1, AT_10_CENTS), for_pods("c7.large", 2, AT_15_CENTS)];
        let snapshot = waiting(kinds, 5, min_domains);
        let plan = planned(&snapshot);
        assert_eq!(plan.unplaced, []);
        (sorted_counts(&snapshot, &plan), plan.cost)
    };
    let in_all = (vec![1, 1, 1, 1, 1], usd("0.50"));
    assert_eq!(planned(None), in_all, "with fewer zones, one would have two pods");
    assert_eq!(planned(Some(1)), in_all, "the API takes 1 for no minDomains");
    assert_eq!(planned(Some(5)), in_all);
    assert_eq!(planned(Some(4)), (vec![2, 1, 1, 1], usd("0.45")));
    assert_eq!(planned(Some(2)), (vec![2, 2, 1], usd("0.40")), "two zones would save nothing more");
}

#[test]
fn the_dearest_zone_is_left_out() {
    let snapshot = waiting(vec![for_pods("c7.large", 2, DEARER_IN_B)], 8, None);
    assert_eq!(zones(&snapshot, &planned(&snapshot)).keys().collect::<Vec<_>>(), ["a", "c", "d", "e"]);
}

#[test]
fn pods_stay_in_all_zones_if_fewer_save_nothing() {
    let snapshot = waiting(vec![for_pods("c7.medium", 1, AT_10_CENTS)], 8, None);
    let plan = planned(&snapshot);
    assert_eq!((sorted_counts(&snapshot, &plan), plan.claims.len()), (vec![2, 2, 2, 1, 1], 8));
}

#[test]
fn no_zone_is_left_out_in_which_another_new_node_may_be_launched() {
    let nodes = |large: Prices| {
        let kinds = vec![for_pods("c7.large", 2, AT_10_CENTS), for_pods("m7.large", 8, large)];
        let snapshot = with(waiting(kinds, 8, None), [pod("other", requests(8, 8, 0))]);
        let plan = planned(&snapshot);
        assert_eq!(plan.unplaced, []);
        plan.claims.iter().filter(|claim| claim.instance_type().as_str() == "c7.large").count()
    };
    assert_eq!(nodes(&[("a", "0.80")]), 4);
    assert_eq!(nodes(&[("a", "0.80"), ("e", "0.80")]), 5, "zone e may count when the pods are bound");
}

#[test]
fn a_preference_for_a_zone_is_not_given_up_for_fewer_nodes() {
    let mut snapshot = eight_pods_two_per_node();
    snapshot.pods.change(&key("w7"), |pod| {
        let term = NodeSelectorTerm { requirements: vec![is_in(ZONE, &["e"])] };
        let nodes = vec![Weighted { weight: 50, term }];
        pod.spec.preferences = Some(Box::new(Preferences { nodes, ..Preferences::default() }));
    });
    let plan = planned(&snapshot);
    let zones = zones(&snapshot, &plan);
    assert!(zones["e"].contains(&"w7".to_owned()), "{zones:?}");
    assert_eq!(plan.unplaced, []);
}
