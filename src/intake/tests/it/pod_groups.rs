//! Tests PodGroups, and pods that belong to one.

use poolwright_core::PodGroup;
use poolwright_intake::manifest::parse;
use poolwright_intake::{pod, pod_group, volcano_pod_group};
use serde_json::{Value, json};

use crate::json_kit::{gangs, object, read, refused};

fn group(spec: Value) -> Result<PodGroup, String> {
    let object = json!({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u"}, "spec": spec});
    pod_group(&serde_json::from_value(object).expect("a PodGroup")).map_err(|error| error.to_string())
}

fn gang(count: i32) -> Value {
    json!({"schedulingPolicy": {"gang": {"minCount": count}}})
}

#[test]
fn a_gang_says_with_how_many_pods_it_starts_and_a_basic_group_does_not() {
    let read = group(gang(8)).expect("it converts");
    assert_eq!(
        (read.key.to_string().as_str(), read.uid.0.as_str(), read.min_count),
        ("ml/train", "u", Some(8))
    );
    assert_eq!(read.unmodelled, []);
    let basic = group(json!({"schedulingPolicy": {"basic": {}}})).expect("it converts");
    assert_eq!((basic.min_count, basic.unmodelled), (None, vec![]));
}

#[test]
fn policies_that_make_no_sense_are_named_with_their_field() {
    let wrong = group(gang(0)).unwrap_err();
    assert_eq!(
        wrong,
        "PodGroup ml/train: spec.schedulingPolicy.gang.minCount: 0 is not a number of pods; write at least 1"
    );
    let both = group(json!({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}})).unwrap_err();
    assert!(both.contains("spec.schedulingPolicy: a PodGroup is a gang or basic, not both"), "{both}");
}

#[test]
fn constraints_and_policies_that_are_not_modelled_are_listed_and_preemption_alone_is_not() {
    let mut spec = gang(2);
    spec["schedulingConstraints"] = json!({"topology": [{"key": "topology.kubernetes.io/rack"}]});
    spec["disruptionMode"] = json!("PodGroup");
    spec["priority"] = json!(7);
    let fields = |group: PodGroup| group.unmodelled.into_iter().map(|rule| rule.field).collect::<Vec<_>>();
    assert_eq!(fields(group(spec).expect("it converts")), ["spec.schedulingConstraints.topology"]);
    let unknown = group(json!({"schedulingPolicy": {"elastic": {}}})).expect("it converts");
    assert_eq!(fields(unknown), ["spec.schedulingPolicy"]);
}

#[test]
fn a_pod_names_its_group_and_a_group_of_another_kind_is_not_modelled() {
    let of = |group: Value| {
        let object = json!({"metadata": {"name": "a", "namespace": "ml"},
            "spec": {"containers": [{"image": "x", "name": "main"}], "schedulingGroup": group}});
        pod(&serde_json::from_value(object).expect("a pod")).expect("it converts")
    };
    let member = of(json!({"podGroupName": "train"}));
    assert_eq!(member.group_key().expect("a group").to_string(), "ml/train");
    assert_eq!(member.spec.unmodelled, []);
    let other = of(json!({}));
    assert_eq!((other.group, other.spec.unmodelled[0].field.as_str()), (None, "spec.schedulingGroup"));
}

#[test]
fn manifests_have_podgroups_of_known_schedulers_and_name_those_of_others() {
    let text = "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: train, namespace: ml}, \
                spec: {schedulingPolicy: {gang: {minCount: 4}}}}\n---\n\
                {apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, metadata: {name: other, uid: u}, spec: {minMember: 3}}\n";
    let manifest = parse("f.yaml", text).expect("a manifest");
    assert_eq!(manifest.pod_groups.iter().map(|group| group.min_count).collect::<Vec<_>>(), [Some(4)]);
    assert_eq!(
        manifest.notes,
        [
            "PodGroup default/other: scheduling.run.ai/v2alpha2 PodGroup is not read; its pods are planned one by one, not as a gang"
        ]
    );
    let twice = format!("{text}---\n{text}");
    let errors = parse("f.yaml", &twice).unwrap_err();
    assert!(errors[0].to_string().contains("PodGroup ml/train"), "{}", errors[0]);
    let misspelt = text.replace("minCount", "minMember");
    let errors = parse("f.yaml", &misspelt).unwrap_err();
    assert!(errors[0].to_string().contains("spec.schedulingPolicy.gang.minMember"), "{}", errors[0]);
}

const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";
const COSCHEDULING: &str = "scheduling.x-k8s.io/v1alpha1";

#[test]
fn pods_that_name_a_pod_group_of_another_scheduler_are_a_gang_with_its_least_number() {
    for (version, field, key) in [
        (VOLCANO, "annotations", "scheduling.k8s.io/group-name"),
        (VOLCANO, "annotations", "scheduling.volcano.sh/group-name"),
        (COSCHEDULING, "labels", "scheduling.x-k8s.io/pod-group"),
    ] {
        let member = |name: &str| {
            let mut pod = object("v1", "Pod", name, json!({"containers": [{"image": "x", "name": "a"}]}));
            pod["metadata"][field] = json!({key: "train"});
            pod
        };
        let least = object(version, "PodGroup", "train", json!({"minMember": 2}));
        let (group, _) = version.split_once('/').expect("a group");
        let manifest = read(&[member("a"), least, member("b"), member("c")]);
        assert_eq!(gangs(&manifest), [(format!("PodGroup default/train of {group}"), 2, 3)]);
        assert!(manifest.notes.iter().all(|note| !note.contains("PodGroup")), "{:?}", manifest.notes);
        let alone = read(&[member("a")]);
        let key = alone.pods[0].group_key().expect("a PodGroup that is missing");
        assert_eq!(key.name, format!("train of {group}"));
    }
}

fn volcano(spec: &Value, phase: &str) -> PodGroup {
    let object = json!({"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "train", "namespace": "ml"},
        "spec": spec, "status": {"phase": phase, "running": 1}});
    volcano_pod_group(&serde_json::from_value(object).expect("a PodGroup"))
}

#[test]
fn the_tasks_of_a_pod_group_of_volcano_are_roles_unless_it_needs_fewer_pods() {
    let of = |least: u32| {
        let tasks = json!({"master": 1, "worker": 2});
        let group = volcano(&json!({"minMember": least, "minTaskMember": tasks}), "Running");
        let roles = group.roles.into_iter().map(|role| (role.label.0, role.label.1, role.least));
        (group.min_count, roles.collect::<Vec<_>>())
    };
    let role = |task: &str, least: u32| ("volcano.sh/task-spec".to_owned(), task.to_owned(), least);
    assert_eq!(of(3), (Some(3), vec![role("master", 1), role("worker", 2)]));
    assert_eq!(of(2), (Some(2), vec![]));
    assert_eq!(of(1), (None, vec![]), "its pods start one by one");
}

#[test]
fn pods_of_volcano_that_have_succeeded_count_to_the_minimum_of_their_group() {
    let of = |succeeded: u32| {
        let object = json!({"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "train", "namespace": "ml"},
            "spec": {"minMember": 10, "minTaskMember": {"worker": 10}},
            "status": {"phase": "Running", "succeeded": succeeded}});
        let group = volcano_pod_group(&serde_json::from_value(object).expect("a PodGroup"));
        (group.min_count, group.roles.len())
    };
    assert_eq!([of(0), of(6), of(9)], [(Some(10), 1), (Some(4), 0), (None, 0)]);
}

#[test]
fn a_pod_group_of_volcano_says_what_holds_its_pods() {
    let of = |phase: &str| volcano(&json!({"minMember": 2, "queue": "research"}), phase).held;
    assert!(of("Pending").is_some_and(|why| why.contains("has not admitted it to queue `research`")));
    assert_eq!([of("Inqueue"), of("Running"), of("")], [None, None, None]);
    let topology = |mode: &str| {
        let group = volcano(&json!({"minMember": 2, "networkTopology": {"mode": mode}}), "Running");
        group.unmodelled.into_iter().map(|rule| rule.field).collect::<Vec<_>>()
    };
    assert_eq!(topology("hard"), ["spec.networkTopology"]);
    assert_eq!(topology("soft"), [""; 0]);
}

#[test]
fn a_field_of_a_pod_group_of_another_scheduler_is_misspelt_or_of_a_newer_version() {
    for version in [VOLCANO, COSCHEDULING] {
        let of = |spec: Value| object(version, "PodGroup", "a", spec);
        let [misspelt]: [String; 1] = refused(&of(json!({"minMembr": 2}))).try_into().expect("one problem");
        assert!(misspelt.contains("spec.minMembr: unknown field; did you mean `minMember`?"), "{misspelt}");
        let [typed]: [String; 1] = refused(&of(json!({"minMember": "two"}))).try_into().expect("one problem");
        assert!(typed.contains("spec.minMember: invalid type"), "{typed}");
        let newer = read(&[of(json!({"minMember": 2, "colour": "blue"}))]);
        let told = "PodGroup default/a: spec.colour: this version does not know the field, and ignores it";
        assert_eq!((newer.notes.as_slice(), newer.pod_groups.len()), ([told.to_owned()].as_slice(), 1));
    }
}
