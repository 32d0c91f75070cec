//! Tests of single fields of kinds of other projects with values that their schemas, webhooks and operators refuse: errors of written
//! objects, and nothing for stored ones.

use serde_json::{Value, json};

use crate::json_kit::{ending, has, object, read, refused, stored};

const TRAINER: &str = "trainer.kubeflow.org/v1alpha1";

fn ray() -> Value {
    json!({"headGroupSpec": {"template": ending(), "rayStartParams": {}},
        "workerGroupSpecs": [{"groupName": "w", "rayStartParams": {}, "template": ending()}],
        "autoscalerOptions": {}})
}

/// A sound object of each kind.
fn sound(kind: &str) -> Value {
    let mut trainer = ending();
    trainer["spec"]["containers"][0]["name"] = json!("pytorch");
    let job =
        json!({"name": "node", "template": {"metadata": {"labels": {}}, "spec": {"template": ending()}}});
    let roles = json!({"Launcher": {"template": ending()}, "Worker": {"template": ending()}});
    match kind {
        "MPIJob" => {
            object("kubeflow.org/v2beta1", kind, "a", json!({"runPolicy": {}, "mpiReplicaSpecs": roles}))
        }
        "PyTorchJob" => object(
            "kubeflow.org/v1",
            kind,
            "a",
            json!({"pytorchReplicaSpecs": {"Worker": {"template": trainer}}}),
        ),
        "JobSet" => object(
            "jobset.x-k8s.io/v1alpha2",
            kind,
            "a",
            json!({"replicatedJobs": [job], "successPolicy": {}}),
        ),
        "LeaderWorkerSet" => {
            let template = json!({"size": 2, "subGroupPolicy": {}, "workerTemplate": ending()});
            let spec = json!({"rolloutStrategy": {}, "networkConfig": {}, "leaderWorkerTemplate": template});
            object("leaderworkerset.x-k8s.io/v1", kind, "a", spec)
        }
        "Job" => {
            let task = json!({"name": "w", "replicas": 1, "partitionPolicy": {}, "template": ending()});
            object("batch.volcano.sh/v1alpha1", kind, "a", json!({"tasks": [task]}))
        }
        "RayCluster" => object("ray.io/v1", kind, "a", ray()),
        "RayJob" => object("ray.io/v1", kind, "a", json!({"rayClusterSpec": ray()})),
        "RayService" => object("ray.io/v1", kind, "a", json!({"rayClusterConfig": ray()})),
        "TrainJob" => object(TRAINER, kind, "a", json!({"runtimeRef": {"name": "torch"}, "trainer": {}})),
        "TrainingRuntime" => {
            let policy = json!({"mpi": {}});
            object(
                TRAINER,
                kind,
                "a",
                json!({"mlPolicy": policy, "template": {"spec": {"replicatedJobs": [job]}}}),
            )
        }
        _ => panic!("{kind}"),
    }
}

#[test]
fn values_that_a_field_does_not_take_are_refused_in_written_objects_only() {
    let none = Value::Null;
    let rows = [
        ("MPIJob", "runPolicy/cleanPodPolicy", json!("Some"), "`Some` does not exist; write"),
        ("MPIJob", "mpiImplementation", json!("OpenMP"), "`OpenMP` does not exist; write `OpenMPI`"),
        ("MPIJob", "slotsPerWorker", json!(-1), "`-1` is negative; write zero or more"),
        ("MPIJob", "mpiReplicaSpecs/Worker/replicas", json!(0), "`0` is less than 1; write 1 or more"),
        ("MPIJob", "mpiReplicaSpecs/Worker/restartPolicy", json!("Always"), "`Always` does not exist"),
        (
            "PyTorchJob",
            "nprocPerNode",
            json!(8),
            "`8` is no text, so an API server refuses it; write it in quotes",
        ),
        ("PyTorchJob", "pytorchReplicaSpecs/Worker/restartPolicy", json!("Onfailure"), "write `OnFailure`"),
        ("JobSet", "successPolicy/operator", json!("Each"), "`Each` does not exist; write one of All, Any"),
        ("LeaderWorkerSet", "leaderWorkerTemplate/restartPolicy", json!("Always"), "`Always` does not exist"),
        (
            "LeaderWorkerSet",
            "leaderWorkerTemplate/subGroupPolicy/subGroupSize",
            json!(0),
            "`0` is less than 1",
        ),
        ("LeaderWorkerSet", "networkConfig/subdomainPolicy", json!("shared"), "write `Shared`"),
        ("Job", "maxRetry", json!(-1), "`-1` is negative"),
        ("Job", "minSuccess", json!(0), "`0` is less than 1"),
        ("Job", "tasks/0/topologyPolicy", json!("strict"), "`strict` does not exist"),
        ("Job", "tasks/0/partitionPolicy/totalPartitions", json!(0), "`0` is less than 1"),
        ("RayCluster", "autoscalerOptions/upscalingMode", json!("Fast"), "`Fast` does not exist"),
        ("RayCluster", "headGroupSpec/rayStartParams/num-gpus", json!(1), "`1` is no text"),
        ("RayCluster", "workerGroupSpecs/0/groupName", none.clone(), "missing; add it"),
        ("RayJob", "rayClusterSpec/workerGroupSpecs/0/rayStartParams/num-gpus", json!(1), "`1` is no text"),
        ("RayJob", "activeDeadlineSeconds", json!(0), "`0` is less than 1"),
        ("RayService", "rayClusterDeletionDelaySeconds", json!(-1), "`-1` is negative"),
        ("TrainJob", "runtimeRef/name", none.clone(), "missing; add it"),
        ("TrainJob", "runtimeRef/kind", json!("ClusterRuntime"), "`ClusterRuntime` does not exist"),
        ("TrainJob", "trainer/numNodes", json!(-1), "`-1` is negative"),
        ("TrainJob", "trainer/numProcPerNode", json!(0), "`0` is less than 1"),
        (
            "TrainJob",
            "trainer/numProcPerNode",
            json!("all"),
            "`all` does not exist; write one of auto, cpu, gpu",
        ),
        (
            "TrainJob",
            "trainer/resourcesPerNode",
            json!({"limits": {"gpu": 8}}),
            "did you mean nvidia.com/gpu?",
        ),
        ("TrainingRuntime", "mlPolicy/mpi/numProcPerNode", json!(0), "`0` is less than 1"),
        ("TrainingRuntime", "template", none, "missing; add it"),
    ];
    for (kind, place, value, told) in rows {
        let mut object = sound(kind);
        read(std::slice::from_ref(&object));
        let path = place.split('/').fold(&mut object["spec"], |at, field| match field.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[field],
        });
        *path = value;
        let found = refused(&object);
        let last = place.rsplit('/').next().unwrap_or_default();
        let is_told = |one: &String| one.contains(last) && one.contains(told);
        assert!(found.iter().any(is_told), "{kind} {place}: {found:#?}");
        read(&[stored(object, None)]);
    }
}

#[test]
fn a_cron_job_without_a_spec_is_refused() {
    let mut job = object("batch/v1", "CronJob", "c", json!({}));
    job["spec"] = Value::Null;
    let found = refused(&job);
    for field in ["schedule", "jobTemplate"] {
        assert!(
            found.iter().any(|one| one.contains(&format!("spec.{field}: missing; add it"))),
            "{found:#?}"
        );
    }
}

#[test]
fn mistakes_in_the_templates_of_a_written_runtime_are_told_whether_a_train_job_uses_it_or_not() {
    let mut runtime = sound("TrainingRuntime");
    runtime["spec"]["mlPolicy"]["torch"] = json!({});
    let job = &mut runtime["spec"]["template"]["spec"]["replicatedJobs"][0];
    job["replicas"] = json!(2);
    job["template"]["metadata"]["labels"]["trainer.kubeflow.org/trainjob-ancestor-step"] = json!("trainer");
    let pods = &mut job["template"]["spec"]["template"]["spec"];
    pods["restartPolcy"] = json!("Never");
    pods["containers"][0]["resources"] = json!({"limits": {"cpu": "many", "gpus": "8"}});
    let alone = refused(&runtime);
    let mut user = sound("TrainJob");
    user["spec"]["runtimeRef"] = json!({"kind": "TrainingRuntime", "name": "a"});
    let used = refused(&json!({"apiVersion": "v1", "kind": "List", "items": [runtime, user]}));
    let place = "spec.template.spec.replicatedJobs[0]";
    let inner = format!("{place}.template.spec.template.spec");
    for told in [
        "spec.mlPolicy: a runtime has one policy, and this has torch and mpi; keep one of them".to_owned(),
        format!("{place}.replicas: `2` is not 1, so the operator refuses the runtime"),
        format!("{inner}.restartPolcy: unknown field; did you mean `restartPolicy`?"),
        format!("{inner}.containers: none has the name `node`, so the operator refuses the runtime"),
        format!("{inner}.containers[0].resources.limits.cpu: "),
        format!("{inner}.containers[0].resources.limits.gpus: "),
    ] {
        let is_told = |one: &String| one.contains(&format!("TrainingRuntime default/a: {told}"));
        assert!(alone.iter().any(is_told), "{told} is not in {alone:#?}");
        assert!(used.iter().any(is_told), "{told} is not in {used:#?}");
    }
    read(&[stored(runtime, None)]);
}

#[test]
fn a_field_of_a_stored_runtime_that_this_version_does_not_know_is_a_note() {
    let mut runtime = sound("TrainingRuntime");
    runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["newer"] = json!(1);
    let mut user = sound("TrainJob");
    user["spec"]["runtimeRef"] = json!({"kind": "TrainingRuntime", "name": "a"});
    user["metadata"]["name"] = json!("llm");
    let manifest = read(&[stored(runtime, None), user]);
    let told = "TrainJob default/llm: (runtime) spec.replicatedJobs[0].newer: this version does not know the field, and ignores it";
    assert!(has(&manifest, told), "{:?}", manifest.notes);
    assert_eq!(manifest.pods.len(), 1);
}
