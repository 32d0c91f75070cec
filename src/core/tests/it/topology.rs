//! Tests of topology rules: topology spread, pod affinity and anti-affinity.

mod cut_to_limits;
mod fewer_zones;
mod shared_node;
mod spread;
mod zones_under_limits;

use std::collections::BTreeMap;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{Plan, UnplacedReason};
use poolwright_core::{
    Namespaces, Node, Pod, PodAffinityTerm, PodKey, PoolName, Snapshot, TopologySpreadConstraint,
};
use poolwright_terms::labels::ZONE;

use crate::kit::*;

/// Returns one type in three zones, at the same price.
fn three_zones() -> Catalogue {
    catalogue(vec![
        Kind("c7.large", capacity(2, 8, 0), None, &[("a", "0.10"), ("b", "0.10"), ("c", "0.10")]),
        Kind("c7.xlarge", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20"), ("c", "0.20")]),
    ])
}

fn app(name: &str, app: &str) -> Pod {
    let labels = BTreeMap::from([("app".to_owned(), app.to_owned())]);
    Pod { labels: labels.into(), ..pod(name, requests(1, 1, 0)) }
}

fn apps<const N: usize>(names: [&str; N], of: &str) -> [Pod; N] {
    names.map(|name| app(name, of))
}

fn term(key: &str, of: &str) -> PodAffinityTerm {
    PodAffinityTerm {
        topology_key: key.into(),
        namespaces: Namespaces::Named(["default".to_owned()].into()),
        selector: Some(vec![is_in("app", &[of])]),
    }
}

fn spread(key: &str, max_skew: u32, of: &str) -> TopologySpreadConstraint {
    let selector = Some(vec![is_in("app", &[of])]);
    TopologySpreadConstraint {
        topology_key: key.into(),
        max_skew,
        selector,
        ..TopologySpreadConstraint::default()
    }
}

fn spreading(mut pod: Pod, max_skew: u32) -> Pod {
    pod.spec.spreads = vec![spread(ZONE, max_skew, &pod.labels["app"])];
    pod
}

fn near(mut pod: Pod, of: &str) -> Pod {
    pod.spec.affinity = vec![term(ZONE, of)];
    pod
}

fn away(mut pod: Pod, of: &str) -> Pod {
    pod.spec.anti_affinity = vec![term(ZONE, of)];
    pod
}

fn node_in(name: &str, zone: &str, free: u64) -> Node {
    let labels = [(ZONE, zone), ("kubernetes.io/hostname", name)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    Node { labels, ..node(name, capacity(free, 64, 0)) }
}

/// Returns the pods that go to each zone, on new and on existing nodes.
fn zones(snapshot: &Snapshot, plan: &Plan) -> BTreeMap<String, Vec<String>> {
    let mut zones: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for claim in &plan.claims {
        let pods = claim.planned_pods.iter().map(|pod| pod.name().into_owned());
        zones.entry(claim.offering().zone.to_string()).or_default().extend(pods);
        let same = claim.offerings.iter().all(|ranked| ranked.offering.zone == claim.offering().zone);
        assert!(same, "an alternative in another zone would break the rule: {:?}", claim.offerings);
    }
    for placement in &plan.placements {
        let zone = match &placement.target {
            poolwright_core::plan::Target::Node(name) => snapshot.nodes[name].labels[ZONE].clone(),
            poolwright_core::plan::Target::Claim(name) => {
                snapshot.claims[name].current_offering().offering.zone.to_string()
            }
        };
        zones.entry(zone).or_default().push(placement.pod.name().into_owned());
    }
    for pods in zones.values_mut() {
        pods.sort();
    }
    zones
}

fn counts(snapshot: &Snapshot, plan: &Plan) -> Vec<usize> {
    zones(snapshot, plan).values().map(Vec::len).collect()
}

fn there(pods: impl IntoIterator<Item = Pod>) -> Snapshot {
    with(cluster(three_zones(), [pool("cpu")]), pods)
}

fn message(plan: &Plan, name: &str) -> String {
    let left = plan.unplaced.iter().find(|left| left.pod.name() == name).expect("it is left over");
    assert_eq!(left.reason, UnplacedReason::TopologyRule, "{}", left.message);
    left.message.clone()
}

#[test]
fn pods_that_must_be_together_are_in_one_zone() {
    let snapshot = there(["p", "q", "r", "s", "t", "u"].map(|name| near(app(name, "web"), "web")));
    assert_eq!(counts(&snapshot, &planned(&snapshot)), [6]);
}

#[test]
fn the_zone_for_those_that_must_be_together_is_one_that_holds_all_of_them() {
    let gpus_in_b = catalogue(vec![
        Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10"), ("b", "0.50")]),
        Kind("g5", capacity(4, 16, 1), Some("a10g"), &[("b", "1.00")]),
    ]);
    let mut gpu = near(app("g", "web"), "web");
    gpu.spec.requests = requests(1, 1, 1);
    let pods = [near(app("big", "web"), "web"), gpu];
    let mut big = pods;
    big[0].spec.requests = requests(4, 1, 0);
    let snapshot = with(cluster(gpus_in_b, [pool("cpu")]), big);
    assert_eq!(
        zones(&snapshot, &planned(&snapshot)),
        BTreeMap::from([("b".into(), vec!["big".into(), "g".into()])])
    );
}

#[test]
fn a_pod_goes_to_the_zone_of_those_that_run() {
    let running = with(there([bound(app("r", "db"), "n")]), [node_in("n", "b", 0)]);
    let snapshot = with(running, [near(app("p", "web"), "db")]);
    assert_eq!(zones(&snapshot, &planned(&snapshot)).keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn a_pod_goes_to_the_zone_of_one_that_is_planned_with_it_whatever_their_order() {
    let mut db = app("z", "db");
    db.spec.node_selector.insert(ZONE.into(), "c".into());
    let snapshot = there([near(app("p", "web"), "db"), near(app("q", "job"), "web"), db]);
    assert_eq!(
        zones(&snapshot, &planned(&snapshot)),
        BTreeMap::from([("c".into(), vec!["p".into(), "q".into(), "z".into()])])
    );
}

#[test]
fn affinity_to_a_pod_that_does_not_exist_is_named_and_all_other_pods_are_served() {
    let plan = planned(&there([near(app("p", "web"), "db"), app("q", "other")]));
    assert_eq!(
        message(&plan, "p"),
        "must be with other pods over `topology.kubernetes.io/zone` (required pod affinity), but the rule selects no running or planned pod; create those pods first, or correct the labelSelector or namespaces of the rule"
    );
    assert_eq!(plan.claims.len(), 1);
}

#[test]
fn two_pods_that_wait_for_each_other_are_not_bought_for_since_the_scheduler_would_place_neither() {
    let plan = planned(&there([near(app("p", "web"), "db"), near(app("q", "db"), "web")]));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (0, 2));
}

#[test]
fn pods_that_keep_away_over_zones_get_a_zone_each_and_no_more_than_there_are() {
    let snapshot = there(["p", "q", "r", "s"].map(|name| away(app(name, "web"), "web")));
    let plan = planned(&snapshot);
    assert_eq!(counts(&snapshot, &plan), [1, 1, 1]);
    assert_eq!(
        message(&plan, "s"),
        "keeps away from other pods over `topology.kubernetes.io/zone` (required pod anti-affinity), and such pods are in every place that fits it: a, b, c; let a pool buy in another place, or change the rule"
    );
}

#[test]
fn a_pod_bound_to_one_zone_is_placed_before_flexible_pods() {
    let mut anywhere = away(app("anywhere", "web"), "db");
    anywhere.spec.requests = requests(2, 1, 0);
    let mut picky = away(app("picky", "db"), "web");
    picky.spec.node_selector.insert(ZONE.into(), "a".into());
    let snapshot = there([anywhere, picky]);
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, []);
    assert_eq!(zones(&snapshot, &plan)["a"], ["picky"]);
}

#[test]
fn a_zone_where_one_pool_is_at_its_limit_is_left_for_one_where_another_pool_sells() {
    let zoned = |name: &str, zone: &str, nodes: Option<u64>| {
        let mut pool = pool(name);
        pool.requirements = vec![is_in(ZONE, &[zone])];
        pool.limits.nodes = nodes;
        pool
    };
    let pods = || [away(app("p", "web"), "web")];
    let snapshot =
        with(cluster(three_zones(), [zoned("full", "a", Some(0)), zoned("open", "b", None)]), pods());
    assert_eq!(zones(&snapshot, &planned(&snapshot))["b"], ["p"]);
    let running = poolwright_core::PodPhase::Bound { node: "n".into() };
    let running = Pod { phase: running, ..app("r", "web") };
    let snapshot = with(cluster(three_zones(), [zoned("full", "a", Some(0))]), pods());
    let snapshot = with(with(snapshot, [node_in("n", "b", 8)]), [running]);
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    let said = &plan.unplaced[0].message;
    assert!(said.starts_with("limit nodes = 0 of pool `full` is below the 1 "), "{said}");
}

#[test]
fn a_running_pod_keeps_others_away_from_its_zone() {
    let owner = bound(away(app("r", "batch"), "web"), "n");
    let snapshot = with(there([owner, app("p", "web"), app("q", "other")]), [node_in("n", "a", 2)]);
    let zones = zones(&snapshot, &planned(&snapshot));
    assert_eq!(zones["a"], ["q"], "which nothing keeps away");
    assert_eq!(zones.len(), 2);
}

#[test]
fn a_pool_label_is_a_topology_like_any_other() {
    let racks = ["r1", "r2"].map(|rack| {
        let mut pool = pool(rack);
        pool.labels.insert("rack".into(), rack.into());
        pool
    });
    let pods = ["p", "q"].map(|name| {
        let mut pod = app(name, "web");
        pod.spec.spreads = vec![spread("rack", 1, "web")];
        pod
    });
    let plan = planned(&with(cluster(three_zones(), racks), pods));
    let pools: Vec<_> = plan.claims.iter().map(|claim| claim.pool.0.as_str()).collect();
    assert_eq!(pools, ["r1", "r2"]);
}

#[test]
fn a_key_that_no_offering_has_is_named() {
    let mut pod = app("p", "web");
    pod.spec.spreads = vec![spread("rack", 1, "web")];
    let plan = planned(&there([pod]));
    assert_eq!(
        message(&plan, "p"),
        "must be on a node with the label `rack`, but no node or offering that fits it has this label; add the label to a pool's template, or change the rule"
    );
}

#[test]
fn a_key_that_a_cloud_or_the_offering_decides_is_not_advised_for_a_template() {
    for key in ["topology.k8s.aws/network-node-layer-1", "poolwright.dev/gpu-model"] {
        let mut pod = app("p", "web");
        pod.spec.spreads = vec![spread(key, 1, "web")];
        let said = message(&planned(&there([pod])), "p");
        assert!(said.contains(key) && !said.contains("template"), "{said}");
        assert!(said.ends_with("change the rule"), "{said}");
    }
}

#[test]
fn spread_and_affinity_and_anti_affinity_hold_together() {
    let pods = (0..9).map(|at| {
        let mut pod = spreading(app(&format!("w{at}"), "web"), 1);
        if at < 2 {
            pod.spec.anti_affinity = vec![term(ZONE, "db")];
        }
        pod
    });
    let snapshot = with(there(pods), [near(app("n", "near"), "db"), app("d", "db")]);
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, []);
    let zones = zones(&snapshot, &plan);
    let of =
        |name: &str| zones.iter().find(|(_, pods)| pods.iter().any(|pod| pod == name)).expect("placed").0;
    assert_eq!(of("n"), of("d"));
    assert!(of("w0") != of("d") && of("w1") != of("d"));
}

#[test]
fn a_new_plan_keeps_earlier_places() {
    let first = there(["p", "q", "r"].map(|name| spreading(app(name, "web"), 1)));
    let plan = planned(&first);
    let carried = carried_out(&first, &plan, 1);
    assert_eq!(planned(&carried).claims.len(), 0);
    let more = with(carried, [spreading(app("s", "web"), 1)]);
    assert_eq!(planned(&more).unplaced, []);
}

#[test]
fn a_place_that_became_wrong_is_given_up_before_the_plan_is() {
    // The pod is planned in one zone. Meanwhile, a pod that excludes it starts in that zone.
    let first = there([app("p", "web")]);
    let plan = planned(&first);
    let zone = plan.claims[0].offering().zone.to_string();
    let keeper = bound(away(app("r", "batch"), "web"), "n");
    let later = with(with(carried_out(&first, &plan, 1), [keeper]), [node_in("n", &zone, 0)]);
    let again = planned(&later);
    assert_eq!(again.claims.len(), 1);
    assert_ne!(again.claims[0].offering().zone.to_string(), zone);
}

#[test]
fn a_node_bought_for_others_in_a_new_zone_does_not_break_a_spread() {
    // GPUs are available only in zone b. Spread pods that can use only zone a would exceed the skew once zone b exists with no
    // such pods.
    let snapshot = {
        let offers = catalogue(vec![
            Kind("c7", capacity(4, 16, 0), None, &[("a", "0.10")]),
            Kind("g5", capacity(1, 2, 1), Some("a10g"), &[("b", "1.00")]),
        ]);
        let pods = ["p", "q"].map(|name| {
            let mut pod = spreading(app(name, "web"), 1);
            pod.spec.requests = requests(2, 1, 0);
            pod
        });
        with(with(cluster(offers, [pool("cpu")]), pods), [pod("g", requests(1, 1, 1))])
    };
    let plan = planned(&snapshot);
    assert_eq!(plan.claims.len(), 2);
    assert!(message(&plan, "q").contains("(a has 1, b has 0)"));
}

#[test]
fn namespaces_are_chosen_by_their_labels() {
    let mut snapshot = with(there([]), [node_in("n", "b", 0)]);
    let mut other = bound(app("r", "db"), "n");
    other.key = PodKey::new("data", other.key.name());
    let mut pod = near(app("p", "web"), "db");
    pod.spec.affinity[0].namespaces = Namespaces::NamedOrSelected([].into(), vec![is_in("team", &["ml"])]);
    snapshot = with(snapshot, [other, pod]);
    assert_eq!(planned(&snapshot).unplaced.len(), 1);
    let labels = BTreeMap::from([("team".to_owned(), "ml".to_owned())]);
    snapshot.namespaces = BTreeMap::from([("data".to_owned(), labels)]).into();
    assert_eq!(zones(&snapshot, &planned(&snapshot)).keys().collect::<Vec<_>>(), ["b"]);
}

#[test]
fn affinity_over_the_host_name_goes_to_the_node_of_those_that_run() {
    let running = with(there([bound(app("r", "db"), "n")]), [node_in("n", "b", 2), node_in("m", "b", 4)]);
    let mut pod = app("p", "web");
    pod.spec.affinity = vec![term("kubernetes.io/hostname", "db")];
    let plan = planned(&with(running, [pod]));
    assert_eq!(plan.placements.len(), 1);
    assert_eq!(plan.placements[0].target.to_string(), "node `n`");
}

#[test]
fn a_group_that_must_share_a_label_that_new_nodes_lack_is_left_out_and_the_label_is_named() {
    let together = apps(["p", "q"], "web").map(|mut pod| {
        pod.spec.affinity = vec![term("kubernetes.io/hostname", "web"), term("rack", "web")];
        pod
    });
    let plan = planned(&there(together));
    assert_eq!((plan.refused.as_slice(), plan.claims.len(), plan.unplaced.len()), (&[][..], 0, 2));
    assert!(
        message(&plan, "p").contains("must be on a node with the label `rack`"),
        "{}",
        message(&plan, "p")
    );
}

#[test]
fn a_limit_is_reached_without_a_pod_being_moved_to_zones_in_vain() {
    let mut small = pool("cpu");
    small.limits.nodes = Some(2);
    // A node holds one of them.
    let large = |name| Pod { spec: pod(name, requests(3, 1, 0)).spec, ..app(name, "web") };
    let pods = ["p", "q", "r"].map(|name| spreading(large(name), 1));
    let snapshot = with(cluster(three_zones(), [small]), pods);
    let plan = planned(&snapshot);
    assert_eq!(counts(&snapshot, &plan), [1, 1]);
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::LimitReached);
    assert!(plan.pools[&PoolName("cpu".into())].limit_reached.is_some());
}
