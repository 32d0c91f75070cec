//! Tests of reading workloads from manifests of a cluster.

use std::time::Duration;

use super::*;

fn work(text: &str) -> Result<Work, String> {
    let source = Source { name: "cluster.yaml".to_owned(), text: text.to_owned() };
    of_sources(&[source]).map_err(|problems| problems.to_string())
}

fn pod(meta: &Value, spec: &Value, phase: &str) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "work", "image": "work"}]);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec, "status": {"phase": phase}})
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

#[test]
fn completions_of_a_job_beyond_its_parallelism_come_in_waves() {
    let template = json!({"metadata": {"annotations": {RUNS_FOR: "30m"}},
        "spec": {"containers": [{"name": "work", "image": "work"}], "restartPolicy": "Never"}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "six", "namespace": "ml"},
        "spec": {"completions": 5, "parallelism": 2, "template": template}});
    let work = work(&list(&[job])).unwrap();
    let waves: Vec<_> = work.jobs.iter().map(|job| (job.pods, job.arrives.as_secs() / 60)).collect();
    assert_eq!(waves, [(2, 0), (2, 30), (1, 60)]);
    assert!(work.notes.iter().any(|note| note.contains("follow in 2 waves")), "{:?}", work.notes);
}

#[test]
fn pods_that_run_or_wait_come_anew_and_what_shows_them_a_second_time_does_not() {
    let owner =
        json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "owner", "uid": "u-1", "controller": true}]);
    let template = pod(&json!({}), &json!({"restartPolicy": "Never"}), "");
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "owner", "uid": "u-1"},
        "spec": {"template": {"spec": template["spec"]}}});
    let work = work(&list(&[
        pod(
            &json!({"name": "runs", "namespace": "team", "ownerReferences": owner}),
            &json!({"nodeName": "n"}),
            "Running",
        ),
        pod(&json!({"name": "waits"}), &json!({"activeDeadlineSeconds": 60}), "Pending"),
        pod(&json!({"name": "done"}), &json!({}), "Succeeded"),
        job,
    ]))
    .unwrap();
    let jobs: Vec<_> = work
        .jobs
        .iter()
        .map(|job| (job.name.as_str(), job.namespace.as_str(), job.pods, job.length))
        .collect();
    assert_eq!(jobs, [("runs", "team", 1, None), ("waits", "default", 1, Some(Duration::from_mins(1)))]);
    assert!(work.jobs.iter().all(|job| job.spec["nodeName"].is_null()));
    assert_eq!(work.objects.len(), 1, "the namespace `team`: {:?}", work.objects);
}

#[test]
fn a_replay_expands_controllers_to_their_pods() {
    let template = json!({"metadata": {"labels": {"app": "a"}, "annotations": {RUNS_FOR: "90m"}},
        "spec": {"containers": [{"name": "work", "image": "work"}]}});
    let work =
        work(&list(&[json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": template}})]))
        .unwrap();
    let [job] = work.jobs.as_slice() else { panic!("{:?}", work.jobs) };
    assert_eq!((job.pods, job.length), (3, Some(Duration::from_mins(90))));
    assert_eq!(job.labels.get("app").map(String::as_str), Some("a"));
}

/// A ReplicaSet with two of four pods, and its Deployment, which wants five.
fn half_there() -> Vec<Value> {
    let owner = |kind: &str, name: &str, uid: &str| json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}]);
    let spec = |replicas: u32| {
        let template = json!({"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "work", "image": "work"}]}});
        json!({"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template})
    };
    let of_set = owner("ReplicaSet", "web-5d4", "u-set");
    let there = |name: &str| {
        let meta = json!({"name": name, "uid": name, "ownerReferences": of_set});
        pod(&meta, &json!({"nodeName": "n"}), "Running")
    };
    vec![
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "u-web"}, "spec": spec(5)}),
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-5d4", "uid": "u-set",
            "ownerReferences": owner("Deployment", "web", "u-web")}, "spec": spec(4)}),
        there("web-5d4-a"),
        there("web-5d4-b"),
    ]
}

fn pods_by_job(work: &Work) -> Vec<(&str, u32)> {
    work.jobs.iter().map(|job| (job.name.as_str(), job.pods)).collect()
}

#[test]
fn controllers_of_a_replay_have_the_pods_that_they_lack_as_in_a_plan() {
    let work = work(&list(&half_there())).unwrap();
    let expected = [("web", 1), ("web-5d4", 2), ("web-5d4-a", 1), ("web-5d4-b", 1)];
    assert_eq!(pods_by_job(&work), expected);
    assert!(work.notes[0].starts_with("pods that start at the beginning: 5;"), "{:?}", work.notes);
}

#[test]
fn autoscalers_and_quotas_decide_in_a_replay_as_in_a_plan() {
    let mut items = half_there();
    items.push(
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "s"},
        "spec": {"minReplicas": 1, "maxReplicas": 1,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}),
    );
    let scaled = work(&list(&items)).unwrap();
    assert_eq!(pods_by_job(&scaled).len(), 1, "{:?}", pods_by_job(&scaled));
    let mut items = half_there();
    items.push(json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team"},
        "spec": {"hard": {"pods": "3"}}}));
    let limited = work(&list(&items)).unwrap();
    let pods: u32 = limited.jobs.iter().map(|job| job.pods).sum();
    assert_eq!(pods, 3, "two that are there and one more: {:?}", limited.notes);
}

#[test]
fn what_a_quota_refuses_is_not_there_in_a_replay() {
    let selector = json!({"matchLabels": {"app": "a"}});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "work", "image": "work"}]}});
    let defaults = json!({"type": "Container", "defaultRequest": {"cpu": "3"}});
    let of = |version: &str, kind: &str, spec: Value| json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    let played = |allowed: &str| {
        let hard = json!({"services": allowed, "count/poddisruptionbudgets.policy": allowed,
            "count/daemonsets.apps": allowed, "count/limitranges": allowed});
        work(&list(&[
            of("v1", "ResourceQuota", json!({"hard": hard})),
            of("v1", "Service", json!({"selector": {"app": "a"}, "ports": [{"port": 80}]})),
            of("policy/v1", "PodDisruptionBudget", json!({"minAvailable": 1, "selector": selector})),
            of("apps/v1", "DaemonSet", json!({"selector": selector, "template": template})),
            of("v1", "LimitRange", json!({"limits": [defaults]})),
            of("apps/v1", "Deployment", json!({"replicas": 2, "selector": selector, "template": template})),
        ]))
        .unwrap()
    };
    let cpu = |work: &Work| work.jobs[0].spec["containers"][0]["resources"]["requests"]["cpu"].clone();
    let all = played("1");
    assert_eq!((all.objects.len(), cpu(&all)), (3, json!("3")), "{:?}", all.objects);
    let none = played("0");
    assert_eq!((none.objects.len(), cpu(&none)), (0, Value::Null), "{:?}", none.objects);
    assert_eq!(pods_by_job(&none), [("x", 2)]);
}

#[test]
fn a_length_that_is_none_is_told_with_object_and_field() {
    let pod = pod(&json!({"name": "p", "annotations": {RUNS_FOR: "soon"}}), &json!({}), "Running");
    let said = work(&list(&[pod])).unwrap_err();
    assert!(
        said.contains("cluster.yaml: Pod default/p: metadata.annotations[poolwright.dev/runs-for]: `soon` is not a duration"),
        "{said}"
    );
}

#[test]
fn the_pods_of_a_train_job_are_played_if_its_runtime_is_there() {
    let version = "trainer.kubeflow.org/v1alpha1";
    let template = json!({"spec": {"containers": [{"name": "node", "image": "x"}]}});
    let node = json!({"name": "node", "template": {"spec": {"template": template}}});
    let runtime = json!({"apiVersion": version, "kind": "ClusterTrainingRuntime", "metadata": {"name": "torch"},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [node]}}}});
    let resources = json!({"limits": {"nvidia.com/gpu": 8}});
    let job = json!({"apiVersion": version, "kind": "TrainJob", "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 3, "resourcesPerNode": resources}}});
    let played = work(&list(&[job.clone(), runtime])).unwrap();
    let [group] = played.jobs.as_slice() else { panic!("{:?}", played.jobs) };
    assert_eq!((group.namespace.as_str(), group.pods), ("ml", 3));
    assert_eq!(group.spec["containers"][0]["resources"], resources, "the TrainJob says it, not the runtime");
    let told = |work: &Work| {
        work.notes.iter().any(|note| note.contains("TrainJob") && !note.contains("start together"))
    };
    assert!(!told(&played), "{:?}", played.notes);

    let other = pod(&json!({"name": "other"}), &json!({}), "Running");
    let without = work(&list(&[job, other])).unwrap();
    assert_eq!(pods_by_job(&without), [("other", 1)]);
    assert!(told(&without), "{:?}", without.notes);
}

#[test]
fn a_misspelt_kind_of_ours_is_a_problem_and_comes_with_all_others() {
    let misspelt =
        json!({"apiVersion": "poolwright.dev/v1alpha1", "kind": "NodePol", "metadata": {"name": "gpu"}});
    let mut greedy = pod(&json!({"name": "greedy"}), &json!({}), "Running");
    greedy["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "lots"}});
    let endless = pod(&json!({"name": "endless", "annotations": {RUNS_FOR: "soon"}}), &json!({}), "Running");
    let said = work(&list(&[misspelt, greedy, endless])).unwrap_err();
    for problem in [
        "cluster.yaml: NodePol gpu: poolwright.dev has no such kind; did you mean NodePool?",
        "cluster.yaml: Pod default/greedy: spec.containers[0].resources.requests.cpu: ",
        "cluster.yaml: Pod default/endless: metadata.annotations[poolwright.dev/runs-for]: `soon` is not a duration",
    ] {
        assert!(said.contains(problem), "{problem}: {said}");
    }
}

fn told(work: &Work, text: &str) -> bool {
    work.notes.iter().any(|note| note.contains(text))
}

#[test]
fn pods_that_a_plan_leaves_out_are_left_out_with_a_note_for_each_reason() {
    let gated = json!({"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]});
    let ending = json!({"name": "ends", "uid": "u-1", "deletionTimestamp": "2026-11-29T10:00:00Z"});
    let left_out = [
        pod(&json!({"name": "held"}), &gated, "Pending"),
        pod(&ending, &json!({"nodeName": "n"}), "Running"),
        pod(&json!({"name": "elsewhere"}), &json!({"schedulerName": "volcano"}), "Pending"),
    ];
    let mut all = left_out.to_vec();
    all.push(pod(&json!({"name": "plays"}), &json!({}), "Pending"));
    let played = work(&list(&all)).unwrap();
    assert_eq!(pods_by_job(&played), [("plays", 1)]);
    assert!(told(&played, "left out pods with scheduling gates: 1 (default/held)"), "{:?}", played.notes);
    assert!(told(&played, "left out pods that are being deleted: 1 (default/ends)"), "{:?}", played.notes);
    assert!(told(&played, "left out pods that scheduler `volcano` places: 1 (default/elsewhere)"));
    let said = work(&list(&left_out)).unwrap_err();
    assert!(
        said.contains("no pod of --snapshot can be played: left out pods with scheduling gates"),
        "{said}"
    );
}

#[test]
fn objects_that_are_being_deleted_are_not_there_in_a_replay() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "old", "namespace": "default", "uid": "u-1", "deletionTimestamp": "2026-11-29T10:00:00Z"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let played = work(&list(&[claim, pod(&json!({"name": "p"}), &json!({}), "Pending")])).unwrap();
    assert_eq!(played.objects, Vec::<Value>::new());
    let note = "left out objects of kind PersistentVolumeClaim that are being deleted: 1 (default/old)";
    assert!(told(&played, note), "{:?}", played.notes);
}

#[test]
fn each_pod_of_a_stateful_set_has_its_own_claim_and_a_claim_of_the_files_stays() {
    let template = json!({"metadata": {"labels": {"app": "s"}},
        "spec": {"containers": [{"name": "work", "image": "work"}]}});
    let claims = json!([{"metadata": {"name": "data"}, "spec": {"storageClassName": "gp3",
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}}]);
    let set = json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "default"},
        "spec": {"replicas": 2, "serviceName": "s", "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "s"}}, "template": template, "volumeClaimTemplates": claims}});
    let there = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-s-0", "namespace": "default",
            "annotations": {"volume.kubernetes.io/selected-node": "gone", "mine": "too"}},
        "spec": {"storageClassName": "gp3", "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "20Gi"}}}});
    let played = work(&list(&[set, there])).unwrap();
    let used: Vec<&Value> =
        played.jobs.iter().map(|job| &job.spec["volumes"][0]["persistentVolumeClaim"]["claimName"]).collect();
    assert_eq!(used, ["data-s-0", "data-s-1"]);
    assert_eq!(played.jobs.iter().map(|job| job.pods).collect::<Vec<_>>(), [1, 1]);
    let claim = |name: &str| {
        let is_it = |one: &&Value| one["kind"] == "PersistentVolumeClaim" && one["metadata"]["name"] == name;
        let found: Vec<&Value> = played.objects.iter().filter(is_it).collect();
        let [only] = found.as_slice() else { panic!("{name}: {found:?}") };
        (*only).clone()
    };
    assert_eq!(claim("data-s-0")["spec"]["resources"]["requests"]["storage"], "20Gi");
    assert_eq!(claim("data-s-0")["metadata"]["annotations"], json!({"mine": "too"}), "its node is gone");
    assert_eq!(claim("data-s-1")["spec"]["resources"]["requests"]["storage"], (10_u64 << 30).to_string());
    assert!(told(&played, "StorageClass `gp3` is not among the files"), "{:?}", played.notes);
    assert!(
        played.objects.iter().any(|one| one["kind"] == "StorageClass" && one["metadata"]["name"] == "gp3")
    );
}

#[test]
fn pods_that_start_together_are_played_in_a_pod_group() {
    let template = json!({"spec": {"containers": [{"name": "pytorch", "image": "x"}]}});
    let part = |replicas: u32| json!({"replicas": replicas, "template": template});
    let job = json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm", "namespace": "ml"},
        "spec": {"pytorchReplicaSpecs": {"Master": part(1), "Worker": part(3)}}});
    let played = work(&list(&[job])).unwrap();
    let groups: Vec<&Value> = played.objects.iter().filter(|one| one["kind"] == "PodGroup").collect();
    let [group] = groups.as_slice() else { panic!("{:?}", played.objects) };
    assert_eq!(group["spec"]["schedulingPolicy"]["gang"]["minCount"], 4);
    let name = &group["metadata"]["name"];
    assert_eq!(played.jobs.iter().map(|job| job.pods).sum::<u32>(), 4);
    assert!(played.jobs.iter().all(|job| job.spec["schedulingGroup"]["podGroupName"] == *name));
    assert!(
        told(&played, "PyTorchJob ml/llm: its pods start together, at least 4 of them"),
        "{:?}",
        played.notes
    );
}

#[test]
fn pods_of_a_pod_group_of_another_scheduler_are_played_in_one_of_kubernetes() {
    const MARK: &str = "scheduling.x-k8s.io/pod-group";
    let group = json!({"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "train"}, "spec": {"minMember": 2}});
    let member =
        |name: &str, group: &str| pod(&json!({"name": name, "labels": {MARK: group}}), &json!({}), "Pending");
    let played =
        work(&list(&[group, member("a", "train"), member("b", "train"), member("c", "none")])).unwrap();
    let of_group =
        "PodGroup default/train of scheduling.x-k8s.io: its pods start together, at least 2 of them";
    assert!(told(&played, of_group), "{:?}", played.notes);
    assert!(
        told(&played, "PodGroup default/none of scheduling.x-k8s.io: the files lack it"),
        "{:?}",
        played.notes
    );
    let grouped = played.jobs.iter().filter(|job| !job.spec["schedulingGroup"].is_null());
    assert_eq!(grouped.map(|job| job.pods).sum::<u32>(), 2);
    assert!(played.jobs.iter().all(|job| !job.labels.contains_key(MARK)), "no other scheduler is played");
}

#[test]
fn new_nodes_have_room_for_the_largest_pods_of_a_daemon_set() {
    let asks = |cpu: &str| json!({"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]});
    let owner = json!([{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "ds1", "controller": true}]);
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default", "uid": "ds1"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": asks("100m")}}});
    let mut real = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "agent-x7k2p", "namespace": "default", "uid": "p", "ownerReferences": owner},
        "spec": asks("1"), "status": {"phase": "Running"}});
    real["spec"]["nodeName"] = json!("n1");
    let played = work(&list(&[set, real, pod(&json!({"name": "w"}), &json!({}), "Pending")])).unwrap();
    let sets = super::super::daemonsets(&played.objects);
    assert_eq!(sets.iter().map(|set| set.spec.requests.get("cpu")).collect::<Vec<_>>(), [1000]);
    assert!(told(&played, "DaemonSet default/agent: its pods ask for more"), "{:?}", played.notes);
}

/// An object that makes pods from a template.
fn maker(version: &str, kind: &str) -> Value {
    let template = json!({"spec": {"containers": [{"name": "work", "image": "work"}]}});
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {"template": template}})
}

#[test]
fn a_kind_of_another_project_is_not_taken_for_the_kind_of_its_name_in_kubernetes() {
    let waits = pod(&json!({"name": "p"}), &json!({}), "Pending");
    for (version, kind) in [("serving.knative.dev/v1", "Service"), ("apps.kruise.io/v1alpha1", "DaemonSet")] {
        let played = work(&list(&[maker(version, kind), waits.clone()])).unwrap();
        assert_eq!((played.objects.len(), pods_by_job(&played)), (0, vec![("p", 1)]), "{kind}");
        let note = format!(
            "{kind} default/x: {version} {kind} is not read, so the pods that it makes are not planned"
        );
        assert!(told(&played, &note), "{:?}", played.notes);
    }
}

#[test]
fn a_misspelt_kind_is_named_if_a_snapshot_has_no_pods() {
    let said = work(&list(&[maker("apps/v1", "Deploymnt")])).unwrap_err();
    let meant = "cluster.yaml: Deploymnt default/x: apps/v1 Deploymnt is not read; did you mean Deployment?";
    assert!(said.contains(meant), "{said}");
}

#[test]
fn pods_that_cannot_be_read_are_not_said_to_be_missing() {
    let mut broken = pod(&json!({"name": "p", "uid": "u"}), &json!({}), "Running");
    broken["spec"]["containers"] = json!([]);
    let said = work(&list(&[broken])).unwrap_err();
    assert!(said.contains("Pod default/p: spec.containers: "), "{said}");
    assert!(!said.contains("have no running or waiting pod"), "{said}");
}
