//! Tests that a user learns of all problems of his files at once, whatever they are.

use poolwright_intake::manifest::parse;
use poolwright_terms::{API_VERSION, keys};
use serde_json::{Value, json};

use crate::json_kit::{apps, object};

fn told(objects: &[Value]) -> Vec<String> {
    let text = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let errors = parse("all.json", &text).expect_err("they have problems");
    errors.iter().map(ToString::to_string).collect()
}

/// The paths of the problems of an object, sorted.
fn paths(object: &Value) -> Vec<String> {
    let mut paths: Vec<String> = parse("one.json", &object.to_string())
        .expect_err("it has problems")
        .into_iter()
        .map(|problem| problem.path)
        .collect();
    paths.sort();
    paths
}

fn class() -> Value {
    json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"})
}

#[test]
fn all_amounts_and_all_deadlines_of_a_claim_are_judged() {
    let offering = json!({"instanceType": "a", "zone": "b", "capacityType": "spot", "usdPerHour": "cheap",
        "allocatable": {"cpu": "many", "memory": "much"}});
    let deadlines = json!({"launch": "0s", "registration": "soon", "termination": "0s"});
    let claim = json!({"apiVersion": API_VERSION, "kind": "NodeClaim",
        "metadata": {"name": "gpu-1", "labels": {(keys::NODEPOOL_LABEL): "gpu"}},
        "spec": {"nodeClassRef": class(), "offerings": [offering], "deadlines": deadlines}});
    assert_eq!(
        paths(&claim),
        [
            "spec.deadlines.launch",
            "spec.deadlines.registration",
            "spec.deadlines.termination",
            "spec.offerings[0].allocatable.cpu",
            "spec.offerings[0].allocatable.memory",
            "spec.offerings[0].usdPerHour",
        ]
    );
}

#[test]
fn all_deadlines_of_a_pool_and_all_parts_of_a_unit_of_its_buffer_are_judged() {
    let unit = json!({"units": 1, "requests": {"cpu": "many", "memory": "much"}, "schedule": "often", "duration": "1h"});
    let deadlines = json!({"launch": "0s", "initialization": "soon"});
    let spec =
        json!({"buffer": [unit], "template": {"spec": {"nodeClassRef": class(), "deadlines": deadlines}}});
    assert_eq!(
        paths(&object(API_VERSION, "NodePool", "gpu", spec)),
        [
            "spec.buffer[0].requests.cpu",
            "spec.buffer[0].requests.memory",
            "spec.buffer[0].schedule",
            "spec.template.spec.deadlines.initialization",
            "spec.template.spec.deadlines.launch",
        ]
    );
}

#[test]
fn values_of_wrong_types_hide_neither_each_other_nor_bad_quantities() {
    let container = json!({"image": "x", "name": "a", "tty": "yes", "resources": {"requests": {"cpu": "many", "memory": "much"}}});
    let mut pod = object("v1", "Pod", "a", json!({"priority": "high", "containers": [container]}));
    let mut expected = vec![
        "spec.containers[0].resources.requests.cpu",
        "spec.containers[0].resources.requests.memory",
        "spec.containers[0].tty",
        "spec.priority",
    ];
    assert_eq!(paths(&pod), expected);
    pod["metadata"] = json!({});
    expected.insert(0, "metadata.name");
    assert_eq!(paths(&pod), expected, "nor does a missing name");
}

#[test]
fn a_bad_number_of_pods_does_not_hide_what_is_wrong_with_the_pods() {
    let cpu = "spec.template.spec.containers[0].resources.requests.cpu";
    let spoilt = |kind: &str| {
        let mut object = apps(kind, "web", 1);
        object["spec"]["replicas"] = json!(-1);
        object["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": "many"}});
        object
    };
    for kind in ["Deployment", "ReplicaSet", "StatefulSet"] {
        assert_eq!(paths(&spoilt(kind)), ["spec.replicas", cpu], "{kind}");
    }
    let template = spoilt("Deployment")["spec"]["template"].take();
    let mut job = object("batch/v1", "Job", "once", json!({"parallelism": -1, "template": template}));
    job["spec"]["template"]["spec"]["restartPolicy"] = json!("Never");
    assert_eq!(paths(&job), ["spec.parallelism", cpu]);
}

#[test]
fn a_limit_range_refuses_a_pod_in_the_same_round_as_other_amounts_are_found_bad() {
    let range = |max: Value| {
        object("v1", "LimitRange", "small", json!({"limits": [{"type": "Container", "max": max}]}))
    };
    let resources = json!({"requests": {"cpu": "many"}, "limits": {"memory": "4Gi"}});
    let pod = object(
        "v1",
        "Pod",
        "a",
        json!({"containers": [{"image": "x", "name": "a", "resources": resources}]}),
    );
    let refusal = "LimitRange `small` refuses a container with ";
    let of = |told: &[String], text: &str| told.iter().filter(|one| one.contains(text)).count();

    let all = told(&[range(json!({"memory": "1Gi"})), pod.clone()]);
    assert_eq!((all.len(), of(&all, "requests.cpu: "), of(&all, refusal)), (2, 1, 1), "{all:?}");
    // The amounts of the LimitRange that can be read count, too.
    let all = told(&[range(json!({"memory": "1Gi", "nvidia.com/gpu": "few", "hugepages-2Mi": "some"})), pod]);
    assert_eq!((all.len(), of(&all, "LimitRange default/small: spec.limits[0].max")), (4, 2), "{all:?}");
    assert_eq!((of(&all, "requests.cpu: "), of(&all, refusal)), (1, 1), "{all:?}");
}

#[test]
fn all_bad_amounts_of_a_quota_are_told() {
    let hard = json!({"cpu": "many", "memory": "much", "pods": "2"});
    let quota = object("v1", "ResourceQuota", "team", json!({"hard": hard}));
    assert_eq!(paths(&quota), ["spec.hard.cpu", "spec.hard.memory"]);
}

#[test]
fn a_name_that_is_no_text_is_not_missing_too() {
    let pod = |meta: Value| {
        let spec = json!({"containers": [{"name": "a", "image": "x"}]});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec})
    };
    let node_class = |meta: Value| {
        let spec = json!({"provider": "aws"});
        json!({"apiVersion": API_VERSION, "kind": "KwokNodeClass", "metadata": meta, "spec": spec})
    };
    for one in [pod(json!({"name": true})), node_class(json!({"name": true}))] {
        let found = told(&[one]);
        let [only] = found.as_slice() else { panic!("{found:?}") };
        let problem = "metadata.name: invalid type: boolean `true`, expected a string; write it in quotes";
        assert!(only.ends_with(problem), "{only}");
    }
    assert_eq!(paths(&pod(json!({"generateName": 5}))), ["metadata.generateName"]);
    assert_eq!(paths(&pod(json!(true))), ["metadata"]);
    for none in [json!({}), json!({"name": ""}), Value::Null] {
        let found = told(&[pod(none)]);
        assert!(found[0].ends_with("metadata.name: missing; give the object a name"), "{found:?}");
    }
}

#[test]
fn a_template_of_a_wrong_type_is_not_missing() {
    let only = |object: &Value| {
        let found = told(std::slice::from_ref(object));
        let [only] = found.as_slice() else { panic!("{found:?}") };
        only.clone()
    };
    let set = |workers: Value| {
        let template = json!({"size": 2, "workerTemplate": workers});
        object(
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            "a",
            json!({"leaderWorkerTemplate": template}),
        )
    };
    let path = "spec.leaderWorkerTemplate.workerTemplate";
    let wrong = only(&set(json!(true)));
    assert!(wrong.ends_with(&format!("{path}: invalid type: a boolean; correct the value")), "{wrong}");
    let none = only(&set(Value::Null));
    assert!(none.ends_with(&format!("{path}: missing; add it")), "{none}");
    let tasks = object("batch.volcano.sh/v1alpha1", "Job", "a", json!({"tasks": {"name": "a"}}));
    let wrong = only(&tasks);
    assert!(wrong.ends_with("spec.tasks: invalid type: a map; correct the value"), "{wrong}");
}
