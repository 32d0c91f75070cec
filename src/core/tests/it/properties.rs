//! Property tests of rules that hold for every cluster.

use poolwright_catalog::RankedOffering;
use poolwright_terms::{Taint, TaintEffect};
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Catalogue, ResourceName, UsdPerHour};
use poolwright_core::plan::{Plan, PlanOptions, PreferencePolicy, plan};
use poolwright_core::*;
use poolwright_solver::{NeverStop, Options};
use proptest::prelude::*;

use crate::kit::*;

fn shop() -> Catalogue {
    catalogue(vec![
        Kind("one", capacity(4, 16, 1), Some("a10g"), &[("a", "1.00"), ("b", "1.05")]),
        Kind("four", capacity(16, 64, 4), Some("a10g"), &[("a", "4.50")]),
        Kind("eight", capacity(96, 512, 8), Some("h100"), &[("b", "30.00")]),
        Kind("cpu", capacity(8, 32, 0), None, &[("a", "0.40"), ("b", "0.40")]),
        Kind("mystery", capacity(200, 900, 16), Some("b200"), &[("a", "unknown")]),
    ])
}

/// Returns a pod with one of a few rules about other pods, or with none.
fn about_others(mut pod: Pod, others: u8) -> Pod {
    let app = |app: &str| is_in("app", &[app]);
    let host = || "kubernetes.io/hostname".to_owned();
    pod.labels.insert("app".into(), if others & 1 == 0 { "web" } else { "batch" }.into());
    match others / 2 {
        1 | 2 => {
            let ip = (others / 2 == 2).then(|| "10.0.0.1".to_owned());
            pod.spec.host_ports = [HostPort { port: 80, protocol: "TCP".into(), ip }].into();
        }
        3 => {
            let namespaces = Namespaces::All;
            let selector = Some(vec![app("web")]);
            pod.spec.anti_affinity = vec![PodAffinityTerm { topology_key: host(), namespaces, selector }];
        }
        4 | 5 => {
            let max_skew = u32::from(others / 2) - 3;
            pod.spec.spreads = vec![TopologySpreadConstraint {
                topology_key: host(),
                max_skew,
                selector: Some(vec![app("batch")]),
                ..TopologySpreadConstraint::default()
            }];
        }
        _ => {}
    }
    pod
}

fn any_pod() -> impl Strategy<Value = Pod> {
    (1u64..10, 1u64..40, 0u64..5, 0u8..16, -1i32..2, 0u8..16, 0u8..64).prop_map(
        |(cpu, memory, gpus, traits, priority, others, preferences)| {
            let mut pod = preferring(about_others(pod("", requests(cpu, memory, gpus)), others), preferences);
            pod.priority = priority;
            if traits & 1 != 0 {
                pod.spec.tolerations.push(tolerate("gpu"));
            }
            if traits & 6 == 6 {
                pod.spec.node_selector.insert("topology.kubernetes.io/zone".into(), "b".into());
            }
            if traits == 15 {
                pod.spec.unmodelled.push(UnmodelledRule { field: "spec.x".into(), rule: "x".into() });
            }
            if traits == 8 {
                let gpu = is_in("poolwright.dev/gpu-model", &["h100", "b200"]);
                pod.spec.node_affinity = Some(vec![NodeSelectorTerm { requirements: vec![gpu] }]);
            }
            pod
        },
    )
}

/// Returns a pod with some preferences, or with none.
fn preferring(mut pod: Pod, preferences: u8) -> Pod {
    let preference = pod.spec.preferences.get_or_insert_default();
    let wanted = [
        is_in("topology.kubernetes.io/zone", &["b"]),
        is_in("poolwright.dev/gpu-model", &["h100"]),
        is_in("node.kubernetes.io/instance-type", &["four", "cpu"]),
    ];
    for (at, requirement) in wanted.into_iter().enumerate().filter(|(at, _)| preferences >> at & 1 == 1) {
        let term = NodeSelectorTerm { requirements: vec![requirement] };
        preference.nodes.push(Weighted { weight: 30 * at as u32 + u32::from(preferences), term });
    }
    let selector = || Some(vec![is_in("app", &["web"])]);
    let zone = "topology.kubernetes.io/zone";
    if preferences & 8 != 0 {
        let selector = selector();
        preference.spreads.push(TopologySpreadConstraint {
            topology_key: zone.into(),
            max_skew: 1,
            selector,
            ..TopologySpreadConstraint::default()
        });
    }
    let term =
        PodAffinityTerm { topology_key: zone.into(), namespaces: Namespaces::All, selector: selector() };
    match preferences / 16 {
        1 => preference.affinity.push(Weighted { weight: 50, term }),
        2 => preference.anti_affinity.push(Weighted { weight: 50, term }),
        _ => {}
    }
    pod.spec.preferences =
        pod.spec.preferences.take().filter(|preferences| **preferences != Preferences::default());
    pod
}

fn any_pool() -> impl Strategy<Value = Pool> {
    (0u8..32, 0u32..3, 0u64..12, 0u64..5, 1u64..60).prop_map(|(traits, weight, gpus, nodes, money)| {
        let mut pool = pool("");
        pool.weight = weight;
        if traits & 1 != 0 {
            pool.taints.push(taint("gpu", ""));
        }
        if traits & 0b1100 == 0b1100 {
            pool.taints.push(Taint { effect: TaintEffect::PreferNoSchedule, ..taint("spare", "") });
        }
        if traits & 2 != 0 {
            pool.limits.resources.insert(ResourceName::new(ResourceName::NVIDIA_GPU), gpus);
        }
        if traits & 4 != 0 {
            pool.limits.nodes = Some(nodes);
        }
        if traits & 8 != 0 {
            pool.limits.usd_per_hour = Some(UsdPerHour::from_micros(money * 1_000_000));
        }
        if traits & 16 != 0 {
            pool.allow_unknown_price.insert("mystery".into());
        }
        pool
    })
}

fn any_cluster() -> impl Strategy<Value = Snapshot> {
    let pods = proptest::collection::vec(any_pod(), 0..25);
    let pools = proptest::collection::vec(any_pool(), 0..4);
    let nodes = proptest::collection::vec((1u64..20, 1u64..60, 0u64..3), 0..3);
    let daemon = proptest::option::of(1u64..3);
    (pods, pools, nodes, daemon).prop_map(|(pods, pools, nodes, daemon)| {
        let name = |mut pool: Pool, index| {
            pool.name = PoolName(format!("pool-{index}"));
            pool
        };
        let pools = pools.into_iter().enumerate().map(|(index, pool)| name(pool, index));
        let snapshot = cluster(shop(), pools);
        let snapshot = with(
            snapshot,
            pods.into_iter().enumerate().map(|(index, pod)| Pod {
                key: key(&format!("p{index}")),
                uid: Uid(format!("uid-{index}")),
                ..pod
            }),
        );
        let nodes = nodes.into_iter().enumerate();
        let snapshot = with(
            snapshot,
            nodes.map(|(index, (cpu, memory, gpus))| node(&format!("n{index}"), capacity(cpu, memory, gpus))),
        );
        let spec = |cpu| PodSpec { requests: requests(cpu, 1, 0), ..PodSpec::default() };
        with(
            snapshot,
            daemon.map(|cpu| DaemonSet {
                key: object_key("agent"),
                labels: BTreeMap::new(),
                spec: spec(cpu),
            }),
        )
    })
}

fn planned(snapshot: &Snapshot, seconds: i64) -> Plan {
    let solver = Options { work: 50_000, ..Options::default() };
    let options = PlanOptions { solver, ..PlanOptions::default() };
    plan(snapshot, at(seconds), &options, &mut NeverStop)
}

/// Returns the most that all claims of a pool may use.
fn most<'a>(
    offerings: impl Iterator<Item = &'a Vec<RankedOffering>>,
    of: impl Fn(&RankedOffering) -> u64,
) -> u64 {
    offerings.map(|ranked| ranked.iter().map(&of).max().unwrap_or(0)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_passes_its_own_check_and_accounts_for_every_pod(snapshot in any_cluster()) {
        let plan = planned(&snapshot, 10);
        prop_assert_eq!(&plan.refused, &Vec::<String>::new());
        let bought: Vec<&PodKey> = plan.claims.iter().flat_map(|claim| &claim.planned_pods).collect();
        let all: Vec<&PodKey> = bought
            .iter()
            .copied()
            .chain(plan.placements.iter().map(|placement| &placement.pod))
            .chain(plan.unplaced.iter().map(|left| &left.pod))
            .collect();
        let distinct: BTreeSet<&PodKey> = all.iter().copied().collect();
        prop_assert_eq!(all.len(), distinct.len());
        prop_assert_eq!(distinct, snapshot.pods.keys().collect::<BTreeSet<_>>());
        prop_assert!(plan.bound <= plan.cost);
        let names: BTreeSet<&ClaimName> = plan.claims.iter().map(|claim| &claim.name).collect();
        prop_assert_eq!(names.len(), plan.claims.len());
    }

    #[test]
    fn preferences_leave_no_pod_unplaced_and_at_most_double_the_cost(snapshot in any_cluster()) {
        let solver = Options { work: 50_000, ..Options::default() };
        let ignored = PlanOptions { solver, preferences: PreferencePolicy::Ignore, ..PlanOptions::default() };
        let without = plan(&snapshot, at(10), &ignored, &mut NeverStop);
        let with = planned(&snapshot, 10);
        prop_assert_eq!(&with, &planned(&snapshot, 10), "the same plan each time");
        let left = |plan: &Plan, priority: i32| {
            plan.unplaced.iter().filter(|left| snapshot.pods[&left.pod].priority == priority).count()
        };
        let differ = [1, 0, -1].into_iter().find(|priority| left(&with, *priority) != left(&without, *priority));
        prop_assert!(differ.is_none_or(|priority| left(&with, priority) < left(&without, priority)));
        if differ.is_none() {
            prop_assert!(with.cost.micros() <= 2 * without.cost.micros(), "{} for {}", with.cost, without.cost);
        }
    }

    #[test]
    fn planning_again_after_a_plan_was_carried_out_buys_nothing(snapshot in any_cluster()) {
        let first = planned(&snapshot, 10);
        let after = carried_out(&snapshot, &first, 10);
        let second = planned(&after, 20);
        prop_assert_eq!(&second.refused, &Vec::<String>::new());
        for (pod, target) in &first.nominations {
            prop_assert_eq!(second.nominations.get(pod), Some(target));
        }
        let limited = snapshot.pools.values().any(|pool| pool.limits != PoolLimits::default());
        if !limited {
            prop_assert_eq!(bought(&second), Vec::<String>::new());
        }
        // After a restart, only the claims list the pods. A pod that has a claim gets no other node.
        let mut restarted = after;
        restarted.nominations = BTreeMap::new();
        let third = planned(&restarted, 30);
        let once: BTreeSet<&PodKey> = first.claims.iter().flat_map(|claim| &claim.planned_pods).collect();
        prop_assert!(third.claims.iter().flat_map(|claim| &claim.planned_pods).all(|pod| !once.contains(pod)));
    }

    #[test]
    fn limits_hold_whichever_alternatives_are_launched(snapshot in any_cluster()) {
        let plan = planned(&snapshot, 10);
        for (name, pool) in snapshot.pools.iter() {
            let theirs = || plan.claims.iter().filter(|claim| claim.pool == *name).map(|claim| &claim.offerings);
            for (resource, ceiling) in &pool.limits.resources {
                prop_assert!(most(theirs(), |ranked| ranked.allocatable.get(resource.as_str())) <= *ceiling);
            }
            if let Some(ceiling) = pool.limits.nodes {
                prop_assert!(theirs().count() as u64 <= ceiling);
            }
            if let Some(ceiling) = pool.limits.usd_per_hour {
                prop_assert!(theirs().flatten().all(|ranked| ranked.price.is_some()));
                prop_assert!(most(theirs(), |ranked| ranked.price.map_or(0, UsdPerHour::micros)) <= ceiling.micros());
            }
        }
    }

    #[test]
    fn no_pod_with_a_rule_that_is_not_modelled_is_ever_planned(snapshot in any_cluster()) {
        let plan = planned(&snapshot, 10);
        for key in plan.nominations.keys() {
            prop_assert!(snapshot.pods[key].spec.unmodelled.is_empty());
        }
    }

    #[test]
    fn a_lifecycle_decision_never_depends_on_when_it_was_made_last(snapshot in any_cluster(), seconds in 10i64..2000) {
        let after = carried_out(&snapshot, &planned(&snapshot, 10), 10);
        let decision = decide(&after, at(seconds));
        prop_assert_eq!(&decision, &decide(&after, at(seconds)));
        prop_assert!(decision.wake_at.is_none_or(|wake| wake > at(seconds)));
    }
}
