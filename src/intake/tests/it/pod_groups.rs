//! Tests PodGroups, and pods that belong to one.

use poolwright_core::PodGroup;
use poolwright_intake::manifest::parse;
use poolwright_intake::{pod, pod_group};
use serde_json::{Value, json};

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
fn manifests_have_podgroups_of_kubernetes_and_leave_those_of_other_schedulers_alone() {
    let text = "{apiVersion: scheduling.k8s.io/v1alpha2, kind: PodGroup, metadata: {name: train, namespace: ml}, \
                spec: {schedulingPolicy: {gang: {minCount: 4}}}}\n---\n\
                {apiVersion: scheduling.x-k8s.io/v1alpha1, kind: PodGroup, metadata: {name: other}, spec: {minMember: 3}}\n";
    let manifest = parse("f.yaml", text).expect("a manifest");
    assert_eq!(manifest.pod_groups.iter().map(|group| group.min_count).collect::<Vec<_>>(), [Some(4)]);
    assert_eq!(
        manifest.notes,
        [
            "PodGroup default/other: scheduling.x-k8s.io/v1alpha1 PodGroup is not read; its pods are planned one by one, not as a gang"
        ]
    );
    let twice = format!("{text}---\n{text}");
    let errors = parse("f.yaml", &twice).unwrap_err();
    assert!(errors[0].to_string().contains("PodGroup ml/train"), "{}", errors[0]);
    let misspelt = text.replace("minCount", "minMember");
    let errors = parse("f.yaml", &misspelt).unwrap_err();
    assert!(errors[0].to_string().contains("spec.schedulingPolicy.gang.minMember"), "{}", errors[0]);
}
