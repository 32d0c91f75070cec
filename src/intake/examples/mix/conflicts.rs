//! Pods that must not share nodes: of every 20, five have a host port of their own, five have one host port in common, five have
//! anti-affinity to each other, and five have anti-affinity to those. Each group of pods with equal labels has a
//! PodDisruptionBudget, and one in a hundred of these never allows an eviction.

use std::sync::Arc;

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::{
    BudgetLimit, BudgetSelector, CountOrPercent, ObjectKey, Operator, PodDisruptionBudget, Requirement,
    Snapshot, Uid, UnhealthyPods,
};
use serde_json::json;

use super::{Numbers, term, waiting};

/// The pods of one group, over all four kinds.
const GROUP: usize = 20;

fn app(at: usize) -> String {
    format!("{}-{}", ["own", "port", "first", "second"][at % 4], at / GROUP)
}

/// Returns the pod with this number.
pub(super) fn object(numbers: &mut Numbers, at: usize) -> k8s::Pod {
    let group = at / GROUP;
    let port = |port: usize| json!([{"containerPort": 80, "hostPort": port}]);
    let (mut spec, mut ports) = (json!({}), json!([]));
    match at % 4 {
        0 => ports = port(10_000 + at % 50_000),
        1 => ports = port(1_024 + group % 8_000),
        _ => {
            let others = json!({"app": format!("first-{group}")});
            spec["affinity"] = json!({"podAntiAffinity": term("kubernetes.io/hostname", &others)});
        }
    }
    waiting(numbers, at, &json!({"app": app(at)}), spec, &ports)
}

/// Adds the budgets of this number of pods.
pub(super) fn add_budgets(snapshot: &mut Snapshot, pods: usize) {
    for at in (0..pods).filter(|at| at % GROUP < 4) {
        let name = app(at);
        let key = ObjectKey::new("default", name.as_str());
        let operator = Operator::In([name.clone()].into());
        let most = u64::from(!(at / GROUP).is_multiple_of(100));
        let budget = PodDisruptionBudget {
            key: key.clone(),
            uid: Uid(name),
            selector: BudgetSelector::Pods(vec![Requirement { key: "app".into(), operator }]),
            limit: Some(BudgetLimit::MaxUnavailable(CountOrPercent::Count(most))),
            expected: 0,
            allowed: None,
            failure: None,
            unhealthy: UnhealthyPods::default(),
        };
        snapshot.budgets.insert(key, Arc::new(budget));
    }
}
