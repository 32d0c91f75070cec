//! Tests what operators of other projects refuse, and gangs that never have the pods that they wait for: errors of written objects,
//! and gangs that wait of stored ones.

use serde_json::{Value, json};

use crate::json_kit::{ending, gangs, object, read, refused, stored};

fn workers(count: i64) -> Value {
    json!({"replicas": count, "template": {"spec": {"containers": [{"image": "x", "name": "pytorch"}]}}})
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

/// A job of Volcano with these tasks.
fn tasks(tasks: Value) -> Value {
    object("batch.volcano.sh/v1alpha1", "Job", "train", json!({"tasks": tasks}))
}

#[test]
fn tasks_of_volcano_follow_tasks_that_exist_and_no_circle() {
    let task = |name: &str, after: Value| json!({"name": name, "replicas": 1, "template": ending(), "dependsOn": {"name": after}});
    let chain = |first: Value| {
        let others = [task("train", json!(["prepare"])), task("report", json!(["train"]))];
        tasks(json!([task("prepare", first), others[0], others[1]]))
    };
    read(&[chain(json!([]))]);
    let told = "spec.tasks[0].dependsOn.name[0]: no task is named `trian`; did you mean `train`?";
    is_refused_for(&chain(json!(["trian"])), told);
    let circle =
        "spec.tasks[0].dependsOn: tasks wait for each other in a circle (prepare, train), so none starts";
    is_refused_for(&chain(json!(["train"])), circle);
    is_refused_for(&chain(json!(["prepare"])), "tasks wait for each other in a circle (prepare), so none");
}

#[test]
fn partitions_of_a_task_have_all_its_pods() {
    let of = |least: i64| {
        let policy = json!({"totalPartitions": 2, "partitionSize": 3, "minPartitions": least});
        let task = json!({"name": "w", "replicas": 6, "minAvailable": 3, "template": ending(), "partitionPolicy": policy});
        tasks(json!([task]))
    };
    read(&[of(1)]);
    let path = "spec.tasks[0].partitionPolicy";
    is_refused_for(&of(2), &format!("{path}.minPartitions: 2 partitions of 3 pods are not minAvailable (3)"));
    let mut more = of(1);
    more["spec"]["tasks"][0]["replicas"] = json!(7);
    is_refused_for(&more, &format!("{path}: 2 partitions of 3 pods are not the 7 pods of the task"));
}

#[test]
fn the_policies_of_a_job_set_name_jobs_that_it_has() {
    let set = |more: Value| {
        let job = json!({"name": "workers", "template": {"spec": {"template": ending()}}});
        let mut spec = json!({"replicatedJobs": [job]});
        spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        object("jobset.x-k8s.io/v1alpha2", "JobSet", "j", spec)
    };
    let names = |name: &str| json!({"operator": "All", "targetReplicatedJobs": [name]});
    read(&[set(json!({"successPolicy": names("workers"), "coordinator": {"replicatedJob": "workers"}}))]);
    let none = "no job is named `worker`; did you mean `workers`?";
    for (field, value, path) in [
        ("successPolicy", names("worker"), "spec.successPolicy.targetReplicatedJobs[0]"),
        (
            "failurePolicy",
            json!({"rules": [names("worker")]}),
            "spec.failurePolicy.rules[0].targetReplicatedJobs[0]",
        ),
        ("coordinator", json!({"replicatedJob": "worker"}), "spec.coordinator.replicatedJob"),
    ] {
        is_refused_for(&set(json!({field: value})), &format!("{path}: {none}"));
    }
    let after = json!([{"name": "workers", "status": "Ready"}]);
    let mut both = set(json!({"startupPolicy": {"startupPolicyOrder": "InOrder"}}));
    let follower = json!({"name": "last", "dependsOn": after, "template": {"spec": {"template": ending()}}});
    both["spec"]["replicatedJobs"].as_array_mut().expect("a list").push(follower);
    is_refused_for(
        &both,
        "spec.replicatedJobs[1].dependsOn: an API server refuses it beside startupPolicyOrder",
    );
}

#[test]
fn names_that_are_too_long_for_what_an_operator_makes_are_refused() {
    let named = |mut object: Value, name: &str| {
        object["metadata"]["name"] = json!(name);
        object
    };
    let job = json!({"name": "workers", "replicas": 100, "template": {"spec": {"template": ending()}}});
    let set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "j", json!({"replicatedJobs": [job]}));
    let long = "a".repeat(53);
    read(&[named(set.clone(), &long[..52])]);
    let made = format!(
        "spec.replicatedJobs[0].name: it makes the name `{long}-workers-99`: the name has 64 characters"
    );
    is_refused_for(&named(set, &long), &made);
    let job = tasks(json!([{"name": "w", "replicas": 1, "template": ending()}]));
    is_refused_for(&named(job, &"a".repeat(60)), "has 64 characters, and 63 are the most; shorten this name");
    let spec = json!({"headGroupSpec": {"template": ending()}});
    let cluster = object("ray.io/v1", "RayCluster", "r", spec);
    read(&[named(cluster.clone(), &long)]);
    let told =
        "metadata.name: KubeRay refuses a name with 54 characters, because 53 are the most for a RayCluster";
    is_refused_for(&named(cluster.clone(), &"a".repeat(54)), told);
    is_refused_for(&named(cluster, "9-ray"), "metadata.name: an API server refuses the name `9-ray`");
}

#[test]
fn groups_of_a_leader_worker_set_are_divided_into_equal_parts() {
    let set = |size: i64, part: i64, kind: &str| {
        let policy = json!({"subGroupSize": part, "subGroupPolicyType": kind});
        let template = json!({"size": size, "subGroupPolicy": policy, "workerTemplate": ending()});
        let spec = json!({"leaderWorkerTemplate": template});
        object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", spec)
    };
    read(&[set(8, 4, "LeaderWorker")]);
    read(&[set(9, 4, "LeaderExcluded")]);
    let path = "spec.leaderWorkerTemplate.subGroupPolicy.subGroupSize";
    for (size, part, kind) in [(8, 3, "LeaderWorker"), (8, 4, "LeaderExcluded"), (2, 4, "LeaderWorker")] {
        let told = format!("{path}: a group of {size} pods cannot be divided into parts of {part}");
        is_refused_for(&set(size, part, kind), &told);
    }
}

#[test]
fn a_roll_out_of_a_leader_worker_set_can_replace_groups() {
    let set = |replicas: i64, rolling: Value| {
        let rollout = json!({"type": "RollingUpdate", "rollingUpdateConfiguration": rolling});
        let template = json!({"size": 2, "workerTemplate": ending()});
        let spec =
            json!({"replicas": replicas, "rolloutStrategy": rollout, "leaderWorkerTemplate": template});
        object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "l", spec)
    };
    let none = json!({"maxUnavailable": 0, "maxSurge": 0});
    let path = "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable";
    for rolling in [none.clone(), json!({"maxUnavailable": "0%"}), json!({"maxUnavailable": 0})] {
        is_refused_for(&set(2, rolling), &format!("{path}: an API server refuses 0 if maxSurge is 0 too"));
    }
    let share = format!("{path}: `40%` of 2 groups is less than one, and maxSurge is 0; raise one of them");
    is_refused_for(&set(2, json!({"maxUnavailable": "40%"})), &share);
    for (replicas, rolling) in [
        (0, none),
        (2, json!({})),
        (2, json!({"maxUnavailable": "50%"})),
        (2, json!({"maxUnavailable": 0, "maxSurge": 1})),
    ] {
        read(&[set(replicas, rolling)]);
    }
}

#[test]
fn what_a_training_job_of_kubeflow_must_have_is_told() {
    let job =
        |kind: &str, field: &str, roles: Value| object("kubeflow.org/v1", kind, "t", json!({field: roles}));
    let role = |name: &str| json!({"template": {"spec": {"containers": [{"image": "x", "name": name}]}}});
    for (object, told) in [
        (
            job("XGBoostJob", "xgbReplicaSpecs", json!({"Worker": role("xgboost")})),
            "spec.xgbReplicaSpecs.Master: missing; add it",
        ),
        (
            job(
                "TFJob",
                "tfReplicaSpecs",
                json!({"Chief": role("tensorflow"), "Master": role("tensorflow")}),
            ),
            "spec.tfReplicaSpecs: the operator refuses a TFJob with a Chief and a Master",
        ),
        (
            job("JAXJob", "jaxReplicaSpecs", json!({"Worker": role("a")})),
            "Worker.template.spec.containers: none has the name `jax`",
        ),
        (
            job("PaddleJob", "paddleReplicaSpecs", json!({"Wrker": role("paddle")})),
            "spec.paddleReplicaSpecs.Wrker: PaddleJob has no such role; did you mean `Worker`?",
        ),
    ] {
        is_refused_for(&object, told);
    }
    let mut elastic = pytorch(&json!({"nprocPerNode": "8", "elasticPolicy": {"nProcPerNode": 8}}));
    elastic["spec"]["pytorchReplicaSpecs"] = json!({"Master": role("pytorch")});
    is_refused_for(&elastic, "spec.pytorchReplicaSpecs.Worker: missing; add it");
    is_refused_for(&elastic, "spec.elasticPolicy.nProcPerNode: the operator refuses it beside");
}

#[test]
fn what_ray_refuses_of_a_group_or_a_selector_is_told() {
    let group = json!({"groupName": "w", "suspend": true, "template": ending(), "resources": {"CPU": "4"},
        "rayStartParams": {"num-cpus": "4", "labels": "a=b"}});
    let head = json!({"template": ending(), "headService": {"metadata": {"name": "own"}}});
    let cluster =
        json!({"enableInTreeAutoscaling": true, "headGroupSpec": head, "workerGroupSpecs": [group]});
    let service = object("ray.io/v1", "RayService", "s", json!({"rayClusterConfig": cluster}));
    let place = "spec.rayClusterConfig.workerGroupSpecs[0]";
    for told in [
        format!(
            "{place}.resources: KubeRay refuses it beside resources in rayStartParams; remove one of them"
        ),
        format!("{place}.rayStartParams.labels: KubeRay refuses labels there"),
        format!("{place}.suspend: KubeRay refuses it with the autoscaler"),
        "spec.rayClusterConfig.headGroupSpec.headService.metadata.name: KubeRay refuses a name".to_owned(),
    ] {
        is_refused_for(&service, &told);
    }
    let spec = json!({"clusterSelector": {"app": "a"}, "backoffLimit": 1});
    let job = object("ray.io/v1", "RayJob", "j", spec);
    is_refused_for(&job, "spec.clusterSelector: KubeRay refuses a selector that names no cluster");
    is_refused_for(&job, "spec.backoffLimit: KubeRay refuses retries with clusterSelector");
}

#[test]
fn replicas_outside_the_limits_of_a_group_of_ray_are_told() {
    let group = json!({"groupName": "w", "replicas": 9, "maxReplicas": 4, "template": ending()});
    let spec = json!({"headGroupSpec": {"template": ending()}, "workerGroupSpecs": [group]});
    let manifest = read(&[object("ray.io/v1", "RayCluster", "r", spec)]);
    let told = "RayCluster default/r: spec.workerGroupSpecs[0].replicas: KubeRay makes 4 instead of 9, because minReplicas and \
                maxReplicas limit them";
    assert_eq!((manifest.pods.len(), manifest.notes.as_slice()), (5, [told.to_owned()].as_slice()));
}
