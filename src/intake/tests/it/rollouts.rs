//! Tests that a changed template is told, because a rollout of it is not planned.

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{OF_SET, OF_WEB, apps, pod, read, stored};

const OF_DB: [&str; 3] = ["apps/v1", "StatefulSet", "db"];

/// The object with another number of CPUs in its template.
fn with_cpu(mut object: Value, cpu: Value) -> Value {
    object["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    object
}

/// A pod of a controller with the labels and CPUs of a template.
fn of(owner: [&str; 3], name: &str, cpu: &str, revision: &str) -> Value {
    let mut pod = pod(name, owner);
    pod["metadata"]["labels"] = json!({"app": "web", "controller-revision-hash": revision});
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pod
}

/// Returns whether a rollout of this object is told of.
fn is_told(manifest: &Manifest, name: &str) -> bool {
    let note = format!(
        "{name}: its template has changed, and its pods that are there keep the old template: a rollout of the new one is not planned"
    );
    manifest.notes.contains(&note)
}

#[test]
fn a_stored_deployment_whose_controller_has_not_seen_its_new_template_is_told() {
    let deployment = |cpu: &str, generation: u32| {
        let mut deployment = with_cpu(stored(apps("Deployment", "web", 1), None), json!(cpu));
        deployment["metadata"]["generation"] = json!(generation);
        deployment["status"] = json!({"observedGeneration": 1});
        deployment
    };
    let mut set = with_cpu(stored(apps("ReplicaSet", "web-5d4", 1), OF_WEB), json!("1"));
    set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = json!("5d4");
    let told = |deployment: Value| {
        let manifest = read(&[deployment, set.clone(), of(OF_SET, "web-5d4-a", "1", "")]);
        is_told(&manifest, "Deployment default/web")
    };
    assert!(told(deployment("2", 2)));
    assert!(!told(deployment("1", 2)), "the hash is no change");
    assert!(!told(deployment("2", 1)), "its controller has seen it");
    let mut paused = deployment("2", 1);
    paused["spec"]["paused"] = json!(true);
    assert!(told(paused), "it does nothing yet");
}

#[test]
fn a_written_controller_with_another_template_than_its_pods_is_told_whatever_a_server_adds_to_these() {
    let told = |cpu: Value| {
        let set = with_cpu(apps("StatefulSet", "db", 1), cpu);
        let mut there = of(OF_DB, "db-0", "1500m", "db-1");
        there["spec"]["containers"][0]["imagePullPolicy"] = json!("Always");
        there["spec"]["tolerations"] = json!([{"key": "x", "operator": "Exists"}]);
        is_told(&read(&[set, there]), "StatefulSet default/db")
    };
    assert!(told(json!("2")));
    assert!(!told(json!(1.5)), "the same amount in other words");
    let web = with_cpu(apps("Deployment", "web", 1), json!("2"));
    let manifest = read(&[web, of(OF_SET, "web-5d4-a", "1", "")]);
    assert!(is_told(&manifest, "Deployment default/web"), "{:?}", manifest.notes);
}

#[test]
fn a_stored_stateful_set_with_pods_of_an_old_revision_from_its_partition_on_is_told() {
    let told = |partition: u32, revision: &str| {
        let mut set = stored(apps("StatefulSet", "db", 2), None);
        set["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": partition}});
        set["status"] = json!({"currentRevision": "db-1", "updateRevision": "db-2"});
        let pods = [of(OF_DB, "db-0", "1", "db-1"), of(OF_DB, "db-1", "1", revision)];
        is_told(&read(&[set, pods[0].clone(), pods[1].clone()]), "StatefulSet default/db")
    };
    assert!(told(0, "db-2") && told(1, "db-1"));
    assert!(!told(1, "db-2"), "those below keep it");
}

#[test]
fn a_zero_that_a_server_leaves_out_is_no_change() {
    let told = |seconds: u32| {
        let mut set = apps("StatefulSet", "db", 1);
        set["spec"]["template"]["spec"]["containers"][0]["livenessProbe"] =
            json!({"initialDelaySeconds": seconds, "tcpSocket": {"port": 1}});
        let mut there = of(OF_DB, "db-0", "1", "db-1");
        there["spec"]["containers"][0]["livenessProbe"] = json!({"tcpSocket": {"port": 1}});
        is_told(&read(&[set, there]), "StatefulSet default/db")
    };
    assert!(told(5) && !told(0));
}

#[test]
fn the_defaults_that_a_stored_template_has_are_no_change_of_the_written_one() {
    let told = |cpu: &str| {
        let mut there = with_cpu(stored(apps("Deployment", "web", 1), None), json!("1"));
        there["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = json!(30);
        let manifest = read(&[there, with_cpu(apps("Deployment", "web", 1), json!(cpu))]);
        let unchanged = "Deployment default/web: it is there stored and written; the written one counts";
        !manifest.notes.iter().any(|note| note == unchanged)
    };
    assert!(told("2") && !told("1"));
}
