//! Tests of what a replay says of pods that wait at its end.

use std::time::Duration;

use poolwright_sim::cluster::JobPlan;
use poolwright_sim::replay::Replay;
use serde_json::{Value, json};

use crate::kit;

/// Plays two pods, and returns the reason, the count and the words of those that wait at the end.
fn waiting(spec: Value, more: Vec<Value>) -> Vec<(Option<String>, u64, String)> {
    let job = JobPlan::new("train", Duration::ZERO, 2, spec);
    let replay =
        Replay { length: Duration::from_mins(10), ..kit::replay(&["g4dn.xlarge"], None, more, vec![job]) };
    let history = replay.run(&mut |_| true).expect("it is played");
    history.waiting.into_iter().map(|told| (told.reason, told.count, told.example)).collect()
}

#[test]
fn pods_of_a_gang_that_lacks_pods_say_how_many_it_lacks() {
    let group = json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}});
    let mut spec = kit::gpu_pod(1);
    spec["schedulingGroup"] = json!({"podGroupName": "gang"});
    let words = "waits for 1 of 3 pods of its PodGroup default/gang: 2 are there, and the scheduler tries none before all 3 are";
    let expected = (Some("PodGroupPending".to_owned()), 2, words.to_owned());
    assert_eq!(waiting(spec, vec![group]), [expected]);
}

#[test]
fn pods_with_scheduling_gates_say_so() {
    let mut spec = kit::gpu_pod(1);
    spec["schedulingGates"] = json!([{"name": "example.com/quota"}]);
    let found = waiting(spec, Vec::new());
    let [(reason, count, words)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((reason.as_deref(), *count), (Some("SchedulingGated"), 2), "{words}");
}
