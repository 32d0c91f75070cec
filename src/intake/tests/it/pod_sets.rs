//! Tests kinds of other projects with pod templates: their pods, their gangs, and what is said where they are not read.

use poolwright_core::PodPhase;
use poolwright_intake::Manifest;
use poolwright_intake::manifest::parse;
use serde_json::{Value, json};

use crate::json_kit::gangs;

fn read(object: &Value) -> Manifest {
    read_all(std::slice::from_ref(object))
}

fn read_all(objects: &[Value]) -> Manifest {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    parse("job.yaml", &list.to_string()).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn errors(object: &Value) -> Vec<String> {
    let errors = parse("job.yaml", &object.to_string()).expect_err("it has problems");
    errors.iter().map(ToString::to_string).collect()
}

fn names(manifest: &Manifest) -> Vec<String> {
    manifest.pods.iter().map(|pod| pod.key.to_string()).collect()
}

fn template(gpus: u32) -> Value {
    json!({"spec": {"containers": [{"name": "pytorch", "image": "x", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}})
}

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn pytorch(workers: u32) -> Value {
    object(
        "kubeflow.org/v1",
        "PyTorchJob",
        "train",
        json!({"pytorchReplicaSpecs": {
            "Master": {"replicas": 1, "restartPolicy": "OnFailure", "template": template(8)},
            "Worker": {"replicas": workers, "template": template(8)}}}),
    )
}

#[test]
fn a_training_job_of_kubeflow_is_a_gang_of_all_its_pods() {
    let manifest = read(&pytorch(3));
    let expected = [
        "default/train-master-0",
        "default/train-worker-0",
        "default/train-worker-1",
        "default/train-worker-2",
    ];
    assert_eq!(names(&manifest), expected);
    assert!(manifest.pods.iter().all(|pod| pod.spec.requests.get("nvidia.com/gpu") == 8));
    assert_eq!(gangs(&manifest), [("PyTorchJob default/train".to_owned(), 4, 4)]);
    assert_eq!(manifest.pods[1].labels["training.kubeflow.org/replica-type"], "worker");
    assert!(manifest.unread.is_empty() && manifest.notes.is_empty(), "{:?}", manifest.notes);
    for (kind, field, role, container) in [
        ("TFJob", "tfReplicaSpecs", "Chief", "tensorflow"),
        ("XGBoostJob", "xgbReplicaSpecs", "Master", "xgboost"),
        ("PaddleJob", "paddleReplicaSpecs", "Master", "paddle"),
        ("JAXJob", "jaxReplicaSpecs", "Worker", "jax"),
    ] {
        let template = json!({"spec": {"containers": [{"name": container, "image": "x"}]}});
        let mut roles = json!({"Worker": {"replicas": 1, "template": template}});
        if role == "Worker" {
            roles[role]["replicas"] = json!(2);
        } else {
            roles[role] = json!({"replicas": 1, "template": template});
        }
        let spec = json!({field: roles});
        let manifest = read(&object("kubeflow.org/v1", kind, "train", spec));
        assert_eq!(gangs(&manifest), [(format!("{kind} default/train"), 2, 2)]);
    }
    let specs = json!({"mpiReplicaSpecs": {"Launcher": {"template": template(0)}, "Worker": {"replicas": 2, "template": template(1)}}});
    let manifest = read(&object("kubeflow.org/v2beta1", "MPIJob", "train", specs));
    assert_eq!(gangs(&manifest), [("MPIJob default/train".to_owned(), 3, 3)]);
}

#[test]
fn a_training_job_starts_with_as_many_pods_as_its_policies_say() {
    let mut elastic = pytorch(7);
    elastic["spec"]["elasticPolicy"] = json!({"minReplicas": 2, "maxReplicas": 7});
    assert_eq!(gangs(&read(&elastic))[0].1, 3, "the master and two workers");
    let mut least = pytorch(7);
    least["spec"]["runPolicy"] = json!({"schedulingPolicy": {"minAvailable": 4}});
    assert_eq!(gangs(&read(&least))[0].1, 4);
    let mut suspended = pytorch(7);
    suspended["spec"]["runPolicy"] = json!({"suspend": true});
    assert_eq!(read(&suspended).notes, ["PyTorchJob default/train: it is suspended and makes no pods now"]);
}

#[test]
fn a_training_job_with_mistakes_is_refused_with_all_of_them() {
    let mut job = pytorch(2);
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["replica"] = json!(4);
    job["spec"]["pytorchReplicaSpecs"]["Master"]["replicas"] = json!("one");
    let found = errors(&job);
    assert!(found[0].contains("Worker.replica: unknown field; did you mean `replicas`?"), "{found:?}");
    assert!(found[1].contains("Master.replicas: `\"one\"` is not a number of pods"), "{found:?}");
    let mut job = pytorch(2);
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["contianers"] = json!([]);
    let found = errors(&job);
    assert!(
        found[0].contains("spec.pytorchReplicaSpecs.Worker.template.spec.contianers: unknown field"),
        "{found:?}"
    );
}

#[test]
fn the_pods_that_a_training_job_has_are_not_counted_twice() {
    let owner = |uid: &str| json!([{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": uid, "controller": true}]);
    let pod = |uid: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-worker-1", "uid": "p", "ownerReferences": owner(uid)},
            "spec": {"nodeName": "n", "containers": [{"image": "x", "name": "main"}]}, "status": {"phase": "Running"}})
    };
    let mut stored = pytorch(2);
    stored["metadata"]["uid"] = json!("u-1");
    for (job, pod) in [(stored, pod("u-1")), (pytorch(2), pod("u-1")), (pytorch(2), pod(""))] {
        let manifest = read_all(&[job, pod]);
        let expected = ["default/train-master-0", "default/train-worker-0", "default/train-worker-1"];
        assert_eq!(names(&manifest), expected);
        assert_eq!(
            gangs(&manifest),
            [("PyTorchJob default/train".to_owned(), 3, 3)],
            "the one that runs counts"
        );
        assert!(matches!(manifest.pods[2].phase, PodPhase::Bound { .. }));
    }
}

#[test]
fn each_group_of_a_leader_worker_set_is_a_gang() {
    let set = object(
        "leaderworkerset.x-k8s.io/v1",
        "LeaderWorkerSet",
        "llm",
        json!({"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template(8)}}),
    );
    let manifest = read(&set);
    let expected = ["llm-0", "llm-1", "llm-0-1", "llm-0-2", "llm-1-1", "llm-1-2"];
    assert_eq!(names(&manifest), expected.map(|name| format!("default/{name}")));
    let gang = |at: u32| (format!("group {at} of LeaderWorkerSet default/llm"), 3, 3);
    assert_eq!(gangs(&manifest), [gang(0), gang(1)]);
}

#[test]
fn a_ray_cluster_has_its_head_and_workers_and_its_autoscaler_needs_only_the_least() {
    let cluster = |more: Value| {
        let mut spec = json!({"headGroupSpec": {"template": template(0)}, "workerGroupSpecs": [
            {"groupName": "gpu", "replicas": 3, "minReplicas": 1, "maxReplicas": 5, "numOfHosts": 2, "template": template(4)}]});
        for (field, value) in more.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        spec
    };
    let manifest = read(&object("ray.io/v1", "RayCluster", "ray", cluster(json!({}))));
    assert_eq!(gangs(&manifest), [("RayCluster default/ray".to_owned(), 7, 7)]);
    let scaled =
        read(&object("ray.io/v1", "RayCluster", "ray", cluster(json!({"enableInTreeAutoscaling": true}))));
    assert_eq!(gangs(&scaled), [("RayCluster default/ray".to_owned(), 3, 7)]);
    assert_eq!(scaled.pods[0].spec.requests.get("cpu"), 500, "the autoscaler beside the head");
    let job = object(
        "ray.io/v1",
        "RayJob",
        "tune",
        json!({"entrypoint": "x", "rayClusterSpec": cluster(json!({}))}),
    );
    let manifest = read(&job);
    assert_eq!(manifest.pods.len(), 8, "the submitter too: {:?}", names(&manifest));
    let gang = ("RayJob default/tune".to_owned(), 8, 8);
    assert_eq!(gangs(&manifest), [gang], "no node is bought for the submitter of a cluster without room");
    let service = object("ray.io/v1", "RayService", "serve", json!({"rayClusterConfig": cluster(json!({}))}));
    assert_eq!(read(&service).pods.len(), 7);
}

#[test]
fn a_ray_job_is_submitted_by_a_pod_by_a_container_of_the_head_or_by_neither() {
    let job = |more: Value| {
        let mut spec =
            json!({"entrypoint": "x", "rayClusterSpec": {"headGroupSpec": {"template": template(1)}}});
        for (field, value) in more.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        object("ray.io/v1", "RayJob", "tune", spec)
    };
    let asks = |more: Value| {
        let manifest = read(&job(more));
        let of = |pod: &poolwright_core::Pod| (pod.key.name().into_owned(), pod.spec.requests.get("cpu"));
        manifest.pods.iter().map(of).collect::<Vec<_>>()
    };
    let (head, submitter) = ("tune-head-0".to_owned(), "tune-submitter-0".to_owned());
    for mode in [json!({}), json!({"submissionMode": "K8sJobMode"})] {
        assert_eq!(asks(mode), [(head.clone(), 0), (submitter.clone(), 500)]);
    }
    assert_eq!(asks(json!({"submissionMode": "SidecarMode"})), [(head.clone(), 500)]);
    for mode in ["HTTPMode", "InteractiveMode"] {
        assert_eq!(asks(json!({"submissionMode": mode})), [(head.clone(), 0)], "{mode}");
    }
    let there = |mode: &str| json!({"submissionMode": mode, "clusterSelector": {"ray.io/cluster": "shared"}});
    assert_eq!(asks(there("K8sJobMode")), [(submitter, 500)], "its cluster is there, its submitter is not");
    assert!(asks(there("HTTPMode")).is_empty());
}

#[test]
fn a_ray_job_that_its_operator_refuses_is_refused() {
    let job = |fields: Value| {
        let mut spec = json!({"rayClusterSpec": {"headGroupSpec": {"template": template(1)}}});
        for (field, value) in fields.as_object().expect("fields") {
            spec[field] = value.clone();
        }
        errors(&object("ray.io/v1", "RayJob", "tune", spec))
    };
    let found = job(json!({"submissionMode": "SidecarMod"}));
    assert!(
        found[0].ends_with("spec.submissionMode: `SidecarMod` is not a mode; did you mean `SidecarMode`?")
    );
    let found = job(json!({"submissionMode": "SidecarMode", "submitterPodTemplate": template(0)}));
    assert!(
        found[0].ends_with("spec.submitterPodTemplate: KubeRay refuses it with SidecarMode; remove it"),
        "{found:?}"
    );
    let found =
        job(json!({"submissionMode": "SidecarMode", "clusterSelector": {"ray.io/cluster": "shared"}}));
    assert!(found[0].contains("spec.clusterSelector: KubeRay refuses it with SidecarMode"), "{found:?}");
    let found = job(json!({"submissionMode": "InteractiveMode", "backoffLimit": 2}));
    assert!(
        found[0].contains("spec.backoffLimit: KubeRay refuses retries with InteractiveMode"),
        "{found:?}"
    );
}

#[test]
fn all_that_an_operator_refuses_of_a_ray_job_is_told_at_once() {
    let mut head = template(1);
    head["spec"]["restartPolicy"] = json!("Always");
    let worker = json!({"groupName": "w", "minReplicas": 3, "maxReplicas": 1, "template": template(1)});
    let spec = json!({"submissionMode": "SidecarMode", "submitterPodTemplate": template(0),
        "submitterConfig": {"backoffLimit": 1},
        "rayClusterSpec": {"headGroupSpec": {"template": head}, "workerGroupSpecs": [worker]}});
    let found = errors(&object("ray.io/v1", "RayJob", "tune", spec));
    for part in [
        "spec.submitterPodTemplate: KubeRay refuses it",
        "spec.submitterConfig: KubeRay refuses it",
        "spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy: KubeRay refuses other policies",
        "spec.rayClusterSpec.workerGroupSpecs[0].maxReplicas: it is less than minReplicas (3)",
    ] {
        assert!(found.iter().any(|one| one.contains(part)), "{part}: {found:?}");
    }
}

#[test]
fn a_job_of_volcano_starts_with_its_least_number_and_is_no_job_of_kubernetes() {
    let job = object(
        "batch.volcano.sh/v1alpha1",
        "Job",
        "mpi",
        json!({"minAvailable": 3, "tasks": [{"name": "worker", "replicas": 4, "template": template(1)}]}),
    );
    let manifest = read(&job);
    assert_eq!(gangs(&manifest), [("Job default/mpi".to_owned(), 3, 4)]);
    assert_eq!(manifest.pods[0].scheduler, "volcano");
}

#[test]
fn a_job_set_is_a_gang_with_the_pods_that_its_jobs_have() {
    let set = json!({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
        "metadata": {"name": "train", "uid": "u-set"},
        "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec":
            {"parallelism": 2, "completions": 2, "template": template(8)}}}]}});
    assert_eq!(gangs(&read(&set)), [("JobSet default/train".to_owned(), 4, 4)]);
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train-w-0", "uid": "u-job",
            "ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "u-set", "controller": true}]},
        "spec": {"parallelism": 2, "completions": 2, "template": template(8)}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "train-w-0-0-x", "uid": "u-pod",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train-w-0", "uid": "u-job", "controller": true}]},
        "spec": {"containers": [{"image": "x", "name": "main"}]}, "status": {"phase": "Pending"}});
    let manifest = read_all(&[set, job, pod]);
    assert_eq!(gangs(&manifest), [("JobSet default/train".to_owned(), 4, 4)], "{:?}", names(&manifest));
}

#[test]
fn a_train_job_is_the_job_set_of_its_runtime() {
    let runtime = object(
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        "torch",
        json!({"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec":
            {"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}}}}]}}}),
    );
    let job = object(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        "llm",
        json!({"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 3, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}}}),
    );
    let manifest = read_all(&[job, runtime]);
    assert_eq!(gangs(&manifest), [("TrainJob default/llm".to_owned(), 3, 3)], "{:?}", manifest.notes);
    assert!(manifest.pods.iter().all(|pod| pod.spec.requests.get("nvidia.com/gpu") == 8));
    assert!(manifest.unread.is_empty());
}

#[test]
fn a_rollout_is_like_a_deployment() {
    let rollout = object(
        "argoproj.io/v1alpha1",
        "Rollout",
        "web",
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template(1)}),
    );
    let manifest = read(&rollout);
    assert_eq!((manifest.pods.len(), manifest.pod_groups.len()), (2, 0));
    assert!(manifest.pods[0].duration.is_service);
}

#[test]
fn an_object_that_makes_pods_and_is_not_read_is_named_with_the_next_step() {
    let unread = [
        ("example.com/v1", "Trainer", json!({"deep": [{"podTemplate": template(8)}]})),
        (
            "serving.kserve.io/v1beta1",
            "InferenceService",
            json!({"predictor": {"model": {"storageUri": "s3://m"}}}),
        ),
        ("trainer.kubeflow.org/v1alpha1", "TrainJob", json!({"runtimeRef": {"name": "torch"}})),
        ("argoproj.io/v1alpha1", "Workflow", json!({"templates": [{"container": {"image": "x"}}]})),
        ("serving.knative.dev/v1", "Service", json!({"template": template(1)})),
        ("sparkoperator.k8s.io/v1beta2", "SparkApplication", json!({"executor": {"instances": 8}})),
    ];
    for (version, kind, spec) in unread {
        let manifest = read(&object(version, kind, "a", spec));
        assert_eq!(manifest.unread, [format!("{kind} default/a")]);
        let note = &manifest.notes[0];
        assert!(
            note.contains(&format!("{version} {kind} is not read")) && note.contains("give these pods"),
            "{note}"
        );
    }
    let mut ends = template(8);
    ends["spec"]["restartPolicy"] = json!("OnFailure");
    let nightly = object(
        "batch/v1",
        "CronJob",
        "nightly",
        json!({"schedule": "0 3 * * *",
        "jobTemplate": {"spec": {"template": ends}}}),
    );
    assert_eq!(read(&nightly).unread, ["CronJob default/nightly"]);
    let mut stored = nightly;
    stored["metadata"]["uid"] = json!("u");
    assert!(read(&stored).unread.is_empty(), "the Jobs that it made are objects of their own");
}

#[test]
fn an_object_whose_pods_are_there_or_that_makes_none_is_not_missing() {
    let workflow = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "a", "uid": "u"},
        "spec": {"templates": [{"container": {"image": "x"}}]}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-1", "uid": "p", "ownerReferences":
            [{"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": "a", "uid": "u", "controller": true}]},
        "spec": {"containers": [{"image": "x", "name": "main"}]}});
    assert!(read_all(&[workflow.clone(), pod]).unread.is_empty());
    let mut ended = workflow;
    ended["status"] = json!({"phase": "Succeeded"});
    assert!(read(&ended).unread.is_empty());
    let policy = object(
        "kyverno.io/v1",
        "ClusterPolicy",
        "limits",
        json!({"rules": [{"validate": {"pattern": template(1)}}]}),
    );
    assert!(read(&policy).unread.is_empty());
    let runtime = object(
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        "torch",
        json!({"template": {"spec": {"replicatedJobs": [{"name": "node", "template": {"spec": {"template": template(1)}}}]}}}),
    );
    assert!(read(&runtime).unread.is_empty());
}
