//! Tests that gangs are told everything that must change for them, with amounts of limits that are enough for all of their pods.

use std::collections::BTreeMap;

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_core::plan::{Plan, UnplacedReason};
use poolwright_core::*;

use crate::kit::*;
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
                 poolwright.dev/limit-nodes of the Namespace";
    let money = "limit usdPerHour = 2.50 of namespace `default` has too little for its gang, which would take at least $3.02/h; raise \
                 poolwright.dev/limit-usd-per-hour of the Namespace";
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
