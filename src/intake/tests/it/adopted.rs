//! Tests pods that a controller adopts, pods that block a name, and pods of a cluster whose controllers are in the manifest.

use poolwright_intake::Manifest;
use poolwright_intake::manifest::read_files;
use serde_json::{Value, json};

use crate::json_kit::{apps, ending, gangs, has, names, object, pod, read, stored, template};

const SET: [&str; 3] = ["apps/v1", "StatefulSet", "web"];

/// A pod on a node.
fn running(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("n");
    pod["status"] = json!({"phase": "Running"});
    pod
}

/// A running pod with the labels of the templates, and without a controller.
fn orphan(name: &str) -> Value {
    let mut pod =
        stored(object("v1", "Pod", name, json!({"containers": [{"image": "x", "name": "a"}]})), None);
    pod["metadata"]["labels"] = json!({"app": "web"});
    running(pod)
}

/// A running pod whose controller had the same name as one of the manifest, and is gone.
fn older(name: &str, owner: [&str; 3]) -> Value {
    let mut pod = running(pod(name, owner));
    pod["metadata"]["ownerReferences"][0]["uid"] = json!("u-before");
    pod
}

/// Reads an object beside what a cluster has.
fn beside(object: &Value, there: &[Value]) -> Manifest {
    let (manifest, errors) = read_files([("all.json", object.to_string().as_str())], there);
    assert!(errors.is_empty(), "{errors:?}");
    manifest
}

#[test]
fn a_controller_adopts_the_pods_of_its_selector_that_have_no_controller() {
    let manifest = read(&[stored(apps("StatefulSet", "web", 3), None), orphan("web-0")]);
    assert_eq!(names(&manifest), ["web-0", "web-1", "web-2"]);
    let told = "Pod default/web-0: it has no controller, and StatefulSet default/web adopts it";
    assert!(has(&manifest, told), "{:?}", manifest.notes);
    let told = "StatefulSet default/web: pods in the manifest: 1; pods that it lacks, planned too: 2";
    assert!(has(&manifest, told), "{:?}", manifest.notes);

    let counted = json!({"replicas": 3, "selector": {"app": "web"}, "template": template()});
    let selector = json!({"matchLabels": {"app": "web"}});
    let job = json!({"parallelism": 3, "completions": 3, "selector": selector, "template": ending()});
    for controller in [
        apps("ReplicaSet", "web", 3),
        object("v1", "ReplicationController", "web", counted),
        object("batch/v1", "Job", "web", job),
    ] {
        let manifest = read(&[stored(controller, None), orphan("by-hand")]);
        assert_eq!(names(&manifest), ["by-hand", "web-1", "web-2"], "{:?}", manifest.notes);
    }
}

#[test]
fn a_deployment_adopts_a_replica_set_that_has_no_controller() {
    let mut set = stored(apps("ReplicaSet", "web-5d4", 2), None);
    let deployment = stored(apps("Deployment", "web", 2), None);
    assert_eq!(read(&[deployment.clone(), set.clone()]).pods.len(), 4, "its labels are others");
    set["metadata"]["labels"] = json!({"app": "web"});
    assert_eq!(read(&[deployment, set]).pods.len(), 2);
}

#[test]
fn a_pod_that_kubernetes_does_not_adopt_is_not_counted() {
    let planned = |change: fn(&mut Value)| {
        let mut pod = orphan("by-hand");
        change(&mut pod);
        let manifest = read(&[stored(apps("ReplicaSet", "web", 3), None), pod]);
        names(&manifest).into_iter().filter(|name| name.starts_with("web-")).count()
    };
    assert_eq!(planned(|_| {}), 2);
    assert_eq!(planned(|pod| pod["metadata"]["labels"] = json!({"app": "other"})), 3);
    assert_eq!(planned(|pod| pod["metadata"]["namespace"] = json!("other")), 3);
    assert_eq!(planned(|pod| pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z")), 3);
    assert_eq!(planned(|pod| pod["status"]["phase"] = json!("Failed")), 3);
    let controlled = |pod: &mut Value| {
        let owner =
            json!({"apiVersion": "v1", "kind": "Other", "name": "o", "uid": "u-o", "controller": true});
        pod["metadata"]["ownerReferences"] = json!([owner]);
    };
    assert_eq!(planned(controlled), 3);
    assert_eq!(planned(|pod| *pod = older("by-hand", ["apps/v1", "ReplicaSet", "web"])), 3);
}

#[test]
fn a_pod_that_its_controller_does_not_control_blocks_its_name() {
    let set = |replicas: u32| stored(apps("StatefulSet", "web", replicas), None);
    let manifest = read(&[set(3), older("web-0", SET)]);
    assert_eq!(names(&manifest), ["web-0", "web-1", "web-2"]);
    let told = "StatefulSet default/web: web-0 is not planned, because a pod of this name exists that it does not control; \
                it makes its own when that is gone";
    assert!(has(&manifest, told), "{:?}", manifest.notes);

    let manifest = read(&[set(1), older("web-0", SET)]);
    assert_eq!(names(&manifest), ["web-0"]);
    assert!(has(&manifest, told), "{:?}", manifest.notes);
    let untrue = |note: &String| note.contains("its pods in the manifest count instead");
    assert!(!manifest.notes.iter().any(untrue), "{:?}", manifest.notes);

    let all: Vec<Value> = (0..5).map(|number| older(&format!("web-{number}"), SET)).chain([set(5)]).collect();
    let manifest = read(&all);
    let told = "StatefulSet default/web: web-0, web-1, web-2 and 2 more are not planned, because pods of these names exist that it \
                does not control; it makes its own when those are gone";
    assert!(has(&manifest, told), "{:?}", manifest.notes);
    assert_eq!(manifest.pods.len(), 5);
}

#[test]
fn a_pod_of_an_older_gang_blocks_its_name_and_the_gang_counts_it() {
    let role = |replicas: u32| json!({"replicas": replicas, "template": template()});
    let spec = json!({"pytorchReplicaSpecs": {"Master": role(1), "Worker": role(2)}});
    let job = stored(object("kubeflow.org/v1", "PyTorchJob", "pt", spec), None);
    let manifest = read(&[job, older("pt-master-0", ["kubeflow.org/v1", "PyTorchJob", "pt"])]);
    assert_eq!(names(&manifest), ["pt-master-0", "pt-worker-0", "pt-worker-1"]);
    assert_eq!(gangs(&manifest).iter().map(|gang| gang.2).collect::<Vec<_>>(), [3]);
}

#[test]
fn placed_pods_of_a_cluster_are_those_of_the_controllers_of_the_manifest() {
    let of_web = |name: &str| pod(name, ["apps/v1", "ReplicaSet", "web-7d9"]);
    let there = [running(of_web("web-7d9-a")), running(of_web("web-7d9-b")), of_web("web-7d9-c")];
    let web = apps("Deployment", "web", 3);
    assert_eq!(beside(&web, &there).pods.len(), 1, "the one that waits is not planned itself");
    let twice = [there[0].clone(), there[0].clone()];
    assert_eq!(beside(&web, &twice).pods.len(), 2, "what is there twice counts once");

    let set = apps("StatefulSet", "web", 2);
    let adopted = beside(&set, &[orphan("web-0")]);
    let told = "Pod default/web-0: it has no controller, and StatefulSet default/web adopts it";
    assert!(has(&adopted, told), "{:?}", adopted.notes);
    let mut by_hand =
        running(object("v1", "Pod", "web-0", json!({"containers": [{"image": "x", "name": "a"}]})));
    by_hand["metadata"]["labels"] = json!({"app": "other"});
    for manifest in [
        beside(&set, &[running(pod("web-0", SET))]),
        adopted,
        beside(&stored(set.clone(), None), &[older("web-0", SET)]),
        beside(&set, &[by_hand]),
    ] {
        assert_eq!(names(&manifest), ["web-1"], "{:?}", manifest.notes);
    }
}
