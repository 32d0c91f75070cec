//! Tests of what operators write on pods about their gangs.

use std::sync::Arc;

use poolwright_core::{GangMark, Pod, Snapshot};
use poolwright_intake::{ignored_in_pod, planned_singly, pod as convert};
use serde_json::{Value, json};

use crate::json_kit::{ending, gangs, has, object, pod, read, stored};

const TRAIN: [&str; 3] = ["kubeflow.org/v1", "PyTorchJob", "train"];

/// A stored pod of a controller with these labels, which the scheduler has tried in vain.
fn labelled(name: &str, owner: [&str; 3], labels: Value) -> Value {
    let mut pod = pod(name, owner);
    pod["metadata"]["labels"] = labels;
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"});
    pod["status"] = json!({"phase": "Pending", "conditions": [condition]});
    pod
}

fn trained(role: &str) -> Value {
    labelled(&format!("train-{role}-0"), TRAIN, json!({"training.kubeflow.org/replica-type": role}))
}

fn converted(object: Value) -> Pod {
    convert(&serde_json::from_value(object).expect("a pod")).expect("it converts")
}

/// Returns what the gang of a pod stands for, the name of its role, and how many others are enough.
fn mark(object: Value) -> Option<(String, Option<String>, Option<u32>)> {
    let pod = converted(object);
    let GangMark { role, enough } = *pod.gang?;
    assert!(role.iter().all(|role| pod.labels.get(&role.label.0) == Some(&role.label.1)));
    Some((pod.group?, role.map(|role| role.name), enough))
}

#[test]
fn pods_of_operators_say_which_gang_they_belong_to_and_which_role_they_have() {
    let of = |group: &str, role: Option<&str>, enough: Option<u32>| {
        Some((group.to_owned(), role.map(str::to_owned), enough))
    };
    let job = "PyTorchJob default/train";
    assert_eq!(mark(trained("master")), of(job, Some("master"), None));
    assert_eq!(mark(trained("worker")), of(job, None, None));
    let tf = ["kubeflow.org/v1", "TFJob", "mnist"];
    let ps = labelled("mnist-ps-0", tf, json!({"training.kubeflow.org/replica-type": "ps"}));
    assert_eq!(mark(ps), of("TFJob default/mnist", Some("parameter server"), None));
    let mpi = |name: &str, owner: [&str; 3], role: &str| {
        let labels = json!({"training.kubeflow.org/job-name": "sim", "training.kubeflow.org/job-role": role});
        mark(labelled(name, owner, labels))
    };
    let worker = mpi("sim-worker-0", ["kubeflow.org/v2beta1", "MPIJob", "sim"], "worker");
    assert_eq!(worker, of("MPIJob default/sim", None, None));
    let launcher = mpi("sim-launcher-x7k2p", ["batch/v1", "Job", "sim-launcher"], "launcher");
    assert_eq!(launcher, of("MPIJob default/sim", Some("launcher"), None));
    let ray =
        |node: &str| labelled(node, ["ray.io/v1", "RayCluster", "ray"], json!({"ray.io/node-type": node}));
    assert_eq!(mark(ray("head")), of("RayCluster default/ray", Some("head"), None));
    assert_eq!(mark(ray("worker")), of("RayCluster default/ray", None, None));
    let mut scaled = ray("head");
    scaled["spec"]["containers"] =
        json!([{"image": "x", "name": "ray-head"}, {"image": "x", "name": "autoscaler"}]);
    assert_eq!(mark(scaled), of("RayCluster default/ray", Some("head"), Some(0)));
    let labels =
        json!({"jobset.sigs.k8s.io/jobset-name": "set", "jobset.sigs.k8s.io/replicatedjob-name": "a"});
    let of_set = labelled("set-a-0-0-x7k2p", ["batch/v1", "Job", "set-a-0"], labels);
    assert_eq!(mark(of_set), of("JobSet default/set", None, None));
    let labels =
        json!({"leaderworkerset.sigs.k8s.io/name": "llm", "leaderworkerset.sigs.k8s.io/group-index": "1"});
    let mut leader = labelled("llm-1", ["apps/v1", "StatefulSet", "llm"], labels);
    assert_eq!(mark(leader.clone()), of("group 1 of LeaderWorkerSet default/llm", None, None));
    leader["metadata"]["annotations"] = json!({"leaderworkerset.sigs.k8s.io/size": "1"});
    assert_eq!(mark(leader), None);
}

#[test]
fn an_elastic_job_says_how_many_workers_are_enough() {
    let of = |nodes: &str| {
        let mut worker = trained("worker");
        worker["spec"]["containers"][0]["env"] = json!([{"name": "PET_NNODES", "value": nodes}]);
        mark(worker).expect("a mark").2
    };
    assert_eq!((of("2:7"), of("7"), of("x:7")), (Some(2), None, None));
}

#[test]
fn a_pod_of_a_pod_group_has_no_mark_whichever_scheduler_has_the_group() {
    let mut own = trained("worker");
    own["spec"]["schedulingGroup"] = json!({"podGroupName": "train"});
    let own = converted(own);
    assert_eq!((own.group.as_deref(), own.gang), (Some("train"), None));
    for key in ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"] {
        let mut other = trained("worker");
        other["metadata"]["annotations"] = json!({key: "train"});
        assert_eq!(mark(other), None, "{key}");
    }
    let labels =
        json!({"training.kubeflow.org/replica-type": "worker", "scheduling.x-k8s.io/pod-group": "train"});
    assert_eq!(mark(labelled("train-worker-0", TRAIN, labels)), None);
    let mut free = trained("worker");
    free["metadata"]["ownerReferences"] = json!([]);
    assert_eq!(mark(free), None, "anybody can write labels");
}

#[test]
fn pods_of_a_dump_start_together_with_or_without_their_job() {
    let pods = ["master", "worker"].map(trained);
    let alone = read(&pods);
    assert!(alone.pod_groups.is_empty(), "no object says how many");
    let pods_by_key = alone.pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod))).collect();
    let snapshot = Snapshot { pods: pods_by_key, ..Snapshot::default() };
    let least = |pod: &Arc<Pod>| snapshot.pod_group(&pod.group_key()?)?.min_count;
    assert_eq!(snapshot.pods.values().map(least).collect::<Vec<_>>(), [Some(2), Some(2)]);
    let template = json!({"spec": {"containers": [{"image": "x", "name": "pytorch"}]}});
    let roles = json!({"Master": {"template": template}, "Worker": {"replicas": 3, "template": template}});
    let job = stored(object(TRAIN[0], TRAIN[1], TRAIN[2], json!({"pytorchReplicaSpecs": roles})), None);
    let [master, worker] = pods;
    let whole = read(&[job, master, worker]);
    assert_eq!(gangs(&whole), [("PyTorchJob default/train".to_owned(), 4, 4)]);
    assert!(whole.pods.iter().all(|pod| pod.gang.is_none()), "the object says how many");
}

#[test]
fn a_pod_with_a_label_of_an_old_plugin_is_said_to_be_planned_singly() {
    let told = |object: &Value| planned_singly(&serde_json::from_value(object.clone()).expect("a pod"));
    for key in ["pod-group.scheduling.sigs.k8s.io", "pod-group.scheduling.sigs.k8s.io/name"] {
        let mut named = trained("worker");
        named["metadata"]["labels"] = json!({key: "train"});
        let said = told(&named).expect("a note");
        let start =
            format!("`{key}` names PodGroup default/train, which Poolwright does not read, so the pod is");
        assert!(said.starts_with(&start), "{said}");
        let event = ignored_in_pod(&serde_json::from_value(named.clone()).expect("a pod"));
        assert_eq!(event.as_deref(), Some(said.as_str()));
        let of_files = read(std::slice::from_ref(&named));
        assert!(has(&of_files, &format!("Pod default/train-worker-0: {said}")), "{:?}", of_files.notes);
        let mut bound = named.clone();
        bound["spec"]["nodeName"] = json!("n");
        assert_eq!(told(&bound), None, "nothing is planned for it");
        named["spec"]["schedulingGroup"] = json!({"podGroupName": "own"});
        assert_eq!(told(&named), None, "its own PodGroup is read");
    }
    assert_eq!(told(&trained("worker")), None);
}

const VOLCANO_JOB: [&str; 3] = ["batch.volcano.sh/v1alpha1", "Job", "mpi"];

/// A job of Volcano with two pods, and the PodGroup that Volcano makes for it.
fn job_with_group(phase: &str) -> [Value; 2] {
    let tasks = json!([{"name": "worker", "replicas": 2, "template": ending()}]);
    let [version, kind, name] = VOLCANO_JOB;
    let job = object(version, kind, name, json!({"minAvailable": 2, "tasks": tasks}));
    let group = object("scheduling.volcano.sh/v1beta1", "PodGroup", "mpi-u", json!({"minMember": 2}));
    let mut group = stored(group, Some(VOLCANO_JOB));
    group["status"] = json!({"phase": phase});
    [stored(job, None), group]
}

#[test]
fn a_job_waits_in_the_queue_of_its_pod_group_before_it_has_pods() {
    let held = |phase: &str| {
        let manifest = read(&job_with_group(phase));
        let of_job = manifest.pod_groups.iter().find(|group| group.name() == "Job default/mpi");
        of_job.expect("a gang").held.clone()
    };
    assert!(held("Pending").is_some_and(|why| why.contains("queue `default`")));
    assert_eq!(held("Inqueue"), None);
}

#[test]
fn a_gang_is_told_by_its_pod_group_and_without_it_by_its_job() {
    let pods = ["mpi-worker-0", "mpi-worker-1"].map(|name| {
        let mut pod = pod(name, VOLCANO_JOB);
        pod["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "mpi-u"});
        pod
    });
    let [job, group] = job_with_group("Running");
    let [first, second] = pods;
    let of = |objects: &[Value]| gangs(&read(objects));
    let by_group = [("PodGroup default/mpi-u of scheduling.volcano.sh".to_owned(), 2, 2)];
    assert_eq!(of(&[group.clone(), first.clone(), second.clone()]), by_group);
    assert_eq!(of(&[job.clone(), group, first.clone(), second.clone()]), by_group);
    assert_eq!(of(&[job, first, second]), [("Job default/mpi".to_owned(), 2, 2)]);
}
