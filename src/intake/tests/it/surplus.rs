//! Tests pods that their controllers will delete: those that wait are not planned, and those on nodes stay.

use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{OF_SET, OF_WEB, apps, ending, has, names, object, pod, read, stored, template};

const ONE: &str = "1 surplus pod without a node is not planned, because it will be deleted";
const JOB: [&str; 3] = ["batch/v1", "Job", "j"];

/// The pod on a node.
fn placed(mut pod: Value) -> Value {
    pod["spec"]["nodeName"] = json!("n");
    pod["status"] = json!({"phase": "Running"});
    pod
}

fn set(replicas: u32) -> Value {
    stored(apps("ReplicaSet", "web-5d4", replicas), OF_WEB)
}

fn deployment(replicas: u32) -> Value {
    stored(apps("Deployment", "web", replicas), None)
}

fn job(more: &Value) -> Value {
    let mut spec = json!({"completions": 2, "parallelism": 1, "template": ending()});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field.as_str()] = value.clone();
    }
    stored(object("batch/v1", "Job", "j", spec), None)
}

fn told(manifest: &Manifest, note: &str) {
    assert!(has(manifest, note), "{note} is not in {:#?}", manifest.notes);
}

#[test]
fn pods_beyond_the_replicas_of_a_replica_set_are_not_planned_and_those_without_a_node_go_first() {
    let manifest = read(&[deployment(1), set(1), placed(pod("a", OF_SET)), pod("b", OF_SET)]);
    assert_eq!(names(&manifest), ["a"]);
    told(&manifest, &format!("ReplicaSet default/web-5d4: {ONE}"));
    let manifest = read(&[deployment(0), set(0), pod("a", OF_SET), pod("b", OF_SET)]);
    assert_eq!(names(&manifest), [""; 0]);
    let both = "2 surplus pods without a node are not planned, because they will be deleted";
    told(&manifest, &format!("ReplicaSet default/web-5d4: {both}"));
    let manifest = read(&[deployment(2), set(2), pod("a", OF_SET), pod("b", OF_SET)]);
    assert_eq!((names(&manifest).len(), manifest.notes.len()), (2, 2), "{:?}", manifest.notes);
}

#[test]
fn surplus_pods_on_nodes_keep_their_places() {
    let manifest = read(&[set(1), placed(pod("a", OF_SET)), placed(pod("b", OF_SET)), pod("c", OF_SET)]);
    assert_eq!(names(&manifest), ["a", "b"]);
    let keeps = "1 surplus pod on a node keeps its place until it is deleted";
    told(&manifest, &format!("ReplicaSet default/web-5d4: {ONE}; {keeps}"));
}

#[test]
fn a_replica_set_counts_with_no_more_replicas_than_its_deployment_wants() {
    let manifest = read(&[set(3), deployment(1), placed(pod("a", OF_SET)), pod("b", OF_SET)]);
    assert_eq!(names(&manifest), ["a"]);
    let fewer = "it counts with 1 replica instead of 3, because Deployment default/web wants no more";
    told(&manifest, &format!("ReplicaSet default/web-5d4: {fewer}"));
    told(&manifest, &format!("ReplicaSet default/web-5d4: {ONE}"));
    let rollout = [set(3), stored(apps("ReplicaSet", "web-77f", 1), OF_WEB), deployment(3)];
    assert_eq!(read(&rollout).pods.len(), 4, "a rollout may have more");
}

#[test]
fn a_written_deployment_with_fewer_replicas_has_surplus_pods_and_one_without_replicas_has_none() {
    let there = || vec![deployment(2), set(2), placed(pod("a", OF_SET)), pod("b", OF_SET)];
    let with = |replicas: Value, more: Option<Value>| {
        let mut written = apps("Deployment", "web", 1);
        written["spec"]["replicas"] = replicas;
        let mut all = there();
        all.extend([written].into_iter().chain(more));
        read(&all)
    };
    let manifest = with(json!(1), None);
    assert_eq!(names(&manifest), ["a"]);
    told(&manifest, &format!("Deployment default/web: {ONE}"));
    assert_eq!(names(&with(Value::Null, None)), ["a", "b"], "the stored number stays");
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let bounds = json!({"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9});
    let autoscaler = object("autoscaling/v2", "HorizontalPodAutoscaler", "s", bounds);
    assert_eq!(names(&with(json!(1), Some(autoscaler))), ["a", "b"], "its autoscaler has the number");
}

#[test]
fn the_highest_ordinals_of_a_stateful_set_are_surplus_even_if_lower_ones_wait() {
    let of = ["apps/v1", "StatefulSet", "db"];
    let db = |replicas: u32| stored(apps("StatefulSet", "db", replicas), None);
    let manifest = read(&[db(1), pod("db-0", of), placed(pod("db-1", of)), pod("db-2", of)]);
    assert_eq!(names(&manifest), ["db-0", "db-1"]);
    let keeps = "1 surplus pod on a node keeps its place until it is deleted";
    told(&manifest, &format!("StatefulSet default/db: {ONE}; {keeps}"));
    let mut later = db(1);
    later["spec"]["ordinals"] = json!({"start": 1});
    assert_eq!(
        names(&read(&[later, pod("db-0", of), pod("db-1", of)])),
        ["db-1"],
        "those before the first too"
    );
    assert_eq!(names(&read(&[db(0), pod("db-0", of)])), [""; 0]);
}

#[test]
fn a_job_deletes_pods_beyond_its_parallelism_and_all_when_it_is_suspended_or_has_ended() {
    let ended = |kind: &str| {
        let mut job = job(&json!({}));
        job["status"] = json!({"conditions": [{"type": kind, "status": "True"}]});
        job
    };
    let beside_a_running_one = [job(&json!({})), placed(pod("j-a", JOB)), pod("j-b", JOB)];
    let manifest = read(&beside_a_running_one);
    assert_eq!(names(&manifest), ["j-a"]);
    told(&manifest, &format!("Job default/j: {ONE}"));
    for none in [job(&json!({"suspend": true})), ended("Failed"), ended("Complete")] {
        let manifest = read(&[none, pod("j-a", JOB)]);
        assert_eq!(names(&manifest), [""; 0], "{:?}", manifest.notes);
        told(&manifest, &format!("Job default/j: {ONE}"));
    }
    let mut queue = job(&json!({"completions": null, "parallelism": 2}));
    queue["status"] = json!({"succeeded": 1});
    assert_eq!(names(&read(&[queue, pod("j-b", JOB)])), ["j-b"], "it goes on until it ends");
    let elsewhere = job(&json!({"managedBy": "kueue.x-k8s.io/multikueue"}));
    assert_eq!(names(&read(&[elsewhere, pod("j-a", JOB), pod("j-b", JOB)])), ["j-a", "j-b"]);
}

#[test]
fn what_a_suspended_controller_makes_is_suspended_with_it() {
    const SET: [&str; 3] = ["jobset.x-k8s.io/v1alpha2", "JobSet", "js"];
    let spec = json!({"parallelism": 2, "completions": 2, "template": ending()});
    let replicated = json!([{"name": "d", "template": {"spec": spec}}]);
    let set = json!({"suspend": true, "replicatedJobs": replicated});
    let set = || stored(object(SET[0], SET[1], SET[2], set.clone()), None);
    let job = stored(object("batch/v1", "Job", "js-d-0", spec), Some(SET));
    let mut waits = pod("js-d-0-0-x", ["batch/v1", "Job", "js-d-0"]);
    let manifest = read(&[set(), job, waits.clone()]);
    assert_eq!(names(&manifest), [""; 0], "neither the pod nor the one that its Job lacks");
    told(&manifest, &format!("JobSet default/js: {ONE}"));
    told(&manifest, "Job default/js-d-0: it is suspended and makes no pods now");
    waits["metadata"]["labels"] = json!({"jobset.sigs.k8s.io/jobset-name": "js"});
    assert_eq!(
        names(&read(&[set(), waits])),
        [""; 0],
        "the label shows the JobSet of a Job that is not there"
    );

    const TRAINING: [&str; 3] = ["kubeflow.org/v1", "PyTorchJob", "pt"];
    let roles = json!({"Master": {"replicas": 1, "template": template()}});
    let spec = json!({"runPolicy": {"suspend": true}, "pytorchReplicaSpecs": roles});
    let training = stored(object(TRAINING[0], TRAINING[1], TRAINING[2], spec), None);
    let manifest = read(&[training, pod("pt-master-0", TRAINING)]);
    assert_eq!(names(&manifest), [""; 0]);
    told(&manifest, &format!("PyTorchJob default/pt: {ONE}"));
}

#[test]
fn a_deployment_of_the_same_name_deletes_no_pods_of_a_rollout() {
    // A Rollout with `workloadRef` has the name of its Deployment, which then has no replicas.
    let mut waits = pod("a", OF_SET);
    waits["metadata"]["labels"] = json!({"rollouts-pod-template-hash": "5d4"});
    assert_eq!(names(&read(&[deployment(0), waits])), ["a"]);
    let other = stored(object("rollouts.kruise.io/v1beta1", "Rollout", "web", json!({"strategy": {}})), None);
    let pods = [pod("a", OF_SET), pod("b", OF_SET)];
    assert_eq!(names(&read(&[other, pods[0].clone(), pods[1].clone()])), ["a", "b"], "it makes no pods");
}
