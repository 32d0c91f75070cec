//! Tests of planning speed in large clusters, without the solver's own time.

use std::collections::BTreeSet;
use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{PlanOptions, plan};
use poolwright_core::rules::budgets::never_met;
use poolwright_core::{
    BudgetLimit, BudgetSelector, CountOrPercent, HostPort, Namespaces, NodeSelectorTerm, Pod,
    PodAffinityTerm, PodDisruptionBudget, Requirement, Snapshot, Uid, UnhealthyPods, Weighted,
};
use poolwright_solver::{Options, Solution, StopSignal};

use crate::kit::*;

/// Stops the solver as soon as it has a plan.
struct Stop;

impl StopSignal for Stop {
    fn should_stop(&mut self) -> bool {
        true
    }
}

/// A signal whose time is over at once. It counts the plans that it is told of: one for each solve.
struct Over {
    is_abandoned: bool,
    solves: u32,
}

impl StopSignal for Over {
    fn should_stop(&mut self) -> bool {
        true
    }

    fn is_abandoned(&mut self) -> bool {
        self.is_abandoned
    }

    fn improved(&mut self, _: &Solution) {
        self.solves += 1;
    }
}

fn wide_catalogue() -> Catalogue {
    let names: Vec<&'static str> =
        (0..250).map(|n| &*Box::leak(format!("k{n}.x").into_boxed_str())).collect();
    let zones: &'static [(&'static str, &'static str)] =
        &[("a", "1.00"), ("b", "1.01"), ("c", "1.02"), ("d", "1.03")];
    let kinds = names.into_iter().enumerate();
    catalogue(
        kinds
            .map(|(n, name)| {
                Kind(name, capacity(2 + n as u64 % 64, 8 + n as u64, n as u64 % 9), Some("g"), zones)
            })
            .collect(),
    )
}

/// Returns a cluster with 10,000 pods of 300 classes, 100 pools of 1000 offerings, and 1000 nodes.
fn large() -> Snapshot {
    let pools = (0..100).map(|n| {
        let team = Requirement {
            key: "poolwright.dev/instance-cpu".into(),
            operator: poolwright_core::Operator::Gte(n % 20),
        };
        let mut pool = pool(&format!("pool-{n}"));
        pool.labels.insert("team".into(), format!("t{n}"));
        pool.requirements.push(team);
        pool
    });
    let mut snapshot = cluster(wide_catalogue(), pools);
    for n in 0..10_000u64 {
        let mut pod = pod(&format!("p{n}"), requests(1 + n % 10, 1 + n % 30, n % 3));
        if n % 7 == 0 {
            pod.spec.node_selector.insert("team".into(), format!("t{}", n % 10));
        }
        snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
    }
    with(snapshot, (0..1000).map(|n| node(&format!("n{n}"), capacity(1, 1, 0))))
}

#[test]
fn ten_thousand_pods_over_a_hundred_thousand_offers_are_all_accounted_for() {
    let snapshot = large();
    let options = PlanOptions {
        baselines: false,
        solver: Options { work: 1, ..Options::default() },
        ..PlanOptions::default()
    };
    let plan = plan(&snapshot, at(10), &options, &mut Stop);
    assert_eq!(plan.refused, Vec::<String>::new());
    assert_eq!(plan.counts.total, 10_000);
    assert_eq!(plan.counts.on_new + plan.counts.on_existing, 10_000);
}

/// Returns 10,000 waiting pods. Of every 20, five have a host port of their own, five have one host port in common, five have
/// anti-affinity to each other, and five have anti-affinity to those.
fn conflicting() -> impl Iterator<Item = Pod> {
    (0..10_000_u16).map(|n| {
        let (kind, group) = (n % 4, n / 20);
        let mut pod = pod(&format!("p{n}"), requests(1, 2, 0));
        let app = ["own", "port", "first", "second"][usize::from(kind)];
        pod.labels.insert("app".into(), format!("{app}-{group}"));
        match kind {
            0 | 1 => {
                let port = if kind == 0 { 10_000 + n } else { 2_000 + group };
                pod.spec.host_ports = [HostPort { port, protocol: "TCP".into(), ip: None }].into();
            }
            _ => pod.spec.anti_affinity.push(PodAffinityTerm {
                topology_key: "kubernetes.io/hostname".into(),
                namespaces: Namespaces::All,
                selector: Some(vec![is_in("app", &[&format!("first-{group}")])]),
            }),
        }
        pod
    })
}

#[test]
fn ten_thousand_pods_with_host_ports_and_anti_affinity_are_kept_apart() {
    let kinds = vec![Kind("large", capacity(64, 256, 0), None, &[("a", "2.72"), ("b", "2.73")])];
    let snapshot = with(cluster(catalogue(kinds), [pool("cpu")]), conflicting());
    let options = PlanOptions {
        baselines: false,
        solver: Options { work: 1, ..Options::default() },
        ..PlanOptions::default()
    };
    let plan = plan(&snapshot, at(10), &options, &mut Stop);
    assert_eq!(plan.refused, Vec::<String>::new());
    assert_eq!((plan.counts.total, plan.counts.on_new), (10_000, 10_000));
    for claim in &plan.claims {
        let mut taken: BTreeSet<String> = BTreeSet::new();
        let pods: Vec<&Pod> = claim.planned_pods.iter().map(|key| &*snapshot.pods[key]).collect();
        for pod in &pods {
            let ports = pod.spec.host_ports.iter().map(ToString::to_string);
            let first = pod.labels["app"].strip_prefix("first-").map(str::to_owned);
            for one in ports.chain(first) {
                assert!(taken.insert(one.clone()), "two pods of claim {} have {one}", claim.name);
            }
        }
        for pod in &pods {
            if let Some(group) = pod.labels["app"].strip_prefix("second-") {
                assert!(!taken.contains(group), "group {group} meets in claim {}", claim.name);
            }
        }
    }
}

#[test]
fn budgets_that_never_allow_an_eviction_are_found_among_those_of_ten_thousand_pods() {
    let budget = |n: u64| PodDisruptionBudget {
        key: object_key(&format!("first-{n}")),
        uid: Uid(format!("budget-{n}")),
        selector: BudgetSelector::Pods(vec![is_in("app", &[&format!("first-{n}")])]),
        limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(u64::from(!n.is_multiple_of(100))))),
        expected: 0,
        allowed: None,
        failure: None,
        unhealthy: UnhealthyPods::default(),
    };
    let snapshot = with(with(Snapshot::default(), conflicting()), (0..500).map(budget));
    let found = never_met(&snapshot);
    let named: Vec<&str> = found.iter().map(|one| one.budget.name.as_str()).collect();
    assert_eq!(named, ["first-0", "first-100", "first-200", "first-300", "first-400"]);
    assert!(found.iter().all(|one| one.pods.len() == 5));
}

#[test]
fn a_plan_that_nobody_waits_for_is_given_up() {
    // One pod goes to a node that is there, so the plan is compared with one without the preference of the other.
    let term = NodeSelectorTerm { requirements: vec![is_in("poolwright.dev/gpu-model", &["l4"])] };
    let mut picky = pod("picky", requests(1, 4, 1));
    picky.spec.preferences.get_or_insert_default().nodes.push(Weighted { weight: 90, term });
    let pods = [picky, pod("small", requests(1, 1, 0))];
    let snapshot = with(with(cluster(aws(), [pool("gpu")]), pods), [node("there", capacity(2, 4, 0))]);
    let solves = |is_abandoned| {
        let mut signal = Over { is_abandoned, solves: 0 };
        let plan = plan(&snapshot, at(10), &PlanOptions::default(), &mut signal);
        assert_eq!(plan.refused, Vec::<String>::new());
        (signal.solves, plan.counts.on_existing, plan.counts.on_new)
    };
    let (awaited, on_existing, on_new) = solves(false);
    assert!(awaited > 0 && (on_existing, on_new) == (1, 1), "somebody waits for {on_existing} and {on_new}");
    assert_eq!(solves(true).0, 0, "no solve looks for a plan that nobody reads");
}
