//! Replays of clusters with DaemonSets: each new node has their pods before it has others.

use std::time::Duration;

use poolwright_report::replay::{End, History};
use poolwright_sim::cluster::JobPlan;
use poolwright_terms::labels::INSTANCE_TYPE;
use serde_json::{Value, json};

use crate::kit;

const MINUTE: Duration = Duration::from_mins(1);

/// The spec of a pod that requests this much CPU, and no GPU.
fn pod(cpu: &str) -> Value {
    let mut spec = kit::gpu_pod(1);
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": cpu, "memory": "1Gi"}});
    spec
}

/// A DaemonSet of these pods, in a namespace of its own.
fn daemon_set(mut spec: Value) -> Value {
    spec["restartPolicy"] = json!("Always");
    let labels = json!({"app": "agent"});
    json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}}})
}

/// Plays a pod that needs two cores, and three minutes later one with this much CPU. A node has 3.92 cores for pods.
fn played(daemon_sets: Vec<Value>, later: &str) -> History {
    let first = JobPlan::new("first", Duration::ZERO, 1, pod("2"));
    let later = JobPlan::new("later", MINUTE * 3, 1, pod(later));
    let replay = kit::replay(&["m6i.xlarge"], None, daemon_sets, vec![first, later]);
    replay.run(&mut |_| true).expect("it is played")
}

/// Returns the machine of each pod.
fn machines(history: &History) -> Vec<usize> {
    history.pods.iter().map(|pod| pod.bound.expect("it has a node").1).collect()
}

#[test]
fn a_pod_that_fits_only_without_the_pod_of_a_daemon_set_never_gets_its_room() {
    assert_eq!(machines(&played(Vec::new(), "1500m")), [0, 0], "without a DaemonSet, both share a node");
    let history = played(vec![daemon_set(pod("1"))], "1500m");
    assert_eq!(machines(&history), [0, 1]);
    assert_eq!(history.pods.len(), 2, "pods of DaemonSets are not work of the replay");
}

#[test]
fn a_node_has_one_pod_of_a_daemon_set() {
    // Two of them would leave 1.12 cores.
    assert_eq!(machines(&played(vec![daemon_set(pod("400m"))], "1500m")), [0, 0]);
}

#[test]
fn a_node_that_a_daemon_set_excludes_has_none_of_its_pods() {
    let excluded = json!({"key": INSTANCE_TYPE, "operator": "NotIn", "values": ["m6i.xlarge"]});
    let required = json!({"nodeSelectorTerms": [{"matchExpressions": [excluded]}]});
    let mut spec = pod("1");
    spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    assert_eq!(machines(&played(vec![daemon_set(spec)], "1500m")), [0, 0]);
}

#[test]
fn a_node_with_only_pods_of_daemon_sets_is_terminated() {
    let job = JobPlan {
        length: Some(MINUTE * 5),
        kept: Some(Duration::ZERO),
        ..JobPlan::new("work", Duration::ZERO, 1, pod("2"))
    };
    let sets = vec![daemon_set(pod("1"))];
    let history = kit::replay(&["m6i.xlarge"], Some("1m"), sets, vec![job]).run(&mut |_| true);
    let history = history.expect("it is played");
    assert!(matches!(history.pods[0].ended, Some((_, End::Finished))), "{:?}", history.pods);
    assert!(history.machines[0].gone.is_some(), "{:?}", history.machines);
}
