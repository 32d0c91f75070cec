//! Tests of the choice of pools.

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_core::plan::{CostRule, Plan, UnplacedReason};
use poolwright_core::{Operator, Pod, Pool, PoolLimits, PoolName, PoolProblem, Requirement};
use poolwright_terms::Reason;

use crate::kit::*;

#[test]
fn pods_go_to_the_heaviest_pool_that_can_hold_them() {
    let dear = Pool {
        weight: 10,
        requirements: vec![is_in("node.kubernetes.io/instance-type", &["g6.xlarge"])],
        ..pool("dear")
    };
    let pods = [pod("a", requests(1, 1, 1)), pod("b", requests(40, 1, 4))];
    let plan = planned(&with(cluster(aws(), [dear, pool("cheap")]), pods));
    assert_eq!(bought(&plan), ["g5.12xlarge: b", "g6.xlarge: a"]);
}

#[test]
fn a_label_of_the_template_that_a_requirement_forbids_is_told_as_the_contradiction_that_it_is() {
    let labelled = |operator: Operator| Pool {
        labels: [("team".to_owned(), "x".to_owned())].into(),
        requirements: vec![Requirement { key: "team".into(), operator }],
        ..pool("gpu")
    };
    let values = || ["x".to_owned()].into();
    for (operator, words) in
        [(Operator::NotIn(values()), "team NotIn [x]"), (Operator::DoesNotExist, "team DoesNotExist")]
    {
        let plan = planned(&with(cluster(aws(), [labelled(operator)]), [pod("a", requests(1, 1, 1))]));
        assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
        let expected = format!(
            "label `team: x` of spec.template.metadata.labels does not meet `{words}` of spec.template.spec.requirements"
        );
        assert!(plan.unplaced[0].message.contains(&expected), "{}", plan.unplaced[0].message);
    }
    let met =
        planned(&with(cluster(aws(), [labelled(Operator::In(values()))]), [pod("a", requests(1, 1, 1))]));
    assert_eq!(met.unplaced, []);
}

#[test]
fn the_next_pool_buys_for_the_pods_beyond_a_limit() {
    let mut first = Pool { weight: 10, ..pool("first") };
    first.limits.resources.insert(ResourceName::new(ResourceName::NVIDIA_GPU), 1);
    let pods = [pod("a", requests(1, 1, 1)), pod("b", requests(1, 1, 1))];
    let plan = planned(&with(cluster(aws(), [first, pool("second")]), pods));
    let mut pools: Vec<_> = plan.claims.iter().map(|claim| claim.pool.0.as_str()).collect();
    pools.sort_unstable();
    assert_eq!(pools, ["first", "second"]);
    assert!(plan.unplaced.is_empty());
    assert!(plan.pools[&PoolName("first".into())].limit_reached.is_some());
}

/// Returns types with one and two GPUs. Large ones cost more in zone b.
fn dear_in_b() -> Catalogue {
    catalogue(vec![
        Kind("small", capacity(4, 16, 1), None, &[("a", "1.00"), ("b", "1.00")]),
        Kind("large", capacity(32, 128, 1), None, &[("a", "1.50"), ("b", "2.50")]),
        Kind("double", capacity(8, 32, 2), None, &[("a", "2.00"), ("b", "9.00")]),
    ])
}

/// Plans pods for a pool in zone a with these limits, and a pool of less weight in zone b.
fn planned_within(limits: PoolLimits, sold: Catalogue, pods: impl IntoIterator<Item = Pod>) -> Plan {
    let in_zone = |zone| vec![is_in("topology.kubernetes.io/zone", &[zone])];
    let first = Pool { weight: 10, requirements: in_zone("a"), limits, ..pool("first") };
    let second = Pool { requirements: in_zone("b"), ..pool("second") };
    planned(&with(cluster(sold, [first, second]), pods))
}

/// Plans pods for a pool in zone a that may have this many GPUs, and a pool of less weight in zone b.
fn planned_in_two_pools(gpus: u64, pods: impl IntoIterator<Item = Pod>) -> Plan {
    let resources = [(ResourceName::new(ResourceName::NVIDIA_GPU), gpus)].into();
    planned_within(PoolLimits { resources, ..PoolLimits::default() }, dear_in_b(), pods)
}

/// Returns the names of the pods that a pool buys for, sorted.
fn served_by(plan: &Plan, pool: &str) -> Vec<String> {
    let claims = plan.claims.iter().filter(|claim| claim.pool.0 == pool);
    let mut pods: Vec<String> =
        claims.flat_map(|claim| &claim.planned_pods).map(|pod| pod.name().into_owned()).collect();
    pods.sort();
    pods
}

#[test]
fn a_limited_pool_serves_the_pods_that_cost_more_in_the_next_pool() {
    let small = ["s", "t"].map(|name| pod(name, requests(2, 1, 1)));
    let large = ["l", "m"].map(|name| pod(name, requests(30, 1, 1)));
    let plan = planned_in_two_pools(2, small.into_iter().chain(large));
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second")), (names_of("lm"), names_of("st")));
    assert_eq!((plan.cost, plan.bound), (usd("5.00"), usd("5.00")), "the other way round, it costs 7.00");
}

#[test]
fn a_pod_with_no_other_pool_gets_the_room_of_a_pod_that_has_one() {
    let mut bound_to_a = pod("l", requests(30, 1, 1));
    bound_to_a.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "a".into());
    let plan = planned_in_two_pools(1, [bound_to_a, pod("s", requests(2, 1, 1))]);
    assert_eq!(plan.unplaced, []);
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second")), (names_of("l"), names_of("s")));
}

#[test]
fn many_pods_that_have_another_pool_do_not_keep_out_a_pod_that_has_none() {
    // The first pool may have one node: a wide one for twenty pods, or a deep one for the pod that fits nothing else.
    let sold = catalogue(vec![
        Kind("wide", capacity(20, 20, 0), None, &[("a", "1.00"), ("b", "1.00")]),
        Kind("deep", capacity(2, 64, 0), None, &[("a", "1.00")]),
    ]);
    let small = ('b'..='u').map(|name| pod(&name.to_string(), requests(1, 1, 0)));
    let plan = planned_within(one_node(), sold, small.chain([pod("a", requests(2, 60, 0))]));
    assert_eq!(plan.unplaced, []);
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second").len()), (names_of("a"), 20));
    assert_eq!((plan.cost, plan.bound), (usd("2.00"), usd("2.00")));
}

#[test]
fn a_limited_pool_serves_as_many_pods_as_it_can_even_if_fewer_would_save_more() {
    let two = ["s", "t"].map(|name| pod(name, requests(2, 1, 1)));
    let plan = planned_in_two_pools(2, two.into_iter().chain([pod("d", requests(2, 1, 2))]));
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second")), (names_of("st"), names_of("d")));
    assert_eq!(plan.cost, usd("11.00"));
}

/// The limits of a pool that may have one node.
fn one_node() -> PoolLimits {
    PoolLimits { nodes: Some(1), ..PoolLimits::default() }
}

/// Plans a pod x of many cores and a pod y of much memory, whose priority is given. The first pool may serve one of them: x for $1.00/h
/// or y for $0.90/h. The second pool serves x for $2.00/h, on a node of which it needs less than half, and y for $1.50/h.
fn planned_beside_x(priority_of_y: i32) -> Plan {
    let sold = catalogue(vec![
        Kind("wide", capacity(10, 8, 0), None, &[("a", "1.00")]),
        Kind("wider", capacity(20, 8, 0), None, &[("b", "2.00")]),
        Kind("deep", capacity(4, 16, 0), None, &[("a", "0.90"), ("b", "1.50")]),
    ]);
    let y = Pod { priority: priority_of_y, ..pod("y", requests(3, 12, 0)) };
    planned_within(one_node(), sold, [pod("x", requests(9, 1, 0)), y])
}

#[test]
fn a_plan_in_steps_costs_no_more_than_first_fit_that_serves_as_many_pods_in_each_pool() {
    let plan = planned_beside_x(0);
    let first_fit = plan.baselines.first_fit;
    assert_eq!((first_fit.cost, first_fit.serves_later), (usd("2.50"), false));
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second")), (names_of("x"), names_of("y")));
    assert_eq!((plan.cost, plan.bound), (usd("2.50"), usd("2.50")), "the other way round, it costs 2.90");
    let limit = plan.pools[&PoolName("first".into())].limit_reached.as_deref();
    assert!(limit.is_some_and(|limit| limit.starts_with("limit nodes = 1 of pool `first` is reached")));
}

#[test]
fn a_pod_of_a_higher_priority_gets_the_heavier_pool_and_the_plan_tells_what_that_costs() {
    let plan = planned_beside_x(1);
    assert_eq!((served_by(&plan, "first"), served_by(&plan, "second")), (names_of("y"), names_of("x")));
    let first_fit = plan.baselines.first_fit;
    assert_eq!((plan.cost, first_fit.cost), (usd("2.90"), usd("2.50")));
    assert!(
        first_fit.serves_later && first_fit.defers_priorities,
        "it leaves y to the second pool, and not x"
    );
    let rules: Vec<_> = plan.rules.iter().map(|of| (of.rule, of.cost)).collect();
    let cost = Some(usd("0.40"));
    assert_eq!(rules, [(CostRule::Weights, cost), (CostRule::Priorities, cost)]);
}

#[test]
fn a_cheaper_way_that_leaves_more_pods_to_a_pool_of_less_weight_is_not_taken_and_is_known_as_such() {
    let sold = catalogue(vec![
        Kind("one", capacity(4, 16, 1), None, &[("a", "1.00"), ("b", "1.00")]),
        Kind("four", capacity(32, 128, 4), None, &[("a", "9.00")]),
    ]);
    let pods = ["p", "q", "r", "s", "t"].map(|name| pod(name, requests(2, 1, 1)));
    let plan = planned_within(one_node(), sold, pods);
    assert_eq!((served_by(&plan, "first").len(), plan.cost), (4, usd("10.00")));
    let alone = plan.baselines.one_pod_per_node;
    assert_eq!((alone.cost, alone.serves_later, alone.defers_priorities), (usd("5.00"), true, false));
    assert!(!plan.baselines.first_fit.serves_later);
}

/// Returns each letter as a name.
fn names_of(letters: &str) -> Vec<String> {
    letters.chars().map(String::from).collect()
}

#[test]
fn a_template_label_selects_the_pool_and_travels_with_the_claim() {
    let mut team = pool("team");
    team.labels.insert("team".into(), "vision".into());
    let mut wants = pod("a", requests(1, 1, 1));
    wants.spec.node_selector.insert("team".into(), "vision".into());
    let mut by_name = pod("b", requests(1, 1, 1));
    by_name.spec.node_selector.insert("poolwright.dev/nodepool".into(), "other".into());
    let plan = planned(&with(cluster(aws(), [team, pool("other")]), [wants, by_name]));
    let of = |name: &str| plan.claims.iter().find(|claim| claim.planned_pods == [key(name)]).unwrap();
    assert_eq!((of("a").pool.0.as_str(), of("b").pool.0.as_str()), ("team", "other"));
    assert_eq!(of("a").labels["team"], "vision");
}

#[test]
fn taints_keep_pods_away_and_startup_taints_do_not() {
    let tainted =
        Pool { taints: vec![taint("gpu", "yes")], startup_taints: vec![taint("boot", "")], ..pool("gpu") };
    let mut tolerant = pod("a", requests(1, 1, 1));
    tolerant.spec.tolerations = vec![tolerate("gpu")];
    let plan = planned(&with(cluster(aws(), [tainted]), [tolerant, pod("b", requests(1, 1, 1))]));
    assert_eq!(bought(&plan), ["g5.xlarge: a"]);
    assert_eq!(plan.claims[0].taints, [taint("gpu", "yes")]);
    assert_eq!(plan.claims[0].startup_taints, [taint("boot", "")]);
    assert_eq!(
        plan.unplaced[0].message,
        "does not tolerate taint `gpu=yes:NoSchedule` of pool `gpu`; add a toleration, or a pool without the taint"
    );
}

#[test]
fn requirements_choose_among_offerings() {
    let few = Requirement { key: "poolwright.dev/gpu-count".into(), operator: Operator::Gte(2) };
    let large = Pool { requirements: vec![few], ..pool("large") };
    let plan = planned(&with(cluster(aws(), [large]), [pod("a", requests(1, 1, 1))]));
    assert_eq!(bought(&plan), ["g5.12xlarge: a"]);
}

#[test]
fn a_pool_that_cannot_be_used_says_why_and_buys_nothing() {
    let contradicting =
        Pool { requirements: vec![is_in("zone", &["a"]), is_in("zone", &["b"])], ..pool("contradicting") };
    let mut lost = pool("lost");
    lost.node_class.name = "missing".into();
    let problem = PoolProblem { reason: Reason::InvalidQuantity, message: "spec.limits.cpu: ...".into() };
    let broken = Pool { problem: Some(problem), ..pool("broken") };
    let nothing = Pool { requirements: vec![is_in("team", &["a"])], ..pool("nothing") };
    let deleting = Pool { deleting: true, ..pool("deleting") };
    let pools = [contradicting, lost, broken, nothing, deleting];
    let plan = planned(&with(cluster(aws(), pools), [pod("a", requests(1, 1, 1))]));
    let invalid = |name: &str| plan.pools[&PoolName(name.into())].invalid.as_ref().unwrap().0.as_str();
    assert_eq!(invalid("contradicting"), "ContradictingRequirements");
    assert_eq!(invalid("broken"), "InvalidQuantity");
    assert_eq!(invalid("nothing"), "NoOfferingMatches");
    let (reason, message) = plan.pools[&PoolName("lost".into())].node_class.as_ref().unwrap();
    assert_eq!(reason, "NodeClassNotFound");
    assert_eq!(
        message,
        "KwokNodeClass `missing` does not exist; create it, or correct spec.template.spec.nodeClassRef"
    );
    assert!(plan.claims.is_empty());
    assert_eq!(plan.unplaced[0].reason, UnplacedReason::NoUsablePool);
    assert_eq!(plan.unplaced[0].message, "pool `broken` cannot be used: spec.limits.cpu: ...");
}
