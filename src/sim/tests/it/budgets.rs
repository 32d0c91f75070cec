//! Replays of pods with PodDisruptionBudgets: the simulated disruption controller counts healthy pods.

use std::time::Duration;

use poolwright_sim::cluster::JobPlan;
use serde_json::{Value, json};

use crate::kit;

/// Plays one pod whose node expires after 15 minutes, with this budget. Returns the number of machines.
fn machines(is_service: bool, budget: Value) -> usize {
    machines_with(is_service, vec![budget])
}

/// Plays the same with several budgets that select the pod.
fn machines_with(is_service: bool, budgets: Vec<Value>) -> usize {
    let with_name = |(at, mut spec): (usize, Value)| {
        spec["selector"] = json!({"matchLabels": {"app": "web"}});
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": format!("web-{at}"), "namespace": "default"}, "spec": spec})
    };
    let budgets: Vec<Value> = budgets.into_iter().enumerate().map(with_name).collect();
    let mut spec = kit::gpu_pod(1);
    spec["restartPolicy"] = json!(if is_service { "Always" } else { "Never" });
    let job = JobPlan {
        labels: [("app".to_owned(), "web".to_owned())].into(),
        is_set: is_service,
        ..JobPlan::new("web", Duration::ZERO, 1, spec)
    };
    let mut replay = kit::replay(&["g4dn.xlarge"], None, budgets, vec![job]);
    replay.objects[1]["spec"]["template"]["spec"]["expireAfter"] = json!("15m");
    replay.run(&mut |_| true).expect("it is played").machines.len()
}

#[test]
fn an_expired_node_is_replaced_if_the_budget_of_its_pod_allows_an_eviction() {
    for budget in [json!({"maxUnavailable": 1}), json!({"maxUnavailable": "1%"}), json!({"minAvailable": 0})]
    {
        assert_eq!(machines(true, budget.clone()), 2, "{budget}");
    }
    for budget in [json!({"maxUnavailable": 0}), json!({"minAvailable": 1}), json!({"minAvailable": "50%"})] {
        assert_eq!(machines(true, budget.clone()), 1, "{budget}");
    }
}

#[test]
fn a_budget_of_pods_of_a_job_counts_only_with_a_number_of_available_pods() {
    assert_eq!(machines(false, json!({"minAvailable": 0})), 2);
    assert_eq!(machines(false, json!({"maxUnavailable": 1})), 1);
}

#[test]
fn nothing_is_bought_for_an_expired_node_whose_pod_two_budgets_select() {
    let budget = || json!({"maxUnavailable": 1});
    assert_eq!(machines_with(true, vec![budget()]), 2);
    assert_eq!(machines_with(true, vec![budget(), budget()]), 1);
}
