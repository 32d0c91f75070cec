//! Tests what operators of other projects refuse, and gangs that never have the pods that they wait for: errors of written objects,
//! and gangs that wait of stored ones.

use serde_json::{Value, json};

use crate::json_kit::{ending, gangs, object, read, refused, stored};

fn workers(count: i64) -> Value {
    json!({"replicas": count, "template": {"spec": {"containers": [{"name": "pytorch"}]}}})
}

fn pytorch(more: &Value) -> Value {
    let mut spec = json!({"pytorchReplicaSpecs": {"Worker": workers(3)}});
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    object("kubeflow.org/v1", "PyTorchJob", "train", spec)
}

fn volcano(least: &Value, least_of_task: &Value) -> Value {
    let task = json!({"name": "w", "replicas": 2, "minAvailable": least_of_task, "template": ending()});
    let spec = json!({"minAvailable": least, "schedulerName": "default-scheduler", "tasks": [task]});
    object("batch.volcano.sh/v1alpha1", "Job", "train", spec)
}

fn is_refused_for(object: &Value, problem: &str) {
    let found = refused(object);
    assert!(found.iter().any(|one| one.contains(problem)), "{problem} is not in {found:#?}");
}

fn least(count: i64) -> Value {
    json!({"runPolicy": {"schedulingPolicy": {"minAvailable": count}}})
}

fn elastic(policy: &Value) -> Value {
    json!({"elasticPolicy": policy})
}

#[test]
fn a_written_job_that_waits_for_more_pods_than_it_has_is_refused() {
    let too_many =
        "`10` is more than all pods of the job (2), so they would wait for ever; lower it, or raise replicas";
    is_refused_for(&volcano(&json!(10), &Value::Null), &format!("spec.minAvailable: {too_many}"));
    is_refused_for(&volcano(&json!(1), &json!(3)), "spec.tasks[0].minAvailable: `3` is more than all pods");
    let policy = "spec.runPolicy.schedulingPolicy.minAvailable";
    is_refused_for(&pytorch(&least(99)), &format!("{policy}: `99` is more than all pods of the job (3)"));
    is_refused_for(&pytorch(&least(-1)), &format!("{policy}: `-1` is negative; write zero or more"));
    let wide = elastic(&json!({"minReplicas": 5, "maxReplicas": 8}));
    is_refused_for(
        &pytorch(&wide),
        "spec.elasticPolicy.minReplicas: `5` is more than all pods of the job (3)",
    );
    let crossed = elastic(&json!({"minReplicas": 3, "maxReplicas": 2}));
    is_refused_for(&pytorch(&crossed), "spec.elasticPolicy.maxReplicas: `2` is less than minReplicas (3)");
    read(&[volcano(&json!(2), &json!(2)), pytorch(&least(3))]);
    let scaled = elastic(&json!({"minReplicas": 5, "maxReplicas": 8, "metrics": []}));
    read(&[pytorch(&scaled)]);
}

#[test]
fn a_stored_job_that_waits_for_more_pods_than_it_has_keeps_its_minimum() {
    let wide = elastic(&json!({"minReplicas": 5, "maxReplicas": 8}));
    for (job, wanted, pods) in
        [(volcano(&json!(10), &Value::Null), 10, 2), (pytorch(&least(99)), 99, 3), (pytorch(&wide), 5, 3)]
    {
        let found = gangs(&read(&[stored(job, None)]));
        let numbers: Vec<_> = found.iter().map(|(_, least, there)| (*least, *there)).collect();
        assert_eq!(numbers, [(wanted, pods)], "{found:?}");
    }
}

#[test]
fn objects_of_which_an_operator_makes_no_pods_are_refused() {
    let launcher =
        object("kubeflow.org/v2beta1", "MPIJob", "m", json!({"mpiReplicaSpecs": {"Worker": workers(3)}}));
    is_refused_for(&launcher, "spec.mpiReplicaSpecs.Launcher: missing; add it");
    let mut job = pytorch(&json!({}));
    job["spec"]["pytorchReplicaSpecs"]["Master"] = workers(0);
    is_refused_for(&job, "Master.replicas: `0` is not the one master that a PyTorchJob has");
    let mut job = pytorch(&json!({}));
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = ending();
    is_refused_for(&job, "Worker.template.spec.containers: none has the name `pytorch`");
    let set = |size: i64| {
        let template = json!({"size": size, "workerTemplate": workers(1)["template"]});
        let spec = json!({"replicas": 1, "leaderWorkerTemplate": template});
        object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", spec)
    };
    is_refused_for(&set(0), "spec.leaderWorkerTemplate.size: a group cannot have 0 pods");
}

#[test]
fn jobs_of_a_job_set_are_refused_as_plain_ones() {
    let set = |job: &Value| {
        let spec = json!({"replicatedJobs": [{"name": "w", "template": {"spec": job}}]});
        object("jobset.x-k8s.io/v1alpha2", "JobSet", "j", spec)
    };
    let path = "spec.replicatedJobs[0].template.spec";
    for mode in [Value::Null, json!("Indexed")] {
        let job = json!({"parallelism": 3, "completionMode": mode, "template": ending()});
        is_refused_for(&set(&job), &format!("{path}.completions: missing; add it"));
    }
    let mut always = ending();
    always["spec"]["restartPolicy"] = json!("Always");
    let told = format!("{path}.template.spec.restartPolicy: an API server refuses `Always` in a Job");
    is_refused_for(&set(&json!({"template": always})), &told);
    read(&[set(&json!({"parallelism": 3, "completionMode": "NonIndexed", "template": ending()}))]);
    read(&[set(&json!({"template": ending()}))]);
}
