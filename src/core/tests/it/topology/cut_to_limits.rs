//! Tests of spread pods for which a limit has too little room: as many as the limit can hold get a place, and the spread holds.

use poolwright_catalog::ResourceName;
use poolwright_core::{PodGroup, Pool, PoolLimits, PoolName, Uid};
use poolwright_terms::labels::INSTANCE_TYPE;

use super::*;

type Prices = &'static [(&'static str, &'static str)];

fn at_most(cpu: u64) -> PoolLimits {
    let resources = [(ResourceName::new(ResourceName::CPU), cpu * 1000)].into();
    PoolLimits { resources, ..PoolLimits::default() }
}

fn nodes(most: u64) -> PoolLimits {
    PoolLimits { nodes: Some(most), ..PoolLimits::default() }
}

/// Returns pods of an app that are spread over zones.
fn spread_pods(of: &str, count: usize, each: (u64, u64), min_domains: Option<u32>) -> Vec<Pod> {
    let pod = |at: usize| {
        let mut pod = app(&format!("{of}{at:03}"), of);
        pod.spec.requests = requests(each.0, 1, each.1);
        let mut pod = spreading(pod, 1);
        pod.spec.spreads[0].min_domains = min_domains;
        pod
    };
    (0..count).map(pod).collect()
}

/// Returns the number of placed pods of an app in each zone with a node.
fn counts_of(snapshot: &Snapshot, plan: &Plan, of: &str) -> Vec<usize> {
    let zones = zones(snapshot, plan);
    zones.values().map(|pods| pods.iter().filter(|pod| pod.starts_with(of)).count()).collect()
}

fn assert_even(counts: &[usize]) {
    let (least, most) = (counts.iter().min().copied(), counts.iter().max().copied());
    assert!(most.unwrap_or(0) <= least.unwrap_or(0) + 1, "{counts:?}");
}

#[test]
fn a_limit_that_spread_pods_reach_is_used_almost_whole() {
    let in_five: [Prices; 2] = [
        &[("a", "0.17"), ("b", "0.17"), ("c", "0.17"), ("d", "0.17"), ("e", "0.17")],
        &[("a", "0.70"), ("b", "0.70"), ("c", "0.70"), ("d", "0.70"), ("e", "0.70")],
    ];
    // Nodes of 16 CPU hold 5 pods of 3 CPU each, so 12 of them and two of 4 CPU hold 62.
    for (pods, each, most) in [(300, 1, 200), (100, 3, 62)] {
        let sold = catalogue(vec![
            Kind("c4", capacity(4, 32, 0), None, in_five[0]),
            Kind("m16", capacity(16, 128, 0), None, in_five[1]),
        ]);
        let pool = Pool { limits: at_most(200), ..pool("cpu") };
        let mut waiting = spread_pods("w", pods, (each, 0), None);
        for pod in &mut waiting[..most / 4] {
            pod.priority = 1;
        }
        let snapshot = with(cluster(sold, [pool]), waiting);
        let plan = planned(&snapshot);
        let counts = counts_of(&snapshot, &plan, "w");
        let placed: usize = counts.iter().sum();
        assert!(placed * 10 >= most * 9, "{placed} of {most} pods of {each} CPU have room: {counts:?}");
        assert_even(&counts);
        let size = |name: &str| -> u64 { if name == "c4" { 4 } else { 16 } };
        let bought: u64 = plan.claims.iter().map(|claim| size(claim.instance_type().as_str())).sum();
        assert!(bought <= 200, "{bought} CPU");
        assert_eq!(placed + plan.unplaced.len(), pods);
        for left in &plan.unplaced {
            assert_eq!(left.reason, UnplacedReason::LimitReached, "{}", left.message);
            assert!(left.message.starts_with("limit cpu = 200 of pool `cpu` "), "{}", left.message);
            let priority = snapshot.pods.get(&left.pod).map(|pod| pod.priority);
            assert_eq!(priority, Some(0), "{} is more important than others that are placed", left.pod);
        }
    }
}

/// Returns the most pods that a number of nodes for two pods each can hold in three zones, by trying all counts per zone.
fn most_placed(nodes: usize, pods: usize, min_domains: Option<u32>) -> usize {
    let mut best = 0;
    for a in 0..=pods {
        for b in 0..=pods - a {
            for c in 0..=pods - a - b {
                let counts = [a, b, c];
                let used: Vec<usize> = counts.into_iter().filter(|count| *count > 0).collect();
                let few = min_domains.is_some_and(|wanted| used.len() < wanted as usize);
                let least = if few { 0 } else { used.iter().min().copied().unwrap_or(0) };
                let holds = used.iter().all(|count| *count <= least + 1);
                if holds && used.iter().map(|count| count.div_ceil(2)).sum::<usize>() <= nodes {
                    best = best.max(a + b + c);
                }
            }
        }
    }
    best
}

#[test]
fn as_many_spread_pods_are_placed_within_a_limit_as_any_counts_per_zone_allow() {
    let prices: Prices = &[("a", "0.10"), ("b", "0.10"), ("c", "0.10")];
    for min_domains in [None, Some(2), Some(3)] {
        for most in 0..=5 {
            for pods in 1..=9 {
                let sold = catalogue(vec![Kind("c7.large", capacity(2, 16, 0), None, prices)]);
                let pool = Pool { limits: nodes(most as u64), ..pool("cpu") };
                let waiting = spread_pods("w", pods, (1, 0), min_domains);
                let snapshot = with(cluster(sold, [pool]), waiting);
                let plan = planned(&snapshot);
                let counts = counts_of(&snapshot, &plan, "w");
                assert_eq!(
                    counts.iter().sum::<usize>(),
                    most_placed(most, pods, min_domains),
                    "{pods} pods, {most} nodes for two each, minDomains {min_domains:?}: {counts:?}"
                );
            }
        }
    }
}

#[test]
fn the_limits_of_two_pools_are_used_whole_by_spread_pods_with_min_domains() {
    let prices: Prices = &[("a", "1.00"), ("b", "1.00")];
    for (limits, pods, each) in [([1, 1], 3, 1), ([3, 1], 8, 2), ([2, 0], 3, 1)] {
        let sold = catalogue(vec![Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), prices)]);
        let of = |name: &str, most| Pool { limits: nodes(most), ..pool(name) };
        let pools = [of("first", limits[0]), of("second", limits[1])];
        let snapshot = with(cluster(sold, pools), spread_pods("w", pods, (2, 1), Some(2)));
        let plan = planned(&snapshot);
        assert_eq!(counts_of(&snapshot, &plan, "w"), [each, each], "limits {limits:?}: {:?}", plan.unplaced);
        for (name, most) in ["first", "second"].into_iter().zip(limits) {
            let of_pool = plan.claims.iter().filter(|claim| claim.pool.0 == name).count();
            assert_eq!(of_pool as u64, most, "pool {name} of limits {limits:?}");
        }
        assert_eq!(plan.unplaced.len(), pods - 2 * each);
        for left in &plan.unplaced {
            assert_eq!(left.reason, UnplacedReason::LimitReached, "{}", left.message);
        }
    }
}

#[test]
fn the_rest_of_two_limits_is_used_whole_by_spread_pods_with_min_domains_beside_a_planned_one() {
    let prices: Prices = &[("a", "1.00"), ("b", "1.00")];
    let sold = catalogue(vec![Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), prices)]);
    let of = |name: &str, most| Pool { limits: nodes(most), ..pool(name) };
    let mut waiting = spread_pods("w", 8, (2, 1), Some(2));
    let others = waiting.split_off(1);
    let before = with(cluster(sold, [of("first", 3), of("second", 1)]), waiting);
    let snapshot = with(carried_out(&before, &planned(&before), 1), others);
    let plan = planned(&snapshot);
    assert_eq!(counts_of(&snapshot, &plan, "w"), [2, 2], "{:?}", plan.unplaced);
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (3, 4));
}

#[test]
fn a_full_node_in_a_zone_keeps_spread_pods_even_with_it_under_a_limit() {
    let prices: Prices = &[("a", "0.10"), ("b", "0.10"), ("c", "0.10")];
    for most in 1..=4 {
        let sold = catalogue(vec![Kind("c7.large", capacity(2, 16, 0), None, prices)]);
        let pool = Pool { limits: nodes(most), ..pool("cpu") };
        let waiting = spread_pods("w", 9, (1, 0), None);
        let snapshot = with(with(cluster(sold, [pool]), [node_in("n", "c", 0)]), waiting);
        let plan = planned(&snapshot);
        let zones = zones(&snapshot, &plan);
        let in_c = zones.get("c").map_or(0, Vec::len);
        let counts: Vec<usize> = zones.values().map(Vec::len).collect();
        assert!(counts.iter().all(|count| *count <= in_c + 1), "zone c counts: {zones:?}");
        let placed: usize = counts.iter().sum();
        assert!(placed + 1 >= 2 * most as usize, "{most} nodes for two each hold {placed}: {zones:?}");
    }
}

#[test]
fn pods_with_another_spread_share_fewer_zones_if_that_leaves_room_for_all() {
    let one: Prices = &[("a", "0.80"), ("b", "0.80"), ("c", "0.80"), ("d", "0.80"), ("e", "0.80")];
    let four: Prices = &[("a", "4.60"), ("b", "4.60"), ("c", "4.60"), ("d", "4.60"), ("e", "4.60")];
    let sold = catalogue(vec![
        Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), one),
        Kind("g6.12xlarge", capacity(48, 192, 4), Some("l4"), four),
    ]);
    let small = spread_pods("w", 5, (1, 1), None);
    let large = spread_pods("x", 1, (1, 3), None);
    let pool = Pool { limits: nodes(2), ..pool("gpu") };
    let snapshot = with(cluster(sold, [pool]), small.into_iter().chain(large));
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, [], "two nodes with four GPUs each hold them all in one zone");
    assert_eq!(plan.claims.len(), 2);
}

#[test]
fn a_zone_in_which_only_a_limited_pool_sells_leaves_no_pod_of_another_pool_out() {
    let cheap: Prices = &[("a", "0.80"), ("b", "0.80"), ("c", "0.80"), ("d", "0.80"), ("e", "0.80")];
    let dear: Prices = &[("a", "1.60"), ("b", "1.60"), ("c", "1.60"), ("d", "1.60")];
    let sold = || {
        catalogue(vec![
            Kind("g6.xlarge", capacity(4, 16, 1), Some("l4"), cheap),
            Kind("g6e.xlarge", capacity(4, 32, 1), Some("l40s"), dear),
        ])
    };
    let pools = || {
        let limits = PoolLimits { usd_per_hour: Some(usd("2")), ..PoolLimits::default() };
        let of = |name, kind: &str, limits| Pool {
            limits,
            requirements: vec![is_in(INSTANCE_TYPE, &[kind])],
            ..pool(name)
        };
        [of("any", "g6e.xlarge", PoolLimits::default()), of("few", "g6.xlarge", limits)]
    };
    let first = spread_pods("w", 7, (1, 1), None);
    let second = spread_pods("x", 12, (3, 1), Some(2));
    let plain = (0..2).map(|at| pod(&format!("plain{at}"), requests(1, 1, 1)));
    let snapshot = with(cluster(sold(), pools()), first.into_iter().chain(second).chain(plain));
    let plan = planned(&snapshot);
    let zones = zones_of_new_nodes(&plan);
    assert_eq!(plan.unplaced, [], "{zones:?}");
    for of in ["w", "x"] {
        let count = |pods: &Vec<String>| pods.iter().filter(|pod| pod.starts_with(of)).count();
        assert_even(&zones.values().map(count).collect::<Vec<usize>>());
    }
    let limited = plan.claims.iter().filter(|claim| claim.pool == PoolName("few".into())).count();
    assert!(limited <= 2, "{limited} nodes for $0.80/h each");
}

#[test]
fn other_pods_get_no_node_in_a_zone_that_would_leave_spread_pods_out() {
    let sold = catalogue(vec![
        Kind("c7.xlarge", capacity(4, 16, 0), None, &[("a", "0.10")]),
        Kind("t3.micro", capacity(1, 4, 0), None, &[("b", "0.02")]),
    ]);
    let spread = spread_pods("w", 2, (2, 0), None);
    let other = pod("other", requests(1, 1, 0));
    let snapshot = with(cluster(sold, [pool("cpu")]), spread.into_iter().chain([other]));
    let plan = planned(&snapshot);
    assert_eq!(plan.unplaced, [], "a node in zone b would let zone a have one spread pod only");
    assert_eq!(zones_of_new_nodes(&plan).keys().collect::<Vec<_>>(), ["a"]);
}

/// Returns the pods in each zone with a new node. Unlike [`zones`], it allows alternatives in other zones for pods without a rule.
fn zones_of_new_nodes(plan: &Plan) -> BTreeMap<String, Vec<String>> {
    let mut zones: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for claim in &plan.claims {
        let pods = claim.planned_pods.iter().map(|pod| pod.name().into_owned());
        zones.entry(claim.offering().zone.to_string()).or_default().extend(pods);
    }
    zones
}

#[test]
fn a_gang_with_a_spread_gets_its_nodes_in_the_zones_that_a_limit_allows() {
    let four: Prices = &[("a", "4.60"), ("b", "4.60"), ("c", "4.60"), ("d", "4.60"), ("e", "4.60")];
    let sold = || catalogue(vec![Kind("g6.12xlarge", capacity(48, 192, 4), Some("l4"), four)]);
    let planned_for = |count: usize| {
        let group = PodGroup {
            key: object_key("train"),
            uid: Uid("group-train".into()),
            min_count: u32::try_from(count).ok(),
            roles: vec![],
            unmodelled: vec![],
            stands_for: None,
            held: None,
        };
        let pods = spread_pods("t", count, (1, 1), None).into_iter();
        let pods = pods.map(|pod| Pod { group: Some("train".into()), ..pod });
        let pool = Pool { limits: nodes(2), ..pool("gpu") };
        let snapshot = with(with(cluster(sold(), [pool]), [group]), pods);
        let plan = planned(&snapshot);
        (counts_of(&snapshot, &plan, "t"), plan.unplaced.len())
    };
    assert_eq!(planned_for(4), (vec![2, 2], 0), "two nodes hold eight pods in two zones");
    assert_eq!(planned_for(8), (vec![4, 4], 0));
    assert_eq!(planned_for(9), (vec![], 9), "nothing is bought for a gang without room for all");
}

#[test]
fn as_many_pods_of_two_apps_are_placed_within_a_limit_as_any_counts_per_zone_allow() {
    let prices: Prices = &[("a", "0.20"), ("b", "0.20"), ("c", "0.20")];
    let sold = catalogue(vec![Kind("c7.xlarge", capacity(4, 32, 0), None, prices)]);
    let mut waiting = spread_pods("v", 4, (1, 0), Some(2));
    waiting.extend(spread_pods("w", 2, (1, 0), Some(2)));
    for pod in &mut waiting[4..] {
        pod.spec.spreads[0].max_skew = 3;
    }
    // With one node, an app has at most as many pods as its `maxSkew`.
    let snapshot = with(cluster(sold, [Pool { limits: at_most(4), ..pool("cpu") }]), waiting);
    let plan = planned(&snapshot);
    assert_eq!((counts_of(&snapshot, &plan, "v"), counts_of(&snapshot, &plan, "w")), (vec![1], vec![2]));
    assert_eq!((plan.claims.len(), plan.unplaced.len()), (1, 3));
}

#[test]
fn each_zone_gets_max_skew_pods_if_a_limit_lets_fewer_zones_than_min_domains_have_nodes() {
    let prices: Prices = &[("a", "0.20"), ("b", "0.20"), ("c", "0.20"), ("d", "0.20")];
    let waiting = |pods: usize, min_domains: u32, limit: u64| {
        let sold = catalogue(vec![Kind("c7.xlarge", capacity(4, 32, 0), None, prices)]);
        let mut waiting = spread_pods("w", pods, (1, 0), Some(min_domains));
        for pod in &mut waiting {
            pod.spec.spreads[0].max_skew = 3;
        }
        with(cluster(sold, [Pool { limits: at_most(limit), ..pool("cpu") }]), waiting)
    };
    let counts = |snapshot: &Snapshot| counts_of(snapshot, &planned(snapshot), "w");
    assert_eq!(counts(&waiting(8, 4, 16)), [2, 2, 2, 2], "the limit pays a node in each of four zones");
    assert_eq!(counts(&waiting(8, 4, 12)).iter().sum::<usize>(), 8, "three zones hold up to nine pods");
    assert_eq!(counts(&waiting(6, 4, 8)), [3, 3]);
    let snapshot = waiting(8, 4, 8);
    let plan = planned(&snapshot);
    assert_eq!(counts_of(&snapshot, &plan, "w"), [3, 3], "in four zones, two nodes would hold four pods");
    assert_eq!(plan.unplaced.len(), 2);
    for left in &plan.unplaced {
        assert_eq!(left.reason, UnplacedReason::LimitReached, "{}", left.message);
        assert!(left.message.starts_with("limit cpu = 8 of pool `cpu` is reached "), "{}", left.message);
        assert!(
            left.message.contains("; no better plan was found within the limit: while fewer than 4 domains of `topology.kubernetes.io/zone` exist (minDomains), each takes such pods only up to maxSkew (3)"),
            "{}",
            left.message
        );
    }
    let again = planned(&carried_out(&snapshot, &plan, 1));
    assert_eq!((again.claims.len(), again.unplaced.len()), (0, 2), "the others keep their places");
}

#[test]
fn fewer_zones_than_min_domains_never_only_save_money() {
    let small: Prices = &[("a", "0.20"), ("b", "0.20"), ("c", "0.20")];
    let large: Prices = &[("a", "0.30"), ("b", "0.30"), ("c", "0.30")];
    let sold = catalogue(vec![
        Kind("c7.large", capacity(2, 16, 0), None, small),
        Kind("c7.xlarge", capacity(4, 32, 0), None, large),
    ]);
    let mut waiting = spread_pods("w", 3, (1, 0), Some(3));
    for pod in &mut waiting {
        pod.spec.spreads[0].max_skew = 3;
    }
    // The limit pays a small node in each zone, and leaves out a larger pod with the same rule. Two zones would leave it out, too.
    let mut larger = spread_pods("w9", 1, (4, 0), Some(3)).remove(0);
    larger.labels.clone_from(&waiting[0].labels);
    larger.spec.spreads.clone_from(&waiting[0].spec.spreads);
    let snapshot = with(cluster(sold, [Pool { limits: at_most(6), ..pool("cpu") }]), waiting);
    let snapshot = with(snapshot, [larger]);
    let plan = planned(&snapshot);
    assert_eq!((counts_of(&snapshot, &plan, "w"), plan.unplaced.len()), (vec![1, 1, 1], 1));
}
