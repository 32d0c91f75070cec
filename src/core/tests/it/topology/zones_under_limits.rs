//! Tests of spread pods whose pools have limits that do not let every zone have a node.

use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::{NodeDrivers, PodVolume, Pool, PoolLimits};
use poolwright_terms::labels::INSTANCE_TYPE;

use super::*;

const CPU_NODE: &[(&str, &str)] =
    &[("a", "0.10"), ("b", "0.10"), ("c", "0.10"), ("d", "0.10"), ("e", "0.10")];
const GPU_NODE: &[(&str, &str)] =
    &[("a", "0.80"), ("b", "0.80"), ("c", "0.80"), ("d", "0.80"), ("e", "0.80")];
const GPU_NODE_OF_4: &[(&str, &str)] =
    &[("a", "4.60"), ("b", "4.60"), ("c", "4.60"), ("d", "4.60"), ("e", "4.60")];

fn nodes(most: u64) -> PoolLimits {
    PoolLimits { nodes: Some(most), ..PoolLimits::default() }
}

/// Returns a pool with this name that may buy these types.
fn limited(name: &str, types: &[&str], limits: PoolLimits) -> Pool {
    Pool { limits, requirements: vec![is_in(INSTANCE_TYPE, types)], ..pool(name) }
}

/// Returns a cluster with these pools, and pods that are spread over zones and ask for 1 CPU and perhaps a GPU.
fn waiting<const N: usize>(pools: [Pool; N], pods: usize, gpus: u64) -> Snapshot {
    let kinds = vec![
        Kind("c7.large", capacity(2, 16, 0), None, CPU_NODE),
        Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), GPU_NODE),
        Kind("g6.12xlarge", capacity(48, 192, 4), Some("l4"), GPU_NODE_OF_4),
    ];
    let pod = |at: usize| {
        let mut pod = app(&format!("w{at}"), "web");
        pod.spec.requests = requests(1, 1, gpus);
        spreading(pod, 1)
    };
    with(cluster(catalogue(kinds), pools), (0..pods).map(pod))
}

fn cpu_nodes(limits: PoolLimits) -> Pool {
    limited("cpu", &["c7.large"], limits)
}

fn gpu_nodes(limits: PoolLimits) -> Pool {
    limited("gpu", &["g6.xlarge", "g6.12xlarge"], limits)
}

/// Returns the number of pods in each zone, the most first, the types of the new nodes, and the number of pods that are left out.
fn outcome(snapshot: &Snapshot) -> (Vec<usize>, String, usize) {
    let plan = planned(snapshot);
    let mut counts = counts(snapshot, &plan);
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let kinds: Vec<&str> = plan.claims.iter().map(|claim| claim.instance_type().as_str()).collect();
    (counts, kinds.join(" "), plan.unplaced.len())
}

#[test]
fn fewer_zones_with_larger_nodes_hold_all_pods_where_a_limit_counts_nodes() {
    let snapshot = waiting([gpu_nodes(nodes(2))], 4, 1);
    assert_eq!(outcome(&snapshot), (vec![2, 2], "g6.12xlarge g6.12xlarge".into(), 0));
}

#[test]
fn no_gpu_node_is_bought_for_a_zone_in_which_a_limit_lets_no_usual_node_be_bought() {
    let pools = [cpu_nodes(nodes(2)), gpu_nodes(PoolLimits::default())];
    assert_eq!(outcome(&waiting(pools, 3, 0)), (vec![2, 1], "c7.large c7.large".into(), 0));
    let money = PoolLimits { usd_per_hour: Some(usd("0.20")), ..PoolLimits::default() };
    let preferred = Pool { weight: 10, ..cpu_nodes(money) };
    let pools = [preferred, gpu_nodes(PoolLimits::default())];
    assert_eq!(outcome(&waiting(pools, 4, 0)), (vec![2, 2], "c7.large c7.large".into(), 0));
}

#[test]
fn gpu_nodes_are_bought_if_the_usual_nodes_within_the_limit_cannot_hold_all_pods() {
    let pools = [cpu_nodes(nodes(1)), gpu_nodes(PoolLimits::default())];
    let (counts, kinds, left) = outcome(&waiting(pools, 4, 0));
    assert_eq!((counts.iter().sum::<usize>(), left), (4, 0), "{counts:?}");
    assert!(kinds.contains("g6"), "{kinds}");
}

#[test]
fn pods_share_the_zones_that_a_limit_lets_have_nodes() {
    let placed = |limits, pods| {
        let (counts, _, left) = outcome(&waiting([cpu_nodes(limits)], pods, 0));
        (counts, left)
    };
    assert_eq!(placed(nodes(3), 5), (vec![2, 2, 1], 0));
    assert_eq!(placed(nodes(2), 3), (vec![2, 1], 0));
    assert_eq!(placed(nodes(1), 2), (vec![2], 0));
    assert_eq!(placed(nodes(2), 5), (vec![2, 2], 1), "two nodes hold four pods");
    let cpus = ResourceList::new().with(ResourceName::CPU, 4_000);
    let resources = cpus.iter().map(|(name, amount)| (name.clone(), amount)).collect();
    assert_eq!(placed(PoolLimits { resources, ..PoolLimits::default() }, 4), (vec![2, 2], 0));
}

#[test]
fn a_pod_that_only_one_zone_admits_does_not_keep_spread_pods_from_sharing_another() {
    let prices = &[("a", "0.60"), ("b", "0.60"), ("c", "0.60"), ("d", "0.60"), ("e", "0.70")];
    let sold = catalogue(vec![Kind("c7.4xlarge", capacity(16, 64, 0), None, prices)]);
    let spread = (0..6).map(|at| spreading(app(&format!("w{at}"), "web"), 1));
    let snapshot = with(cluster(sold, [Pool { limits: nodes(1), ..pool("cpu") }]), spread);
    assert_eq!(outcome(&snapshot), (vec![6], "c7.4xlarge".into(), 0));
    let mut alone = app("alone", "db");
    alone.spec.node_selector.insert(ZONE.into(), "e".into());
    let snapshot = with(snapshot, [alone]);
    let plan = planned(&snapshot);
    let placed: Vec<String> = zones(&snapshot, &plan).into_values().flatten().collect();
    assert!((0..6).all(|at| placed.contains(&format!("w{at}"))), "{placed:?}");
    for left in &plan.unplaced {
        assert_eq!(left.reason, UnplacedReason::LimitReached, "{}", left.message);
    }
}

#[test]
fn pods_stay_in_all_zones_if_the_limit_lets_them() {
    let (counts, _, left) = outcome(&waiting([cpu_nodes(nodes(5))], 5, 0));
    assert_eq!((counts, left), (vec![1, 1, 1, 1, 1], 0));
}

#[test]
fn pods_that_attach_volumes_stay_in_all_zones_although_the_catalogue_lists_no_places_for_volumes() {
    let sold = catalogue(vec![Kind("c7.2xlarge", capacity(8, 32, 0), None, CPU_NODE)]);
    let driver = "ebs.csi.aws.com".to_owned();
    let pod = |at: usize| {
        let volume = PodVolume::Attached { driver: driver.clone(), handle: format!("vol-{at}") };
        spreading(Pod { volumes: vec![volume], ..app(&format!("w{at}"), "web") }, 1)
    };
    let snapshot = with(cluster(sold, [pool("cpu")]), (0..4).map(pod));
    let limits = [(driver, 20)].into();
    let drivers = NodeDrivers { node: "n".into(), limits, ..NodeDrivers::default() };
    let (counts, _, left) = outcome(&with(snapshot, [drivers]));
    assert_eq!((counts, left), (vec![1, 1, 1, 1], 0));
}

#[test]
fn nodes_with_room_are_used_before_gpu_nodes_in_other_zones() {
    let pools = [cpu_nodes(nodes(0)), gpu_nodes(PoolLimits::default())];
    let snapshot = with(waiting(pools, 3, 0), [node_in("n", "a", 2), node_in("m", "b", 2)]);
    assert_eq!(outcome(&snapshot), (vec![2, 1], String::new(), 0));
}

#[test]
fn no_zone_gets_more_pods_than_max_skew_if_a_limit_lets_fewer_zones_than_min_domains_have_nodes() {
    let mut snapshot = waiting([cpu_nodes(nodes(2))], 3, 0);
    for at in 0..3 {
        snapshot.pods.change(&key(&format!("w{at}")), |pod| pod.spec.spreads[0].min_domains = Some(3));
    }
    let (counts, _, left) = outcome(&snapshot);
    assert_eq!((counts, left), (vec![1, 1], 1), "without a third zone, no zone gets a second pod");
}

#[test]
fn a_limit_that_many_spread_pods_reach_leaves_the_rest_out_and_never_breaks_the_spread() {
    let sold = catalogue(vec![
        Kind("c4", capacity(4, 8, 0), None, &[("a", "0.17"), ("b", "0.17"), ("c", "0.17"), ("d", "0.17")]),
        Kind("m16", capacity(16, 64, 0), None, &[("a", "0.70"), ("b", "0.70"), ("c", "0.70"), ("d", "0.70")]),
    ]);
    for (pods, cpu) in [(120, 80), (200, 133)] {
        let resources = [(ResourceName::new(ResourceName::CPU), cpu * 1000)].into();
        let pool = Pool { limits: PoolLimits { resources, ..PoolLimits::default() }, ..pool("cpu") };
        let waiting = (0..pods).map(|at| spreading(app(&format!("p{at}"), "web"), 1));
        let snapshot = with(cluster(sold.clone(), [pool]), waiting);
        let plan = planned(&snapshot);
        let counts: Vec<usize> = zones(&snapshot, &plan).values().map(Vec::len).collect();
        let placed: usize = counts.iter().sum();
        assert!(placed * 2 >= cpu as usize, "{placed} of {pods} pods have room under {cpu} CPU: {counts:?}");
        assert_eq!(placed + plan.unplaced.len(), pods);
        let (least, most) = (counts.iter().min().expect("a zone"), counts.iter().max().expect("a zone"));
        assert!(*most <= least + 1, "{counts:?}");
    }
}

#[test]
fn pods_go_to_one_zone_where_a_limit_and_a_failed_launch_leave_the_other_nothing() {
    let kinds = vec![
        Kind("c4", capacity(4, 16, 0), None, &[("a", "0.20"), ("b", "0.20")]),
        Kind("c16", capacity(16, 64, 0), None, &[("a", "0.80"), ("b", "0.80")]),
    ];
    let resources = [(ResourceName::new(ResourceName::CPU), 12_000)].into();
    let limits = PoolLimits { resources, ..PoolLimits::default() };
    let pods = ["p0", "p1"].map(|name| {
        let mut pod = app(name, "web");
        pod.spec.requests = requests(3, 1, 0);
        spreading(pod, 1)
    });
    let mut snapshot = with(cluster(catalogue(kinds), [limited("cpu", &["c4", "c16"], limits)]), pods);
    snapshot.held_back.insert((node_class(), id("c4", "a")), at(60));
    assert_eq!(outcome(&snapshot), (vec![2], "c4 c4".into(), 0));
}
