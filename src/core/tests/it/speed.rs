//! Tests of planning speed in large clusters, without the solver's own time.

use std::sync::Arc;

use poolwright_catalog::Catalogue;
use poolwright_core::plan::{PlanOptions, plan};
use poolwright_core::{Requirement, Snapshot};
use poolwright_solver::{Options, StopSignal};

use crate::kit::*;

/// Stops the solver as soon as it has a plan.
struct Stop;

impl StopSignal for Stop {
    fn should_stop(&mut self) -> bool {
        true
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
