//! Tests that gangs are told everything that must change for them, with amounts of limits that are enough for all of their pods.

use std::collections::BTreeMap;

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_core::plan::{Plan, UnplacedReason};
use poolwright_core::*;

use crate::kit::*;
use crate::limits::labelled;
use crate::pod_groups::why;

const CAPACITY_TYPE: &str = "poolwright.dev/capacity-type";
const TYPE: &str = "node.kubernetes.io/instance-type";
const ZONE: &str = "topology.kubernetes.io/zone";

const TAINT: &str = "does not tolerate taint `team=a:NoSchedule` of pool `gpu`; add a toleration, or a pool without the taint";

/// Changes a pod of the gang, which is the first, second or third.
type Change<'c> = &'c dyn Fn(usize, &mut PodSpec);

/// Plans a gang of three pods, two of which fill a g5.xlarge. The first asks for less of it.
fn plan_of(snapshot: Snapshot, change: Change<'_>) -> Plan {
    let group = PodGroup {
        key: object_key("train"),
        uid: Uid("train".into()),
        min_count: Some(3),
        roles: vec![],
        unmodelled: vec![],
        stands_for: None,
        held: None,
    };
    let member = |(at, name): (usize, &str)| {
        let asked = if at == 0 { requests(1, 1, 1) } else { requests(3, 12, 1) };
        let mut one = Pod { group: Some("train".into()), ..pod(name, asked) };
        change(at, &mut one.spec);
        one
    };
    planned(&with(with(snapshot, [group]), ["p", "q", "r"].into_iter().enumerate().map(member)))
}

fn is_planned(plan: &Plan) -> bool {
    plan.unplaced.is_empty()
}

fn sold() -> Catalogue {
    catalogue(vec![
        Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006"), ("b", "1.006")]),
        Kind("m7.large", capacity(4, 16, 0), None, &[("a", "0.20")]),
    ])
}

fn of_nodes(most: u64) -> PoolLimits {
    PoolLimits { nodes: Some(most), ..PoolLimits::default() }
}

/// Returns limits of each kind that have too little for the gang, with those that have just enough, and the words about the first.
fn limits() -> [(PoolLimits, PoolLimits, String); 3] {
    let gpus = |most: u64| PoolLimits {
        resources: [(ResourceName::new(ResourceName::NVIDIA_GPU), most)].into(),
        ..PoolLimits::default()
    };
    let money = |most: &str| PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
    let words = |limit: &str, takes: &str, enough: &str| {
        format!(
            "limit {limit} of pool `gpu` is too low for its gang (it would take up to {takes} at once); raise spec.limits ({enough} is \
             enough)"
        )
    };
    [
        (of_nodes(2), of_nodes(3), words("nodes = 2", "3", "3")),
        (gpus(2), gpus(3), words("nvidia.com/gpu = 2", "3", "3")),
        (money("2.5"), money("3.018"), words("usdPerHour = 2.50", "$3.02/h", "3.018")),
    ]
}

/// Returns a pool of g5.xlarge nodes.
fn gpu_pool(limits: PoolLimits) -> Pool {
    Pool { limits, requirements: vec![is_in(TYPE, &["g5.xlarge"])], ..pool("gpu") }
}

/// Returns a cluster with a pool whose nodes are tainted.
fn tainted(limits: PoolLimits) -> Snapshot {
    cluster(sold(), [Pool { taints: vec![taint("team", "a")], ..gpu_pool(limits) }])
}

fn tolerating(_: usize, spec: &mut PodSpec) {
    spec.tolerations.push(tolerate("team"));
}

fn unchanged(_: usize, _: &mut PodSpec) {}

#[test]
fn a_gang_that_a_taint_and_a_limit_keep_out_is_told_both_and_how_much_the_whole_gang_takes() {
    for (short, enough, words) in limits() {
        let plan = plan_of(tainted(short.clone()), &unchanged);
        for name in ["p", "q", "r"] {
            let told = (UnplacedReason::NoOfferingFits, format!("{TAINT}; besides, {words}"));
            assert_eq!(why(&plan, name), told);
        }
        assert!(!is_planned(&plan_of(tainted(short), &tolerating)), "both are needed");
        assert_eq!(why(&plan_of(tainted(enough.clone()), &unchanged), "p").1, TAINT);
        assert!(is_planned(&plan_of(tainted(enough), &tolerating)), "both together help");
    }
}

#[test]
fn a_gang_that_a_rule_on_a_label_and_a_limit_keep_out_is_told_both() {
    for (short, enough, words) in limits() {
        let of = |limits: &PoolLimits, change: Change<'_>| {
            plan_of(cluster(sold(), [gpu_pool(limits.clone())]), change)
        };
        for (key, value) in [(ZONE, "elsewhere"), (CAPACITY_TYPE, "spot"), ("team", "ml")] {
            let selects = |_: usize, spec: &mut PodSpec| {
                spec.node_selector.insert(key.into(), value.into());
            };
            let (_, said) = why(&of(&short, &selects), "q");
            assert!(said.contains(key) && said.ends_with(&format!("; besides, {words}")), "{said}");
            let (_, said) = why(&of(&enough, &selects), "q");
            assert!(said.contains(key) && !said.contains("limit"), "the rule alone keeps it out: {said}");
        }
        assert!(!is_planned(&of(&short, &unchanged)), "both are needed");
        assert!(is_planned(&of(&enough, &unchanged)), "both together help");
    }
}

#[test]
fn a_gang_whose_pool_is_to_buy_elsewhere_is_told_the_limit_that_has_too_little_for_it_there() {
    for (short, enough, words) in limits() {
        let of = |limits: &PoolLimits, zones: &[&str]| {
            let mut pool = gpu_pool(limits.clone());
            pool.requirements.push(is_in(ZONE, zones));
            plan_of(cluster(sold(), [pool]), &|_, spec| {
                spec.node_selector.insert(ZONE.into(), "b".into());
            })
        };
        let (_, said) = why(&of(&short, &["a"]), "r");
        assert!(
            said.contains("may buy g5.xlarge ($1.01/h)") && said.ends_with(&format!("; besides, {words}")),
            "{said}"
        );
        assert!(!is_planned(&of(&short, &["a", "b"])) && !is_planned(&of(&enough, &["a"])));
        assert!(is_planned(&of(&enough, &["a", "b"])), "both together help");
    }
}

#[test]
fn a_gang_over_two_pools_is_told_the_limits_of_both() {
    let of = |cpu: u64, gpu: u64| {
        let requirements = vec![is_in(TYPE, &["m7.large"])];
        let cpus = Pool { limits: of_nodes(cpu), requirements, ..pool("cpu") };
        plan_of(cluster(sold(), [cpus, gpu_pool(of_nodes(gpu))]), &|at, spec| {
            if at == 0 {
                spec.requests = requests(3, 12, 0);
                spec.node_selector.insert(TYPE.into(), "m7.large".into());
            }
        })
    };
    let (_, said) = why(&of(0, 1), "p");
    let both = "limit nodes = 0 of pool `cpu` is too low for its gang (it would take up to 1 at once); raise spec.limits (1 is enough); \
                and limit nodes = 1 of pool `gpu` is too low for its gang (it would take up to 2 at once); raise spec.limits (2 is enough)";
    assert!(said.ends_with(both), "{said}");
    assert!(!is_planned(&of(1, 1)) && !is_planned(&of(0, 2)), "both are needed");
    assert!(is_planned(&of(1, 2)), "both together help");
}

#[test]
fn a_gang_of_which_a_part_has_nodes_is_told_what_the_rest_takes() {
    let of = |most: u64, is_tolerant: bool| {
        let cpus = Pool { requirements: vec![is_in(TYPE, &["m7.large"])], ..pool("cpu") };
        let gpus = Pool { taints: vec![taint("team", "a")], ..gpu_pool(of_nodes(most)) };
        plan_of(cluster(sold(), [cpus, gpus]), &|at, spec| {
            spec.tolerations.extend(is_tolerant.then(|| tolerate("team")));
            if at == 0 {
                spec.requests = requests(3, 12, 0);
                spec.node_selector.insert(TYPE.into(), "m7.large".into());
            }
        })
    };
    let (reason, said) = why(&of(1, false), "p");
    assert_eq!(reason, UnplacedReason::GangIncomplete);
    let limit = "limit nodes = 1 of pool `gpu` is too low for its gang (it would take up to 2 at once); raise spec.limits (2 is enough)";
    assert!(said.ends_with(&format!("{TAINT}; besides, {limit}")), "{said}");
    assert!(why(&of(2, false), "p").1.ends_with(TAINT), "the taint alone keeps it out");
    assert!(!is_planned(&of(1, true)) && is_planned(&of(2, true)), "both together help");
}

#[test]
fn room_that_a_gang_gets_once_it_tolerates_a_taint_is_no_reason_to_raise_a_limit() {
    let of = |change: Change<'_>| {
        let mut there = node("n", capacity(4, 16, 1));
        there.taints.push(taint("team", "a"));
        plan_of(with(tainted(of_nodes(2)), [there]), change)
    };
    assert_eq!(why(&of(&unchanged), "p").1, TAINT);
    assert!(is_planned(&of(&tolerating)), "the advice helps");
}

#[test]
fn a_limit_that_has_enough_for_nodes_of_two_types_is_not_told() {
    let of = |is_tolerant: bool| {
        let sold = catalogue(vec![
            Kind("g5.xlarge", capacity(4, 16, 1), Some("a10g"), &[("a", "1.006")]),
            Kind("g5.2xlarge", capacity(8, 32, 2), Some("a10g"), &[("a", "1.5")]),
        ]);
        let limits = PoolLimits { usd_per_hour: Some(usd("2.6")), ..PoolLimits::default() };
        let pool = Pool { taints: vec![taint("team", "a")], limits, ..pool("gpu") };
        plan_of(cluster(sold, [pool]), &|_, spec| {
            spec.requests = requests(3, 12, 1);
            spec.tolerations.extend(is_tolerant.then(|| tolerate("team")));
        })
    };
    assert_eq!(why(&of(false), "p").1, TAINT);
    assert!(is_planned(&of(true)), "one node of each type is within the limit");
}

#[test]
fn a_gang_that_a_limit_of_its_namespace_and_a_taint_keep_out_is_told_both() {
    let nodes = "limit nodes = 2 of namespace `default` has too little for its gang, which would take at least 3; raise \
                 poolwright.dev/limit-nodes of the Namespace (3 is enough)";
    let money = "limit usdPerHour = 2.50 of namespace `default` has too little for its gang, which would take at least $3.02/h; raise \
                 poolwright.dev/limit-usd-per-hour of the Namespace (3.018 is enough)";
    let gpus = "limit gpus = 2 of namespace `default` is below the 3 that its gang needs; raise poolwright.dev/limit-gpus of the \
                Namespace";
    let cases = [
        (NamespaceLimit::Nodes, 2, 3, format!("{TAINT}; besides, {nodes}")),
        (NamespaceLimit::UsdPerHour, 2_500_000, 3_018_000, format!("{TAINT}; besides, {money}")),
        (NamespaceLimit::Gpus, 2_000, 3_000, format!("{gpus}; besides, {TAINT}")),
    ];
    for (limit, short, enough, words) in cases {
        let of = |most: u64, change: Change<'_>| {
            let mut snapshot = tainted(PoolLimits::default());
            let limits = [(limit, Some(most))].into();
            snapshot.put_namespace(Namespace { name: "default".into(), labels: BTreeMap::new(), limits });
            plan_of(snapshot, change)
        };
        assert_eq!(why(&of(short, &unchanged), "q").1, words);
        assert_eq!(why(&of(enough, &unchanged), "q").1, TAINT);
        assert!(!is_planned(&of(short, &tolerating)), "both are needed");
        assert!(is_planned(&of(enough, &tolerating)), "both together help");
    }
}

#[test]
fn a_gang_without_a_node_within_the_limits_is_told_what_all_of_it_takes_of_each() {
    let money = |most: &str| PoolLimits { usd_per_hour: Some(usd(most)), ..PoolLimits::default() };
    let nodes = "limit nodes = 0 of pool `gpu` is too low for its gang (it would take up to 3 at once); raise spec.limits (3 is enough)";
    let dollars = "limit usdPerHour = 0.50 of pool `gpu` is too low for its gang (it would take up to $3.02/h at once); raise spec.limits \
                   (3.018 is enough)";
    let of = |limits: PoolLimits| plan_of(cluster(sold(), [gpu_pool(limits)]), &unchanged);
    for (short, enough, words) in [(of_nodes(0), of_nodes(3), nodes), (money("0.5"), money("3.018"), dollars)]
    {
        let plan = of(short);
        for name in ["p", "q", "r"] {
            assert_eq!(why(&plan, name), (UnplacedReason::LimitReached, words.to_owned()));
        }
        assert!(is_planned(&of(enough)), "the advice helps");
    }
    let both = |nodes: u64, most: &str| of(PoolLimits { nodes: Some(nodes), ..money(most) });
    let (_, said) = why(&both(0, "0.5"), "q");
    assert_eq!(said, format!("{nodes}; and {dollars}"));
    assert!(!is_planned(&both(3, "0.5")) && !is_planned(&both(0, "3.018")), "both are needed");
    assert!(is_planned(&both(3, "3.018")), "both together help");
}

#[test]
fn what_is_enough_for_a_gang_counts_all_that_is_used_of_a_limit_that_is_exceeded_already() {
    let of = |most: u64| {
        let there = [labelled("n1"), labelled("n2")];
        plan_of(with(cluster(sold(), [gpu_pool(of_nodes(most))]), there), &unchanged)
    };
    let (reason, said) = why(&of(1), "p");
    assert_eq!(reason, UnplacedReason::LimitReached);
    let words = "limit nodes = 1 of pool `gpu` leaves too little for its gang (in use or on order if nothing is bought for it: 2; left: 0; it \
                 would take up to 3 at once); raise spec.limits (5 is enough) or free nodes";
    assert_eq!(said, words);
    assert!(!is_planned(&of(4)) && is_planned(&of(5)), "the advice helps, and less does not");
}

/// Returns a plan for the gang in a namespace with a limit, and with a pool of g5.xlarge nodes.
fn plan_within(limits: PoolLimits, there: Option<Node>, (limit, most): (NamespaceLimit, u64)) -> Plan {
    let mut snapshot = with(cluster(sold(), [gpu_pool(limits)]), there);
    let limits = [(limit, Some(most))].into();
    snapshot.put_namespace(Namespace { name: "default".into(), labels: BTreeMap::new(), limits });
    plan_of(snapshot, &unchanged)
}

#[test]
fn a_gang_that_a_limit_of_a_pool_leaves_out_is_told_of_the_limits_of_its_namespace_too() {
    let of =
        |pool: u64, namespace: u64| plan_within(of_nodes(pool), None, (NamespaceLimit::Nodes, namespace));
    let of_namespace = "limit nodes = 2 of namespace `default` has too little for its gang, which would take at least 3; raise \
                        poolwright.dev/limit-nodes of the Namespace (3 is enough)";
    for (most, reason) in [(2, UnplacedReason::GangIncomplete), (0, UnplacedReason::LimitReached)] {
        let short = of(most, 2);
        let of_pool = format!(
            "limit nodes = {most} of pool `gpu` is too low for its gang (it would take up to 3 at once); raise spec.limits (3 is enough)"
        );
        let (is, said) = why(&short, "p");
        assert!(said.ends_with(&format!("{of_pool}; besides, {of_namespace}")), "{said}");
        assert_eq!(is, reason);
        assert!(!is_planned(&of(3, 2)) && !is_planned(&of(most, 3)), "both are needed");
    }
    assert!(is_planned(&of(3, 3)), "both together help");
}

#[test]
fn a_gang_that_a_limit_of_its_namespace_leaves_out_is_told_of_the_limits_of_pools_too() {
    let of = |pool: u64, gpus: u64| plan_within(of_nodes(pool), None, (NamespaceLimit::Gpus, gpus * 1000));
    let words = "limit gpus = 2 of namespace `default` is below the 3 that its gang needs; raise poolwright.dev/limit-gpus of the \
                 Namespace; besides, limit nodes = 2 of pool `gpu` is too low for its gang (it would take up to 3 at once); raise \
                 spec.limits (3 is enough)";
    assert_eq!(why(&of(2, 2), "q"), (UnplacedReason::NamespaceLimitReached, words.to_owned()));
    assert!(!is_planned(&of(3, 2)) && !is_planned(&of(2, 3)), "both are needed");
    assert!(is_planned(&of(3, 3)), "both together help");
}

#[test]
fn a_gang_whose_namespace_may_have_no_node_or_no_money_is_told_what_all_of_it_takes() {
    let nodes = "limit nodes = 0 of namespace `default` has too little for its gang, which would take at least 3; raise \
                 poolwright.dev/limit-nodes of the Namespace (3 is enough)";
    let money = "limit usdPerHour = 0.00 of namespace `default` has too little for its gang, which would take at least $3.02/h; raise \
                 poolwright.dev/limit-usd-per-hour of the Namespace (3.018 is enough)";
    for (limit, enough, words) in
        [(NamespaceLimit::Nodes, 3, nodes), (NamespaceLimit::UsdPerHour, 3_018_000, money)]
    {
        let of = |most: u64| plan_within(PoolLimits::default(), None, (limit, most));
        assert_eq!(why(&of(0), "q"), (UnplacedReason::NamespaceLimitReached, words.to_owned()));
        assert!(is_planned(&of(enough)), "the advice helps");
    }
}

#[test]
fn what_is_enough_for_a_namespace_is_enough_beside_a_node_of_another_claim() {
    let of = |most: u64| {
        let there = Node { allocatable: capacity(4, 16, 1), ..labelled("n") };
        plan_within(PoolLimits::default(), Some(there), (NamespaceLimit::Nodes, most))
    };
    let words = "limit nodes = 2 of namespace `default` is below the 3 that its gang would take in the best plan found; raise \
                 poolwright.dev/limit-nodes of the Namespace";
    assert_eq!(why(&of(2), "q"), (UnplacedReason::NamespaceLimitReached, words.to_owned()));
    let enough = of(3);
    assert!(is_planned(&enough), "the advice helps: {:?}", enough.unplaced);
}

#[test]
fn a_gang_whose_pods_must_be_on_different_nodes_is_told_of_as_many_nodes_as_it_has_pods() {
    let of = |most: u64| {
        let large = Kind("g5.12xlarge", capacity(48, 192, 4), Some("a10g"), &[("a", "5.672")]);
        let pool = Pool { limits: of_nodes(most), ..pool("gpu") };
        plan_of(cluster(catalogue(vec![large]), [pool]), &|_, spec| {
            spec.anti_affinity.push(PodAffinityTerm {
                topology_key: "kubernetes.io/hostname".into(),
                namespaces: Namespaces::Named(["default".to_owned()].into()),
                selector: Some(vec![]),
            });
        })
    };
    let words = "limit nodes = 0 of pool `gpu` is too low for its gang (it would take up to 3 at once); raise spec.limits (3 is enough)";
    assert_eq!(why(&of(0), "p"), (UnplacedReason::LimitReached, words.to_owned()));
    assert!(!is_planned(&of(2)) && is_planned(&of(3)), "the advice helps, and less does not");
}
