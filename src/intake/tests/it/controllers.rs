//! Tests controllers of controllers, revisions of StatefulSets, bound pods, and what an API server refuses of objects that are
//! written by hand.

use crate::json_kit::{
    OF_SET, OF_WEB, apps, ending, has, names, object, pod, read, refused, stored, template,
};
use poolwright_intake::manifest::parse;
use serde_json::{Value, json};

#[test]
fn a_deployment_that_wants_more_than_its_replica_sets_lacks_the_difference() {
    let there = |wanted: u32, has: u32| {
        [
            stored(apps("Deployment", "web", wanted), None),
            stored(apps("ReplicaSet", "web-5d4", has), OF_WEB),
            pod("web-5d4-a", OF_SET),
            pod("web-5d4-b", OF_SET),
        ]
    };
    let manifest = read(&there(6, 2));
    assert_eq!(names(&manifest), ["web-2", "web-3", "web-4", "web-5", "web-5d4-a", "web-5d4-b"]);
    assert!(
        has(
            &manifest,
            "Deployment default/web: its ReplicaSets in the manifest count by themselves; pods that it lacks besides, planned too: 4"
        ),
        "{:?}",
        manifest.notes
    );
    let counts = "Deployment default/web: its ReplicaSets in the manifest count instead";
    for wanted in [1, 2] {
        let manifest = read(&there(wanted, 2));
        assert_eq!(manifest.pods.len(), wanted as usize, "a surplus pod will be deleted");
        assert!(has(&manifest, counts), "{:?}", manifest.notes);
    }
    let mut rolling = there(6, 2).to_vec();
    rolling.push(stored(apps("ReplicaSet", "web-77f", 4), OF_WEB));
    assert_eq!(read(&rolling).pods.len(), 6, "all its ReplicaSets count");
}

#[test]
fn a_leader_worker_set_lacks_the_leaders_that_its_stateful_set_does_not_make() {
    let set = json!({"replicas": 3, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}});
    let set = stored(object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm", set), None);
    let owner = Some(["leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "llm"]);
    let leaders = stored(apps("StatefulSet", "llm", 1), owner);
    let manifest = read(&[set.clone(), leaders.clone()]);
    assert_eq!(names(&manifest), ["llm-0", "llm-0-1", "llm-1", "llm-1-1", "llm-2", "llm-2-1"]);
    assert_eq!(manifest.pod_groups.len(), 3, "each with its leader");
    let leaving = pod("llm-2", ["apps/v1", "StatefulSet", "llm"]);
    assert_eq!(read(&[set, leaders, leaving]).pods.len(), 6, "a pod that is there is not planned again");
}

#[test]
fn a_deployment_that_is_paused_before_its_first_replica_set_makes_no_pods() {
    let mut paused = apps("Deployment", "web", 3);
    paused["spec"]["paused"] = json!(true);
    let manifest = read(std::slice::from_ref(&paused));
    assert_eq!(manifest.pods, []);
    let note = "Deployment default/web: it is paused and has no ReplicaSet, so it makes no pods";
    assert_eq!(manifest.notes, [note]);
    let set = stored(apps("ReplicaSet", "web-5d4", 1), OF_WEB);
    let manifest = read(&[stored(paused.clone(), None), set]);
    assert_eq!(manifest.pods.len(), 3, "one with a ReplicaSet is scaled: {:?}", manifest.notes);
    let mut had_one = stored(paused, None);
    had_one["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": "1"});
    assert_eq!(read(&[had_one]).pods.len(), 3, "its ReplicaSet is only not in the files");
}

/// Checks that an API server's refusal is told of a written object, and not of a stored one.
fn is_refused_for(object: &Value, problem: &str) {
    let found = refused(object);
    assert!(found.iter().any(|one| one.contains(problem)), "{problem} is not in {found:#?}");
    read(&[stored(object.clone(), None)]);
}

#[test]
fn jobs_that_an_api_server_refuses_are_refused() {
    let job = |spec: Value| object("batch/v1", "Job", "train", spec);
    let absent = "spec.template.spec.restartPolicy: missing; write OnFailure or Never";
    is_refused_for(&job(json!({"template": template()})), absent);
    let mut always = ending();
    always["spec"]["restartPolicy"] = json!("Always");
    let policy = "spec.template.spec.restartPolicy: an API server refuses `Always` in a Job";
    is_refused_for(&job(json!({"template": always})), policy);
    let indexed = json!({"completionMode": "Indexed", "template": ending()});
    is_refused_for(&job(indexed), "spec.completions: missing");
    let nightly = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template()}}});
    let nested = "spec.jobTemplate.spec.template.spec.restartPolicy: missing";
    is_refused_for(&object("batch/v1", "CronJob", "nightly", nightly), nested);
    let misspelt = job(
        json!({"template": {"spec": {"restartPolcy": "Never", "containers": [{"image": "x", "name": "a"}]}}}),
    );
    assert_eq!(refused(&misspelt).len(), 1, "what is missing is only misspelt");
}

#[test]
fn sets_that_an_api_server_refuses_are_refused() {
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        let mut set = apps(kind, "web", 1);
        // A DaemonSet has no replicas.
        set["spec"].as_object_mut().expect("a spec").remove("replicas");
        read(std::slice::from_ref(&set));
        let mut other = set.clone();
        other["spec"]["selector"]["matchLabels"]["app"] = json!("wbe");
        let problem = "spec.selector.matchLabels.app: the labels of the template do not have `app: wbe`";
        is_refused_for(&other, problem);
        set["spec"].as_object_mut().expect("a spec").remove("selector");
        is_refused_for(&set, "spec.selector: missing");
    }
    let mut ordered = apps("StatefulSet", "web", 1);
    ordered["spec"]["podManagementPolicy"] = json!("parallel");
    is_refused_for(&ordered, "spec.podManagementPolicy: `parallel` is not a policy of a StatefulSet");
    let mut first = apps("StatefulSet", "web", 1);
    first["spec"]["ordinals"] = json!({"start": -2});
    is_refused_for(&first, "spec.ordinals.start: `-2` is negative");
}

#[test]
fn priority_classes_and_roles_that_are_refused() {
    let class = |name: &str, value: i64, policy: &str| {
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            "preemptionPolicy": policy})
    };
    is_refused_for(&class("high", 1_000_000_001, "Never"), "value: `1000000001` is more than 1000000000");
    read(&[class("system-node-critical", 2_000_001_000, "PreemptLowerPriority")]);
    is_refused_for(&class("high", 7, "Always"), "preemptionPolicy: `Always` is not a policy of preemption");
    let reserved =
        "metadata.name: an API server refuses `system-mine`, because it reserves names with `system-`";
    is_refused_for(&class("system-mine", 10, "Never"), reserved);
    is_refused_for(
        &class("system-mine", 2_000_000_000, "Never"),
        "value: `2000000000` is more than 1000000000",
    );
    let fixed = "value: `7` is not 2000000000, the value of system-cluster-critical in every cluster";
    is_refused_for(&class("system-cluster-critical", 7, "PreemptLowerPriority"), fixed);
    let mut usual = class("system-cluster-critical", 2_000_000_000, "PreemptLowerPriority");
    usual["globalDefault"] = json!(true);
    is_refused_for(&usual, "globalDefault: an API server refuses system-cluster-critical as the default");
    let job = |kind: &str, field: &str, roles: Value| {
        let mut spec = json!({});
        spec[field] = roles;
        object("kubeflow.org/v1", kind, "train", spec)
    };
    let one = || json!({"template": ending()});
    let found = refused(&job("PyTorchJob", "pytorchReplicaSpecs", json!({"Workers": one()})));
    assert!(
        found[0].ends_with(
            "spec.pytorchReplicaSpecs.Workers: PyTorchJob has no such role; did you mean `Worker`?"
        ),
        "{found:?}"
    );
    let masters = json!({"Master": {"replicas": 2, "template": ending()}});
    let more = "spec.pytorchReplicaSpecs.Master.replicas: `2` is not the one master";
    is_refused_for(&job("PyTorchJob", "pytorchReplicaSpecs", masters), more);
    is_refused_for(&job("MPIJob", "mpiReplicaSpecs", json!({"Master": one()})), "MPIJob has no such role");
    is_refused_for(&job("TFJob", "tfReplicaSpecs", json!({"Driver": one()})), "TFJob has no such role");
    let mut named = one();
    named["template"]["spec"]["containers"][0]["name"] = json!("tensorflow");
    read(&[job("TFJob", "tfReplicaSpecs", json!({"PS": named, "Chief": named, "worker": named}))]);
}

#[test]
fn a_written_selector_that_is_empty_is_refused() {
    for kind in ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"] {
        let mut set = apps(kind, "web", 1);
        if kind == "DaemonSet" {
            set["spec"].as_object_mut().expect("a map").remove("replicas");
        }
        set["spec"]["selector"] = json!({"matchLabels": {}});
        is_refused_for(&set, "spec.selector: an API server refuses an empty selector");
    }
}

#[test]
fn misspelt_resources_are_refused_or_doubted() {
    let asks = |name: &str| {
        let mut limits = json!({});
        limits[name] = json!("1");
        object(
            "v1",
            "Pod",
            "p",
            json!({"containers": [{"image": "x", "name": "a", "resources": {"limits": limits}}]}),
        )
    };
    for (name, meant) in [("CPU", "cpu"), ("Memory", "memory"), ("gpu", "nvidia.com/gpu")] {
        let problem = format!(
            "spec.containers[0].resources.limits.{name}: `{name}` must be a standard resource type or fully qualified; did you \
             mean {meant}?"
        );
        is_refused_for(&asks(name), &problem);
    }
    is_refused_for(&asks("widgets"), "use cpu, memory, ephemeral-storage, or a name with a domain");
    for (name, next) in [
        ("requests.nvidia.com/gpu", "did you mean nvidia.com/gpu?"),
        ("requests.example.com/nic", "write it without `requests.`"),
    ] {
        let cause = format!("`{name}` begins with `requests.`, which only quotas write before a resource");
        is_refused_for(&asks(name), &format!("{cause}; {next}"));
    }
    for name in ["nvidia.com/gpus", "nvidia/gpu"] {
        let manifest = read(&[asks(name)]);
        assert_eq!((manifest.pods.len(), manifest.notes.len()), (1, 1), "{:?}", manifest.notes);
        assert!(manifest.notes[0].ends_with("did you mean nvidia.com/gpu?"), "{:?}", manifest.notes);
    }
    for name in ["nvidia.com/gpu", "amd.com/gpu", "nvidia.com/gpu.shared", "example.com/gpu"] {
        assert!(read(&[asks(name)]).notes.is_empty(), "{name}");
    }
}

#[test]
fn pods_that_are_bound_to_nodes_that_the_files_lack_are_named() {
    let bound = |name: &str| {
        object("v1", "Pod", name, json!({"nodeName": "ghost", "containers": [{"image": "x", "name": "a"}]}))
    };
    let manifest = read(&[bound("p")]);
    let note =
        "Pod default/p: it is bound to node `ghost`, which is not in the files, so nothing is planned for it";
    assert_eq!(manifest.bound_elsewhere, [note]);
    assert_eq!(manifest.on_unknown_nodes, ["Pod default/p"]);
    assert!(manifest.unread.is_empty(), "it was read");
    let mut set = apps("Deployment", "web", 2);
    set["spec"]["template"]["spec"]["nodeName"] = json!("ghost");
    let manifest = read(&[set]);
    let note = "Deployment default/web: 2 of its pods are bound to node `ghost`, which is not in the files, so nothing is planned for them";
    assert_eq!((manifest.bound_elsewhere, manifest.on_unknown_nodes.len()), (vec![note.to_owned()], 1));
    let manifest = read(&[stored(bound("p"), None), stored(bound("q"), None)]);
    let note = "2 pods run on nodes that are not in the files: default/p on `ghost`, default/q on `ghost`";
    assert_eq!((manifest.bound_elsewhere, manifest.on_unknown_nodes.len()), (vec![note.to_owned()], 0));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}, "status": {"allocatable": {"cpu": "2"}}});
    let manifest = read(&[bound("p"), node]);
    assert!(manifest.bound_elsewhere.is_empty() && manifest.on_unknown_nodes.is_empty());
}

#[test]
fn the_answer_of_a_failed_request_is_told_with_its_reason() {
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "Forbidden",
        "message": "pods is forbidden"});
    let found = parse("all.json", &status.to_string()).expect_err("it has no objects");
    assert_eq!(
        found[0].to_string(),
        "all.json: document 1: it is the answer of a failed request (Forbidden: pods is forbidden), not an object; fetch the \
         objects again"
    );
}

#[test]
fn an_unknown_kind_that_asks_for_gpus_is_missing_in_the_plan_and_the_limits_of_an_autoscaler_are_not() {
    let service = json!({"replicas": 4, "resources": {"limits": {"nvidia.com/gpu": 1}}});
    let found = read(&[object("apps.nvidia.com/v1alpha1", "NIMService", "nim", service)]);
    assert_eq!(found.unread.len(), 1, "{:?}", found.notes);
    let pool = json!({"limits": {"nvidia.com/gpu": 4}});
    let found = read(&[object("karpenter.sh/v1", "NodePool", "gpu", pool)]);
    assert!(found.unread.is_empty(), "{:?}", found.unread);
}

#[test]
fn all_wrong_amounts_of_a_pod_are_named_at_once() {
    let container = json!({"name": "a", "image": "x", "resources": {
        "requests": {"cpu": "2cores", "memory": "4gi"}, "limits": {"ephemeral-storage": "1x"}}});
    let problems = refused(&object("v1", "Pod", "a", json!({"containers": [container]})));
    for wrong in ["2cores", "4gi", "1x"] {
        let named = problems.iter().filter(|problem| problem.contains(&format!("`{wrong}`"))).count();
        assert_eq!(named, 1, "{wrong} in {problems:#?}");
    }
}

/// A stored StatefulSet on its way from revision `db-1` to `db-2`, whose new pods ask for two CPUs.
fn rolling(partition: u32) -> Value {
    let mut set = stored(apps("StatefulSet", "db", 3), None);
    set["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": partition}});
    set["spec"]["template"] = asking("2");
    set["status"] = json!({"replicas": 3, "currentRevision": "db-1", "updateRevision": "db-2"});
    set
}

fn asking(cpu: &str) -> Value {
    let mut pods = template();
    pods["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu}});
    pods
}

/// Returns the CPUs of each pod, in the order of the names.
fn cpus(manifest: &poolwright_intake::Manifest) -> Vec<u64> {
    manifest.pods.iter().map(|pod| pod.spec.requests.get("cpu") / 1000).collect()
}

#[test]
fn pods_of_a_stateful_set_below_its_partition_keep_the_template_of_the_old_revision() {
    let mut old = asking("1");
    old["$patch"] = json!("replace");
    let revision = json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "db-1"},
        "revision": 1, "data": {"spec": {"template": old}}});
    assert_eq!(cpus(&read(&[rolling(2), revision.clone()])), [1, 1, 2]);
    assert_eq!(cpus(&read(&[rolling(9), revision.clone()])), [1, 1, 1]);
    assert_eq!(cpus(&read(&[rolling(0), revision.clone()])), [2, 2, 2]);
    let mut later = rolling(1);
    later["spec"]["ordinals"] = json!({"start": 5});
    let manifest = read(&[later, revision]);
    assert_eq!((names(&manifest)[0].as_str(), cpus(&manifest)), ("db-5", vec![1, 2, 2]), "from the first on");
}

#[test]
fn an_old_revision_that_is_not_in_the_files_is_named_if_pods_of_it_are_missing() {
    let manifest = read(&[rolling(1)]);
    assert_eq!(cpus(&manifest), [2, 2, 2]);
    let note = "StatefulSet default/db: its pods below the partition (1) have the template of ControllerRevision `db-1`, which is not in the \
                files, so they are planned with the new template; add it (`kubectl get controllerrevisions -o yaml`)";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
    let there = pod("db-0", ["apps/v1", "StatefulSet", "db"]);
    assert!(!has(&read(&[rolling(1), there]), note), "the pod is there");
}

#[test]
fn a_changed_stateful_set_knows_its_old_template_from_the_stored_one() {
    let mut there = rolling(2);
    there["spec"]["template"] = asking("1");
    there["status"]["updateRevision"] = json!("db-1");
    let mut changed = rolling(2);
    changed["metadata"] = json!({"name": "db"});
    changed.as_object_mut().expect("an object").remove("status");
    assert_eq!(cpus(&read(&[there, changed])), [1, 1, 2]);
}
