//! Tests what is said of printed objects that are left out, because they cannot be read, and of those that need them.

use serde_json::{Value, json};

use crate::json_kit::{apps, has, object, read, stored, template};

/// Returns the last part of the note on an object that cannot be read.
fn follows(broken: Value) -> String {
    let told = read(&[stored(broken, None)]).notes;
    let note = told.iter().find_map(|note| note.split_once("; the object is left out"));
    note.unwrap_or_else(|| panic!("{told:?}")).1.to_owned()
}

fn without_spec(version: &str, kind: &str, fields: Value) -> Value {
    let mut object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}});
    object.as_object_mut().expect("a map").extend(fields.as_object().expect("a map").clone());
    object
}

#[test]
fn a_note_says_what_follows_from_each_kind_that_is_left_out() {
    let many = |kind: &str| {
        let mut workload = apps(kind, "a", 1);
        workload["spec"]["replicas"] = json!("two");
        workload
    };
    let mut agents = object("apps/v1", "DaemonSet", "a", json!({"template": template()}));
    agents["spec"]["template"]["spec"]["containers"] = json!("one");
    let mut labelled = without_spec("v1", "Namespace", json!({}));
    labelled["metadata"]["labels"] = json!({"a": 1});
    let limits = json!({"limits": [{"type": "Container", "defaultRequest": {"cpu": "zz"}}]});
    for (broken, what) in [
        (many("ReplicaSet"), ", so it adds no pods to the plan"),
        (many("StatefulSet"), ", so it adds no pods to the plan"),
        (agents, ", so new nodes may be too small for its pods"),
        (labelled, ", so its labels and limits are unknown"),
        (
            object("v1", "ResourceQuota", "a", json!({"hard": {"pods": "x"}})),
            ", so the plan may have pods that it forbids",
        ),
        (object("v1", "LimitRange", "a", limits), ", so its defaults and limits may not count"),
        (
            without_spec("scheduling.k8s.io/v1", "PriorityClass", json!({"value": "high"})),
            ", so its priority does not count",
        ),
        (
            without_spec("node.k8s.io/v1", "RuntimeClass", json!({"handler": 1})),
            ", so its overhead and its node selector may not count",
        ),
        (
            object("policy/v1", "PodDisruptionBudget", "a", json!({"selector": "app"})),
            ", so it protects no pods",
        ),
        (
            object("v1", "PersistentVolumeClaim", "a", json!({"accessModes": "ReadWriteOnce"})),
            ", so pods with it may get nodes where its volume cannot be used",
        ),
        (
            object("v1", "PersistentVolume", "a", json!({"accessModes": "ReadWriteOnce"})),
            ", so pods with it are not planned",
        ),
        (
            without_spec("storage.k8s.io/v1", "StorageClass", json!({"provisioner": 1})),
            ", so its rules for volumes do not count",
        ),
        (
            object("storage.k8s.io/v1", "CSINode", "a", json!({"drivers": "ebs"})),
            ", so no limit of volumes counts for its node",
        ),
        (
            object("v1", "Service", "a", json!({"selector": "app"})),
            ", so the scheduler's default spread of its pods may not count",
        ),
    ] {
        assert_eq!(follows(broken), what);
    }
}

#[test]
fn what_is_left_out_is_not_called_missing() {
    let class = |version: &str, kind: &str, fields: Value| {
        let mut class = stored(without_spec(version, kind, fields), None);
        class["metadata"]["name"] = json!("high");
        class
    };
    let priority = class("scheduling.k8s.io/v1", "PriorityClass", json!({"value": "high"}));
    let runtime = class("node.k8s.io/v1", "RuntimeClass", json!({"handler": 1}));
    let mut pod = object("v1", "Pod", "p", template()["spec"].clone());
    pod["spec"]["priorityClassName"] = json!("high");
    pod["spec"]["runtimeClassName"] = json!("high");
    let manifest = read(&[priority, runtime, pod]);
    for note in [
        "Pod default/p: PriorityClass `high` is left out, because it cannot be read, so the priority counts as 0; correct it",
        "Pod default/p: RuntimeClass `high` is left out, because it cannot be read, so its overhead and its node selector are not \
         counted; correct it",
    ] {
        assert!(has(&manifest, note), "{:?}", manifest.notes);
    }

    let mut node = stored(object("v1", "Node", "broken", json!({})), None);
    node["status"] = json!({"allocatable": {"cpu": "lots"}});
    let on = |name: &str, node: &str| {
        let mut pod = object("v1", "Pod", name, template()["spec"].clone());
        pod["spec"]["nodeName"] = json!(node);
        pod
    };
    let runs = |name: &str, node: &str| stored(on(name, node), None);
    let manifest = read(&[node, runs("a", "broken"), runs("b", "ghost"), on("c", "broken")]);
    assert_eq!(
        manifest.bound_elsewhere,
        [
            "Pod default/c: it is bound to node `broken`, which is left out, because it cannot be read, so nothing is planned for it",
            "1 pod runs on a node that is not in the files: default/b on `ghost`",
            "1 pod runs on a node that is left out, because it cannot be read: default/a on `broken`",
        ]
    );
}

#[test]
fn a_pod_that_is_deleted_before_it_has_a_node_is_named() {
    let deleted = |name: &str, node: &str| {
        let mut pod = object("v1", "Pod", name, template()["spec"].clone());
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        pod["spec"]["nodeName"] = json!(node);
        stored(pod, None)
    };
    let manifest = read(&[deleted("waits", ""), deleted("runs", "n")]);
    let note = |name: &str| {
        format!("Pod default/{name}: it is being deleted and has no node, so nothing is planned for it")
    };
    assert!(has(&manifest, &note("waits")), "{:?}", manifest.notes);
    assert!(!has(&manifest, &note("runs")), "it has a node");
}
