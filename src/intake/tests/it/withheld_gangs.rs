//! Tests of gangs of which a ResourceQuota withholds pods: a gang waits for the pods that it lacks itself, and for no others.

use poolwright_core::GroupRole;
use poolwright_intake::Manifest;
use serde_json::{Value, json};

use crate::json_kit::{ending, gangs, names, needs, object, pod, read, stored};

/// A template of a pod with so many GPUs.
fn gpus(count: u32) -> Value {
    json!({"spec": {"containers": [{"image": "x", "name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": count}}}]}})
}

/// A template of the master of a PyTorchJob.
fn master() -> Value {
    json!({"spec": {"containers": [{"image": "x", "name": "pytorch"}]}})
}

fn gpu() -> Value {
    gpus(1)
}

/// Reads an object in a namespace with this quota.
fn limited(hard: Value, job: Value) -> Manifest {
    read(&[object("v1", "ResourceQuota", "team", json!({"hard": hard})), job])
}

fn groups(replicas: u32, size: u32) -> Value {
    let spec = json!({"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": gpu()}});
    object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm", spec)
}

/// The gang of a group of the LeaderWorkerSet: how many pods start together, and how many there are.
fn group(number: u32, least: u32, there: usize) -> (String, u32, usize) {
    (format!("group {number} of LeaderWorkerSet default/llm"), least, there)
}

/// A job of Ray with a head, two workers with a GPU, and a pod that submits it.
fn ray_job() -> Value {
    let workers = json!([{"groupName": "w", "replicas": 2, "template": gpu()}]);
    let cluster = json!({"headGroupSpec": {"template": ending()}, "workerGroupSpecs": workers});
    object("ray.io/v1", "RayJob", "tune", json!({"entrypoint": "x", "rayClusterSpec": cluster}))
}

#[test]
fn a_group_that_is_complete_does_not_wait_for_a_pod_of_another_group() {
    let manifest = limited(json!({"requests.nvidia.com/gpu": "5"}), groups(3, 2));
    assert_eq!(gangs(&manifest), [group(0, 2, 2), group(1, 2, 2), group(2, 2, 1)]);
    let manifest = limited(json!({"pods": "5"}), groups(2, 3));
    assert_eq!(gangs(&manifest), [group(0, 3, 3), group(1, 3, 2)]);
}

#[test]
fn the_leaders_of_all_groups_come_before_the_workers() {
    let manifest = limited(json!({"pods": "4"}), groups(3, 3));
    assert_eq!(names(&manifest), ["llm-0", "llm-0-1", "llm-1", "llm-2"]);
    assert_eq!(gangs(&manifest), [group(0, 3, 2), group(1, 3, 1), group(2, 3, 1)], "none is complete");
}

#[test]
fn a_ray_cluster_does_not_wait_for_the_pod_that_submits_its_job() {
    let of = |hard: Value| gangs(&limited(hard, ray_job()));
    let gang = |least: u32, there: usize| [("RayJob default/tune".to_owned(), least, there)];
    assert_eq!(of(json!({"pods": "4"})), gang(4, 4), "no room for the submitter alone");
    assert_eq!(of(json!({"pods": "3"})), gang(3, 3));
    assert_eq!(of(json!({"pods": "2"})), gang(3, 2), "a worker is missing");
    let without_worker = of(json!({"requests.nvidia.com/gpu": "1"}));
    assert_eq!(without_worker, gang(4, 3), "the submitter does not stand in for the worker");
}

#[test]
fn the_launcher_of_an_mpi_job_comes_after_its_workers() {
    let job = |policy: Value| {
        let roles = json!({"Launcher": {"template": ending()}, "Worker": {"replicas": 2, "template": gpu()}});
        let spec = json!({"launcherCreationPolicy": policy, "mpiReplicaSpecs": roles});
        limited(json!({"pods": "2"}), object("kubeflow.org/v2beta1", "MPIJob", "train", spec))
    };
    let gang = |least: u32| [("MPIJob default/train".to_owned(), least, 2)];
    let at_once = job(json!("AtStartup"));
    assert_eq!(names(&at_once), ["train-worker-0", "train-worker-1"]);
    assert_eq!(gangs(&at_once), gang(3));
    assert_eq!(gangs(&job(json!("WaitForWorkersReady"))), gang(2), "its workers run without it");
}

#[test]
fn an_elastic_job_starts_with_its_least_number_if_a_quota_withholds_the_rest() {
    let roles = json!({"Master": {"template": master()}, "Worker": {"replicas": 3, "template": gpu()}});
    let spec = json!({"elasticPolicy": {"minReplicas": 1}, "pytorchReplicaSpecs": roles});
    let job = object("kubeflow.org/v1", "PyTorchJob", "train", spec);
    let gang = |there: usize| [("PyTorchJob default/train".to_owned(), 2, there)];
    assert_eq!(gangs(&limited(json!({"pods": "3"}), job.clone())), gang(3));
    assert_eq!(gangs(&limited(json!({"pods": "1"}), job)), gang(1));
}

#[test]
fn the_jobs_of_a_job_set_that_start_together_do_not_wait_for_one_that_follows() {
    let job = |name: &str, after: Value| {
        let spec = json!({"parallelism": 2, "completions": 2, "template": ending()});
        json!({"name": name, "dependsOn": after, "template": {"spec": spec}})
    };
    let after = json!([{"name": "prepare", "status": "Complete"}]);
    let jobs = [job("prepare", Value::Null), job("train", Value::Null), job("report", after)];
    let mut set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "llm", json!({"replicatedJobs": jobs}));
    set["status"] = json!({"replicatedJobsStatus": [{"name": "prepare", "succeeded": 1}]});
    let gang = |there: usize| [("JobSet default/llm".to_owned(), 2, there)];
    assert_eq!(gangs(&limited(json!({"pods": "3"}), set.clone())), gang(2), "a pod of `report` is missing");
    assert_eq!(gangs(&limited(json!({"pods": "1"}), set)), gang(1), "a pod of `train` is missing");
}

#[test]
fn a_train_job_waits_for_the_pods_that_a_quota_withholds() {
    let job = json!({"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}});
    let replicated = json!([{"name": "node", "template": {"spec": job}}]);
    let runtime = object(
        "trainer.kubeflow.org/v1alpha1",
        "ClusterTrainingRuntime",
        "torch",
        json!({"mlPolicy": {"numNodes": 3}, "template": {"spec": {"replicatedJobs": replicated}}}),
    );
    let spec = json!({"runtimeRef": {"name": "torch"}});
    let job = object("trainer.kubeflow.org/v1alpha1", "TrainJob", "llm", spec);
    let quota = object("v1", "ResourceQuota", "team", json!({"hard": {"pods": "2"}}));
    assert_eq!(gangs(&read(&[quota, runtime, job])), [("TrainJob default/llm".to_owned(), 3, 2)]);
}

#[test]
fn a_pod_group_starts_with_its_least_number_if_a_quota_withholds_the_rest() {
    let spec = json!({"schedulingPolicy": {"gang": {"minCount": 2}}});
    let group = object("scheduling.k8s.io/v1alpha2", "PodGroup", "train", spec);
    let pod = |name: &str| {
        let spec = json!({"containers": [{"image": "x", "name": "a"}], "schedulingGroup": {"podGroupName": "train"}});
        object("v1", "Pod", name, spec)
    };
    let quota = object("v1", "ResourceQuota", "team", json!({"hard": {"pods": "2"}}));
    let manifest = read(&[quota, group, pod("a"), pod("b"), pod("c")]);
    assert_eq!(names(&manifest), ["a", "b"]);
    assert_eq!(gangs(&manifest), [("PodGroup default/train".to_owned(), 2, 2)]);
}

/// Reads a job in a namespace with a quota of four GPUs. Its first role asks for eight.
fn without_its_head(version: &str, kind: &str, mut spec: Value, more: Value) -> Manifest {
    spec.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    limited(json!({"requests.nvidia.com/gpu": "4"}), object(version, kind, "train", spec))
}

#[test]
fn no_pods_of_a_training_job_start_without_the_master_or_launcher_that_a_quota_refuses() {
    let elastic = || json!({"elasticPolicy": {"minReplicas": 1}});
    let least = || json!({"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}});
    let roles =
        |head: &str| json!({head: {"template": gpus(8)}, "Worker": {"replicas": 3, "template": gpu()}});
    for (version, kind, field, head, policy) in [
        ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", "Master", elastic()),
        ("kubeflow.org/v1", "PyTorchJob", "pytorchReplicaSpecs", "Master", least()),
        ("kubeflow.org/v1", "TFJob", "tfReplicaSpecs", "Chief", least()),
        ("kubeflow.org/v2beta1", "MPIJob", "mpiReplicaSpecs", "Launcher", least()),
    ] {
        let mut spec = json!({field: roles(head)});
        if kind == "TFJob" {
            for role in [head, "Worker"] {
                spec[field][role]["template"]["spec"]["containers"][0]["name"] = json!("tensorflow");
            }
        }
        let manifest = without_its_head(version, kind, spec.clone(), policy.clone());
        assert_eq!(names(&manifest), ["train-worker-0", "train-worker-1", "train-worker-2"]);
        let gang = |least: u32, there: usize| [(format!("{kind} default/train"), least, there)];
        assert_eq!(gangs(&manifest), gang(4, 3), "{kind}");
        let head = format!("its {}", head.to_lowercase());
        assert_eq!(needs(&manifest), [[head.as_str()]], "{kind}: two pods are enough, but not without it");
        let mut whole = spec;
        whole.as_object_mut().expect("a map").extend(policy.as_object().expect("a map").clone());
        let whole = limited(json!({"requests.nvidia.com/gpu": "11"}), object(version, kind, "train", whole));
        assert_eq!((gangs(&whole), needs(&whole)), (gang(2, 4).to_vec(), vec![vec![head]]), "{kind}");
    }
}

#[test]
fn a_ray_cluster_that_scales_makes_no_worker_while_a_quota_refuses_its_head() {
    let workers = json!([{"groupName": "w", "replicas": 2, "template": gpu()}]);
    let spec = json!({"headGroupSpec": {"template": gpus(8)}, "workerGroupSpecs": workers});
    let scales = json!({"enableInTreeAutoscaling": true});
    let manifest = without_its_head("ray.io/v1", "RayCluster", spec, scales);
    assert_eq!((names(&manifest), gangs(&manifest)), (Vec::new(), Vec::new()));
    assert_eq!(manifest.refused[0].pods, 3);
    let start = "RayCluster default/train: 3 of its 3 pods cannot be created and are not planned, because ResourceQuota `team` allows no \
                 more requests.nvidia.com/gpu: ";
    assert!(manifest.notes.iter().any(|note| note.starts_with(start)), "{:?}", manifest.notes);
}

#[test]
fn a_ray_cluster_that_scales_waits_for_the_least_of_each_group() {
    let group = |name: &str, gpus_each: u32| json!({"groupName": name, "replicas": 3, "minReplicas": 1, "template": gpus(gpus_each)});
    let spec = json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": ending()},
        "workerGroupSpecs": [group("large", 8), group("small", 1)]});
    let of = |quota: &str| {
        let cluster = object("ray.io/v1", "RayCluster", "ray", spec.clone());
        let manifest = limited(json!({"requests.nvidia.com/gpu": quota}), cluster);
        assert_eq!(needs(&manifest), [["its head", "its large worker", "its small worker"]]);
        let of_role = |role: &GroupRole| manifest.pods.iter().filter(|pod| role.has(pod)).count();
        let there: Vec<usize> = manifest.pod_groups[0].roles.iter().map(of_role).collect();
        (gangs(&manifest), there)
    };
    let gang = |least: u32, there: usize| vec![("RayCluster default/ray".to_owned(), least, there)];
    assert_eq!(of("27"), (gang(3, 7), vec![1, 3, 3]));
    assert_eq!(of("11"), (gang(3, 5), vec![1, 1, 3]), "one large worker is enough");
    assert_eq!(of("3"), (gang(7, 4), vec![1, 0, 3]), "three small ones do not stand in for a large one");
}

#[test]
fn a_job_of_volcano_waits_for_the_least_of_each_task_unless_the_job_itself_needs_fewer() {
    let tasks = json!([{"name": "head", "replicas": 1, "template": gpus(8)},
        {"name": "worker", "replicas": 4, "minAvailable": 2, "template": gpu()}]);
    let of = |more: Value| {
        let manifest = without_its_head("batch.volcano.sh/v1alpha1", "Job", json!({"tasks": tasks}), more);
        (gangs(&manifest), needs(&manifest).concat())
    };
    let gang = |least: u32| vec![("Job default/train".to_owned(), least, 4)];
    let needed = ["its head", "2 pods of its role `worker`"].map(str::to_owned).to_vec();
    assert_eq!(of(json!({})), (gang(5), needed));
    assert_eq!(of(json!({"minAvailable": 2})), (gang(2), vec![]));
}

#[test]
fn a_group_whose_leader_a_quota_refuses_has_no_workers_that_count() {
    let mut set = groups(2, 3);
    set["spec"]["leaderWorkerTemplate"]["leaderTemplate"] = gpus(8);
    let quota = object("v1", "ResourceQuota", "team", json!({"hard": {"requests.nvidia.com/gpu": "11"}}));
    let manifest = read(&[quota, set, object("v1", "Pod", "other", gpu()["spec"].clone())]);
    assert_eq!(names(&manifest), ["llm-0", "llm-0-1", "llm-0-2", "other"], "the other pod gets the last GPU");
    assert_eq!(gangs(&manifest), [group(0, 3, 3)]);
    assert_eq!(manifest.refused[0].pods, 3);
}

/// A quota that is used up, as an API server prints it.
fn full(hard: Value) -> Value {
    let mut quota = stored(object("v1", "ResourceQuota", "team", json!({"hard": hard})), None);
    quota["status"] = json!({"hard": hard, "used": hard});
    quota
}

#[test]
fn a_quota_counts_all_pods_of_the_groups_that_a_leader_worker_set_has() {
    let there = |replicas: u32| {
        let mut set = stored(groups(replicas, 3), None);
        set["status"] = json!({"replicas": 2});
        set
    };
    for hard in [json!({"pods": "6"}), json!({"requests.nvidia.com/gpu": "6"})] {
        let manifest = read(&[full(hard.clone()), there(2)]);
        assert_eq!(gangs(&manifest), [group(0, 3, 3), group(1, 3, 3)], "they are there, and counted");
        assert_eq!(manifest.refused, []);
        let manifest = read(&[full(hard.clone()), there(3)]);
        assert_eq!(gangs(&manifest), [group(0, 3, 3), group(1, 3, 3)], "{:?}", manifest.notes);
        assert_eq!(manifest.refused[0].pods, 3, "the third group");
        // What counts instead of the stored object keeps its groups.
        let manifest = read(&[full(hard), there(2), groups(3, 3)]);
        assert_eq!((names(&manifest).len(), manifest.refused[0].pods), (6, 3));
    }
}

#[test]
fn a_quota_counts_all_pods_of_the_jobs_that_a_job_set_has() {
    let job = json!({"parallelism": 2, "completions": 2, "template": ending()});
    let jobs = json!([{"name": "w", "replicas": 3, "template": {"spec": job}}]);
    let set = object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", json!({"replicatedJobs": jobs}));
    let mut there = stored(set, None);
    there["status"] = json!({"replicatedJobsStatus": [{"name": "w", "active": 2}]});
    let manifest = read(&[full(json!({"pods": "4"})), there]);
    assert_eq!(names(&manifest), ["train-w-0-0", "train-w-0-1", "train-w-1-0", "train-w-1-1"]);
    assert_eq!(gangs(&manifest), [("JobSet default/train".to_owned(), 6, 4)], "the third Job has no pods");
}

#[test]
fn a_ray_cluster_without_a_least_number_of_workers_needs_its_head() {
    let workers = json!([{"groupName": "w", "replicas": 2, "template": gpu()}]);
    let spec = json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": ending()},
        "workerGroupSpecs": workers});
    let manifest = read(&[object("ray.io/v1", "RayCluster", "ray", spec)]);
    assert_eq!(gangs(&manifest), [("RayCluster default/ray".to_owned(), 1, 3)]);
    assert_eq!(needs(&manifest), [["its head"]]);
}

#[test]
fn the_labels_of_pods_that_are_there_tell_their_roles() {
    let roles = json!({"Launcher": {"template": ending()}, "Worker": {"replicas": 3, "template": gpu()}});
    let spec = json!({"mpiReplicaSpecs": roles, "runPolicy": {"schedulingPolicy": {"minAvailable": 2}}});
    let job = stored(object("kubeflow.org/v2beta1", "MPIJob", "train", spec), None);
    let owner = ["kubeflow.org/v2beta1", "MPIJob", "train"];
    let there = |labels: Value| {
        let mut batch =
            stored(object("batch/v1", "Job", "train-launcher", json!({"template": ending()})), Some(owner));
        batch["status"] = json!({"active": 1});
        let mut launcher = pod("train-launcher-x7k2p", ["batch/v1", "Job", "train-launcher"]);
        launcher["metadata"]["labels"] = labels;
        read(&[job.clone(), batch, launcher])
    };
    let labelled = there(json!({"training.kubeflow.org/job-role": "launcher"}));
    assert_eq!(gangs(&labelled), [("MPIJob default/train".to_owned(), 2, 4)], "{:?}", names(&labelled));
    assert_eq!(needs(&labelled), [["its launcher"]]);
    assert_eq!(needs(&there(Value::Null)), [[""; 0]], "nobody knows which one it is");
}

/// The note about an object whose pods are missing because a quota allows no Service of this name.
fn without_service(manifest: &Manifest, object: &str, service: &str) -> bool {
    let because = format!(
        "because its Service `{service}` cannot be created: ResourceQuota `team` allows no more count/services: it limits them to 0,"
    );
    manifest.notes.iter().any(|note| note.starts_with(&format!("{object}: ")) && note.contains(&because))
}

#[test]
fn operators_that_make_a_service_first_make_no_pods_without_it() {
    let job = |name: &str| json!({"name": name, "template": {"spec": {"template": ending()}}});
    let set = |network: Value| json!({"replicatedJobs": [job("a"), job("b")], "network": network});
    let cluster = |mut head: Value| {
        head["template"] = ending();
        let workers = json!([{"groupName": "w", "replicas": 2, "template": gpu()}]);
        json!({"headGroupSpec": head, "workerGroupSpecs": workers})
    };
    let roles = json!({"Launcher": {"template": ending()}, "Worker": {"template": gpu()}});
    let tasks = json!([{"name": "worker", "replicas": 2, "template": gpu()}]);
    for (version, kind, spec, service, pods) in [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", set(Value::Null), "train", 2),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", set(json!({"subdomain": "net"})), "net", 2),
        ("ray.io/v1", "RayCluster", cluster(json!({})), "train-head-svc", 3),
        ("ray.io/v1", "RayCluster", cluster(json!({"headService": {"metadata": {"name": "own"}}})), "own", 3),
        (
            "ray.io/v1",
            "RayJob",
            json!({"entrypoint": "x", "rayClusterSpec": cluster(json!({}))}),
            "train-head-svc",
            4,
        ),
        ("ray.io/v1", "RayService", json!({"rayClusterConfig": cluster(json!({}))}), "train-head-svc", 3),
        ("kubeflow.org/v2beta1", "MPIJob", json!({"mpiReplicaSpecs": roles}), "train", 2),
        ("batch.volcano.sh/v1alpha1", "Job", json!({"plugins": {"svc": []}, "tasks": tasks}), "train", 2),
    ] {
        let of = |services: &str| {
            limited(json!({"count/services": services}), object(version, kind, "train", spec.clone()))
        };
        let none = of("0");
        assert_eq!((names(&none), gangs(&none)), (vec![], vec![]), "{kind}");
        assert_eq!(none.refused[0].pods, pods, "{kind}");
        assert!(
            without_service(&none, &format!("{kind} default/train"), service),
            "{kind}: {:?}",
            none.notes
        );
        assert_eq!(names(&of("1")).len(), pods, "{kind}: one Service is enough");
    }
}

#[test]
fn a_service_that_is_there_or_that_no_pod_waits_for_needs_no_room_in_a_quota() {
    let job = json!({"name": "a", "template": {"spec": {"template": ending()}}});
    let set = |network: Value| {
        let spec = json!({"replicatedJobs": [job], "network": network});
        object("jobset.x-k8s.io/v1alpha2", "JobSet", "train", spec)
    };
    let quota = || object("v1", "ResourceQuota", "team", json!({"hard": {"services": "0"}}));
    let planned = |objects: &[Value]| names(&read(objects)).len();
    assert_eq!(planned(&[quota(), set(Value::Null)]), 0);
    assert_eq!(planned(&[quota(), set(json!({"enableDNSHostnames": false}))]), 1);
    let there = stored(object("v1", "Service", "train", json!({"clusterIP": "None"})), None);
    assert_eq!(planned(&[quota(), there, set(Value::Null)]), 1);
    assert_eq!(planned(&[quota(), stored(set(Value::Null), None)]), 1, "it has its Service");
    let master = json!({"pytorchReplicaSpecs": {"Master": {"template": master()}}});
    let after = object("kubeflow.org/v1", "PyTorchJob", "train", master);
    assert_eq!(planned(&[quota(), after]), 1, "its Services come after its pods");
    assert_eq!(planned(&[quota(), groups(2, 2)]), 4, "its Service comes after its leaders");
}

#[test]
fn the_workers_of_a_group_with_a_service_of_its_own_come_after_it() {
    let mut set = groups(2, 3);
    set["spec"]["networkConfig"] = json!({"subdomainPolicy": "UniquePerReplica"});
    let manifest = limited(json!({"count/services": "1"}), set.clone());
    assert_eq!(names(&manifest), ["llm-0", "llm-0-1", "llm-0-2", "llm-1"]);
    assert_eq!(gangs(&manifest), [group(0, 3, 3), group(1, 3, 1)]);
    let none = limited(json!({"count/services": "0"}), set);
    assert!(without_service(&none, "LeaderWorkerSet default/llm", "llm-0"), "{:?}", none.notes);
}

#[test]
fn a_ray_cluster_whose_workers_have_several_hosts_needs_two_services() {
    let workers = json!([{"groupName": "w", "replicas": 1, "numOfHosts": 2, "template": gpu()}]);
    let spec = json!({"headGroupSpec": {"template": ending(), "serviceType": "LoadBalancer"},
        "workerGroupSpecs": workers});
    let of =
        |hard: Value| names(&limited(hard, object("ray.io/v1", "RayCluster", "ray", spec.clone()))).len();
    assert_eq!([of(json!({"services": "1"})), of(json!({"services": "2"}))], [0, 3]);
    assert_eq!(of(json!({"services.loadbalancers": "0"})), 0);
}
