//! Tests of limits.

use poolwright_catalog::{RankedOffering, ResourceName};
use poolwright_core::plan::{CostRule, PlanOptions, UnplacedReason, plan};
use poolwright_core::{Claim, Pool, PoolLimits, Snapshot};

use crate::kit::*;

fn limited(limits: PoolLimits) -> Pool {
    Pool { limits, ..pool("gpu") }
}

fn gpus(count: u64) -> PoolLimits {
    PoolLimits {
        resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), count)].into(),
        ..PoolLimits::default()
    }
}

fn three() -> [poolwright_core::Pod; 3] {
    ["a", "b", "c"].map(|name| pod(name, requests(1, 1, 1)))
}

#[test]
fn a_resource_limit_stops_buying_and_is_named_on_pod_and_pool() {
    let plan = planned(&with(cluster(aws(), [limited(gpus(2))]), three()));
    assert_eq!(plan.claims.len(), 2);
    let left = &plan.unplaced[0];
    assert_eq!(left.reason, UnplacedReason::LimitReached);
    assert_eq!(
        left.message,
        "limit nvidia.com/gpu = 2 of pool `gpu` is reached (in use or on order: 2); raise spec.limits"
    );
    assert_eq!(plan.pools[&pool("gpu").name].limit_reached.as_ref(), Some(&left.message));
}

#[test]
fn limits_on_nodes_and_on_money_hold_too() {
    let nodes = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    let pods = ["a", "b", "c", "d", "e"].map(|name| pod(name, requests(1, 1, 1)));
    let plan = planned(&with(cluster(aws(), [limited(nodes)]), pods));
    assert_eq!(plan.claims.len(), 1);
    assert_eq!(plan.counts.on_new + plan.counts.unplaced, 5);
    let money = PoolLimits { usd_per_hour: Some(usd("2.50")), ..PoolLimits::default() };
    let plan = planned(&with(cluster(aws(), [limited(money)]), three()));
    assert_eq!((plan.claims.len(), plan.cost), (2, usd("2.012")));
}

#[test]
fn a_pool_without_a_money_limit_has_the_default_one_and_its_pods_are_told_how_to_set_another() {
    let options = PlanOptions { default_usd_per_hour: Some(usd("2.50")), ..PlanOptions::default() };
    let by_default = |pool: Pool| {
        let plan =
            plan(&with(cluster(aws(), [pool]), three()), at(10), &options, &mut poolwright_solver::NeverStop);
        assert_eq!(plan.refused, Vec::<String>::new());
        plan
    };
    let plan = by_default(limited(PoolLimits::default()));
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(
        plan.unplaced[0].message,
        "limit usdPerHour = 2.50 (default) of pool `gpu` leaves too little (in use or on order: $2.02/h; one more node uses at least $1.01/h); set \
         spec.limits.usdPerHour of the pool"
    );
    let own = PoolLimits { usd_per_hour: Some(usd("100")), ..PoolLimits::default() };
    assert_eq!(by_default(limited(own)).claims.len(), 3);
    let replicas = by_default(Pool { replicas: Some(20), ..pool("gpu") });
    assert_eq!(replicas.cost, usd("2.38"));
    assert_eq!(
        replicas.pools[&pool("gpu").name].limit_reached.as_deref(),
        Some(
            "limit usdPerHour = 2.50 (default) of pool `gpu` allows no more of its replicas (in use or on order: $2.38/h); set \
             spec.limits.usdPerHour of the pool, or lower spec.replicas"
        )
    );
}

#[test]
fn a_limit_of_zero_buys_nothing() {
    let plan = planned(&with(cluster(aws(), [limited(gpus(0))]), three()));
    assert!(plan.claims.is_empty());
    assert!(plan.unplaced.iter().all(|left| left.reason == UnplacedReason::LimitReached));
}

#[test]
fn a_claim_that_is_not_launched_counts_as_the_most_it_may_become() {
    let mut open = claim();
    open.planned_pods.clear();
    open.offerings.push(RankedOffering {
        offering: id("g5.12xlarge", "a"),
        price: Some(usd("5.672")),
        allocatable: capacity(48, 192, 4),
    });
    // The claim's free room takes one pod. The claim may still be launched with four of the five allowed GPUs.
    let snapshot = with(with(cluster(aws(), [limited(gpus(5))]), three()), [open.clone()]);
    assert_eq!(planned(&snapshot).claims.len(), 1);
    let snapshot = with(with(cluster(aws(), [limited(gpus(5))]), three()), [launched(open)]);
    assert_eq!(planned(&snapshot).claims.len(), 2);
}

#[test]
fn claims_that_are_being_deleted_still_count() {
    let mut leaving = launched(claim());
    leaving.deleting_since = Some(at(1));
    let snapshot = with(with(cluster(aws(), [limited(gpus(1))]), three()), [leaving]);
    assert!(planned(&snapshot).claims.is_empty());
}

#[test]
fn the_rest_of_a_limit_after_a_cheaper_plan_is_used() {
    let kinds = catalogue(vec![Kind("four", capacity(16, 64, 4), None, &[("a", "4.50")])]);
    let money = PoolLimits { usd_per_hour: Some(usd("14")), ..PoolLimits::default() };
    let large = [(1, 1, 4), (1, 1, 4), (1, 10, 3), (1, 1, 3), (1, 1, 3), (1, 1, 3)];
    let pods = large
        .into_iter()
        .enumerate()
        .map(|(n, (cpu, memory, gpus))| pod(&format!("p{n}"), requests(cpu, memory, gpus)));
    let first = [("q", 9), ("r", 1)]
        .map(|(name, memory)| poolwright_core::Pod { priority: 1, ..pod(name, requests(7, memory, 1)) });
    let plan = planned(&with(with(cluster(kinds, [limited(money)]), pods), first));
    assert_eq!((plan.claims.len(), plan.cost), (3, usd("13.50")));
    assert!(plan.bound <= plan.cost && !plan.unplaced.is_empty());
}

/// Plans with limits on all pools together.
fn planned_within(snapshot: &poolwright_core::Snapshot, limits: PoolLimits) -> poolwright_core::plan::Plan {
    let options = PlanOptions { limits, ..PlanOptions::default() };
    plan(snapshot, at(10), &options, &mut poolwright_solver::NeverStop)
}

#[test]
fn a_limit_over_all_pools_holds_for_their_sum_and_counts_what_their_claims_have() {
    let pools = || {
        let light = Pool { weight: 1, ..limited(PoolLimits::default()) };
        let heavy = Pool { weight: 2, limits: gpus(1), ..pool("heavy") };
        [light, heavy]
    };
    let snapshot = with(cluster(aws(), pools()), three());
    assert_eq!(planned(&snapshot).claims.len(), 3);
    let plan = planned_within(&snapshot, gpus(2));
    assert!(plan.refused.is_empty(), "{:?}", plan.refused);
    assert_eq!(plan.claims.len(), 2);
    assert_eq!(
        plan.unplaced[0].message,
        "limit nvidia.com/gpu = 2 over all pools is reached (in use or on order: 2); raise it"
    );
    let money = PoolLimits { usd_per_hour: Some(usd("2.50")), ..PoolLimits::default() };
    let plan = planned_within(&snapshot, money);
    assert!(plan.cost <= usd("2.50") && plan.claims.len() == 2, "{}", plan.cost);
    let nodes = PoolLimits { nodes: Some(0), ..PoolLimits::default() };
    assert!(planned_within(&snapshot, nodes).claims.is_empty());
    let mut there = snapshot.clone();
    let mut one = claim();
    one.planned_pods.clear();
    there.claims.insert(one.name.clone(), std::sync::Arc::new(one));
    let nodes = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    assert!(planned_within(&there, nodes).claims.is_empty());
}

fn cores(count: u64) -> PoolLimits {
    PoolLimits {
        resources: [(ResourceName::new(ResourceName::CPU), count * 1000)].into(),
        ..PoolLimits::default()
    }
}

/// Returns the messages of the pods that have no node.
fn left_out(plan: &poolwright_core::plan::Plan) -> Vec<&str> {
    plan.unplaced.iter().map(|left| left.message.as_str()).collect()
}

/// Returns a catalogue of one instance type of four cores, and a number of pods of three cores.
fn of_four_cores(price: &'static [(&'static str, &'static str)], pools: Vec<Pool>, pods: usize) -> Snapshot {
    let kinds = catalogue(vec![Kind("four", capacity(4, 8, 0), None, price)]);
    with(cluster(kinds, pools), ["p0", "p1"].iter().take(pods).map(|name| pod(name, requests(3, 1, 0))))
}

#[test]
fn the_limit_that_serves_the_pod_alone_is_named_before_one_that_needs_another_raised_too() {
    let pools = vec![Pool { limits: cores(2), ..pool("a") }, pool("b")];
    let snapshot = of_four_cores(&[("a", "0.20")], pools, 2);
    let nodes = |most: u64| PoolLimits { nodes: Some(most), ..PoolLimits::default() };
    let short = planned_within(&snapshot, nodes(1));
    assert_eq!(
        left_out(&short),
        ["limit nodes = 1 over all pools is reached (in use or on order: 1); raise it"]
    );
    assert_eq!(planned_within(&snapshot, nodes(2)).unplaced, []);
}

#[test]
fn all_limits_are_named_that_must_be_raised_for_the_pod() {
    let of_pool = |limits: PoolLimits, pods: usize| {
        of_four_cores(&[("a", "0.20")], vec![Pool { limits, ..pool("a") }], pods)
    };
    let both = |most: u64, nodes: u64| PoolLimits { nodes: Some(nodes), ..cores(most) };
    let below = "limit cpu = 2 of pool `a` is below the 4 that the smallest node which fits it uses; raise spec.limits; and limit \
                 nodes = 0";
    assert_eq!(
        left_out(&planned(&of_pool(both(2, 0), 1))),
        [format!(
            "{below} of pool `a` is below the 1 that the smallest node which fits it uses; raise spec.limits"
        )]
    );
    assert_eq!(
        left_out(&planned(&of_pool(both(4, 1), 2))),
        [
            "limit cpu = 4 of pool `a` is reached (in use or on order: 4); raise spec.limits; and limit nodes = 1 of pool `a` is reached \
          (in use or on order: 1); raise spec.limits"
        ]
    );
    let nodes = PoolLimits { nodes: Some(0), ..PoolLimits::default() };
    assert_eq!(
        left_out(&planned_within(&of_pool(cores(2), 1), nodes)),
        [format!(
            "{below} over all pools is below the 1 that the smallest node which fits it uses; raise it"
        )]
    );
}

#[test]
fn a_limit_is_told_with_what_a_node_uses_that_other_limits_allow() {
    let within = |cpu: u64| {
        let kinds = catalogue(vec![
            Kind("dear", capacity(4, 8, 0), None, &[("a", "1.00")]),
            Kind("large", capacity(8, 8, 0), None, &[("a", "0.50")]),
        ]);
        let limits = PoolLimits { usd_per_hour: Some(usd("0.80")), ..cores(cpu) };
        planned(&with(cluster(kinds, [Pool { limits, ..pool("a") }]), [pod("p", requests(3, 1, 0))]))
    };
    assert_eq!(
        left_out(&within(2)),
        [
            "limit cpu = 2 of pool `a` is below the 8 that the smallest node which fits it uses; raise spec.limits; smaller nodes are \
          beyond other limits and do not count"
        ]
    );
    assert_eq!(within(8).unplaced, []);
}

#[test]
fn a_limit_on_money_as_high_as_the_message_says_serves_the_pod() {
    let within = |most: &str| {
        let limits = PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
        planned(&of_four_cores(&[("a", "4.714")], vec![Pool { limits, ..pool("a") }], 1))
    };
    assert_eq!(
        left_out(&within("4")),
        [
            "limit usdPerHour = 4.00 of pool `a` is below the $4.72/h that the smallest node which fits it uses; raise spec.limits"
        ]
    );
    assert_eq!(within("4.72").unplaced, []);
}

/// Returns a pool of these instance types.
fn selling(name: &str, weight: u32, types: &[&str]) -> Pool {
    let requirements = vec![is_in("node.kubernetes.io/instance-type", types)];
    Pool { weight, requirements, ..pool(name) }
}

#[test]
fn a_limit_over_all_pools_serves_the_most_pods_it_can_and_of_these_the_most_in_the_heavier_pool() {
    // Each node holds one pod. A node of the heavier pool uses eight cores of the limit, and one of the other pool five. So 18 cores
    // serve three pods, if only one of them is in the heavier pool.
    let sold = || {
        catalogue(vec![
            Kind("eight", capacity(8, 32, 0), None, &[("a", "0.40")]),
            Kind("five", capacity(5, 32, 0), None, &[("a", "0.30")]),
        ])
    };
    for (most, priority) in [4, 7, 8, 10, 13, 15, 16, 18, 20, 21, 24].iter().flat_map(|n| [(*n, 0), (*n, 1)])
    {
        let pools = [selling("heavy", 10, &["eight"]), selling("light", 1, &["five"])];
        let first = poolwright_core::Pod { priority, ..pod("p", requests(5, 1, 0)) };
        let others = ["q", "r"].map(|name| pod(name, requests(5, 1, 0)));
        let plan = planned_within(&with(with(cluster(sold(), pools), others), [first]), cores(most));
        assert_eq!(plan.refused, Vec::<String>::new());
        let of = |name: &str| plan.claims.iter().filter(|claim| claim.pool.0 == name).count() as u64;
        let fits = |(heavy, light): &(u64, u64)| heavy + light <= 3 && 8 * heavy + 5 * light <= most;
        let all = (0..=3).flat_map(|heavy| (0..=3).map(move |light| (heavy, light)));
        let best = all.filter(fits).max_by_key(|(heavy, light)| (heavy + light, *heavy)).unwrap();
        assert_eq!((of("heavy"), of("light")), best, "{most} cores");
        assert!(plan.bound <= plan.cost);
        let in_heavy =
            plan.claims.iter().any(|claim| claim.pool.0 == "heavy" && claim.planned_pods == [key("p")]);
        assert!(in_heavy || priority == 0 || best.0 == 0, "the pod of the higher priority chooses first");
    }
}

#[test]
fn a_plan_in_steps_buys_the_nodes_of_first_fit_if_its_own_first_step_takes_what_the_next_one_lacks() {
    // The first pool may have eight cores, and all pools 14. Two small nodes for x and y cost least, $0.60/h, and leave six cores. Then
    // z costs $1.00/h on five cores. First fit puts x and y on six cores for $0.70/h, and z on eight cores for $0.50/h.
    let sold = catalogue(vec![
        Kind("small", capacity(4, 8, 0), None, &[("a", "0.30")]),
        Kind("six", capacity(6, 32, 0), None, &[("a", "0.70")]),
        Kind("five", capacity(5, 32, 0), None, &[("a", "1.00")]),
        Kind("eight", capacity(8, 32, 0), None, &[("a", "0.50")]),
        Kind("eleven", capacity(11, 64, 0), None, &[("a", "1.10")]),
    ]);
    let first = Pool { limits: cores(8), ..selling("first", 10, &["small", "six"]) };
    let second = selling("second", 1, &["five", "eight", "eleven"]);
    let pods = [pod("x", requests(3, 4, 0)), pod("y", requests(3, 4, 0)), pod("z", requests(2, 30, 0))];
    let plan = planned_within(&with(cluster(sold, [first, second]), pods), cores(14));
    assert_eq!(plan.refused, Vec::<String>::new());
    assert_eq!(bought(&plan), ["eight: z", "six: x y"]);
    assert_eq!((plan.cost, plan.baselines.first_fit.cost), (usd("1.20"), usd("1.20")));
    assert_eq!((plan.in_steps, plan.bound.micros()), (true, 0), "the bound of other steps would say nothing");
    let rules: Vec<_> = plan.rules.iter().map(|of| (of.rule, of.cost)).collect();
    assert_eq!(rules, [(CostRule::Weights, Some(usd("0.10")))], "one node of eleven cores holds all");
}

/// A node of pool `gpu`, as its labels say.
pub fn labelled(name: &str) -> poolwright_core::Node {
    let labels = [
        ("poolwright.dev/nodepool", "gpu"),
        ("node.kubernetes.io/instance-type", "g5.xlarge"),
        ("topology.kubernetes.io/zone", "a"),
        ("poolwright.dev/capacity-type", "on-demand"),
        ("poolwright.dev/nodeclaim", "not-in-the-file"),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    poolwright_core::Node { labels, ..node(name, capacity(4, 16, 0)) }
}

#[test]
fn nodes_with_the_label_of_a_pool_count_also_without_a_claim() {
    let limits = [
        PoolLimits { nodes: Some(2), ..PoolLimits::default() },
        // The node does not report its GPU yet, but its type has one.
        gpus(2),
        PoolLimits { usd_per_hour: Some(usd("2.10")), ..PoolLimits::default() },
    ];
    for limits in limits {
        let small = |pool| Pool {
            requirements: vec![is_in("node.kubernetes.io/instance-type", &["g5.xlarge"])],
            ..pool
        };
        let snapshot = with(cluster(aws(), [small(limited(limits.clone()))]), three());
        assert_eq!(planned(&snapshot).claims.len(), 2);
        let there = with(snapshot.clone(), [labelled("n1")]);
        assert_eq!(planned(&there).claims.len(), 1);
        assert_eq!(planned(&with(there, [labelled("n2")])).claims.len(), 0);
        let snapshot = with(cluster(aws(), [small(pool("gpu"))]), three());
        assert_eq!(planned_within(&with(snapshot, [labelled("n1")]), limits).claims.len(), 1);
    }
}

#[test]
fn of_a_limit_that_is_exceeded_already_all_that_is_used_is_told() {
    let limits = PoolLimits { nodes: Some(1), ..PoolLimits::default() };
    let there = [labelled("n1"), labelled("n2"), labelled("n3")];
    let plan = planned(&with(with(cluster(aws(), [limited(limits)]), three()), there));
    assert_eq!(
        left_out(&plan)[0],
        "limit nodes = 1 of pool `gpu` is reached (in use or on order: 3); raise spec.limits or free nodes"
    );
}

#[test]
fn a_node_of_a_claim_counts_once() {
    let own = Claim { planned_pods: vec![], ..initialized() };
    let by_name = poolwright_core::Node { name: "n".into(), ..labelled("n") };
    let by_id = poolwright_core::Node { provider_id: Some("kwok://c".into()), ..labelled("other") };
    let mut by_label = labelled("another");
    by_label.labels.insert("poolwright.dev/nodeclaim".into(), "c".into());
    for node in [by_name, by_id, by_label] {
        let busy = bound(pod("x", requests(3, 1, 1)), &node.name);
        let snapshot = with(cluster(aws(), [limited(gpus(2))]), three());
        let snapshot = with(with(with(snapshot, [own.clone()]), [node]), [busy]);
        assert!(!planned(&snapshot).claims.is_empty());
    }
}

#[test]
fn labelled_nodes_count_to_the_limits_of_static_pools() {
    let limits = PoolLimits { nodes: Some(2), ..PoolLimits::default() };
    let fixed = Pool { replicas: Some(3), ..limited(limits) };
    assert_eq!(planned(&with(cluster(aws(), [fixed]), [labelled("n1")])).claims.len(), 1);
}
