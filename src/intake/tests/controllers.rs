//! Tests controllers of controllers, autoscalers, bound pods, and what an API server refuses of objects that are written by hand.

use poolwright_intake::Manifest;
use poolwright_intake::manifest::parse;
use serde_json::{Value, json};

fn text(objects: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()
}

fn read(objects: &[Value]) -> Manifest {
    parse("all.json", &text(objects)).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

fn refused(object: &Value) -> Vec<String> {
    let errors = parse("all.json", &text(std::slice::from_ref(object))).expect_err("it has problems");
    errors.iter().map(ToString::to_string).collect()
}

fn names(manifest: &Manifest) -> Vec<String> {
    let mut names: Vec<String> = manifest.pods.iter().map(|pod| pod.key.name().into_owned()).collect();
    names.sort();
    names
}

fn has(manifest: &Manifest, note: &str) -> bool {
    manifest.notes.iter().any(|one| one == note)
}

fn template() -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "a"}]}})
}

/// The template of a Job.
fn ending() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a"}]}})
}

fn object(version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn apps(kind: &str, name: &str, replicas: u32) -> Value {
    let selector = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"replicas": replicas, "selector": selector, "template": template()});
    object("apps/v1", kind, name, spec)
}

/// The object as an API server prints it, with a controller if `owner` is its version, kind and name.
fn stored(mut object: Value, owner: Option<[&str; 3]>) -> Value {
    let uid = |kind: &str, name: &str| format!("u-{kind}-{name}");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    object["metadata"]["uid"] = json!(uid(&text(&object["kind"]), &text(&object["metadata"]["name"])));
    if let Some([version, kind, name]) = owner {
        object["metadata"]["ownerReferences"] = json!([
            {"apiVersion": version, "kind": kind, "name": name, "uid": uid(kind, name), "controller": true}]);
    }
    object
}

fn pod(name: &str, owner: [&str; 3]) -> Value {
    stored(object("v1", "Pod", name, json!({"containers": [{"name": "a"}]})), Some(owner))
}

const OF_WEB: Option<[&str; 3]> = Some(["apps/v1", "Deployment", "web"]);
const OF_SET: [&str; 3] = ["apps/v1", "ReplicaSet", "web-5d4"];

fn autoscaler(target: (&str, &str), bounds: Value) -> Value {
    let (kind, name) = target;
    let mut spec = bounds;
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": kind, "name": name});
    object("autoscaling/v2", "HorizontalPodAutoscaler", "s", spec)
}

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
        has(&manifest, "Deployment default/web: pods in the manifest: 2; pods that it lacks, planned too: 4"),
        "{:?}",
        manifest.notes
    );
    let counts = "Deployment default/web: what it controls is in the manifest and counts instead";
    for wanted in [1, 2] {
        let manifest = read(&there(wanted, 2));
        assert_eq!(manifest.pods.len(), 2, "fewer change nothing");
        assert!(has(&manifest, counts), "{:?}", manifest.notes);
    }
    let mut rolling = there(6, 2).to_vec();
    rolling.push(stored(apps("ReplicaSet", "web-77f", 4), OF_WEB));
    assert_eq!(read(&rolling).pods.len(), 6, "all its ReplicaSets count");
}

#[test]
fn a_deployment_that_an_autoscaler_raises_lacks_the_difference_too() {
    let manifest = read(&[
        stored(apps("Deployment", "web", 2), None),
        stored(apps("ReplicaSet", "web-5d4", 2), OF_WEB),
        autoscaler(("Deployment", "web"), json!({"minReplicas": 5, "maxReplicas": 5})),
    ]);
    assert_eq!(names(&manifest), ["web-2", "web-3", "web-4", "web-5d4-0", "web-5d4-1"]);
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
fn an_autoscaler_allows_no_more_than_its_most_replicas() {
    let manifest = read(&[
        apps("Deployment", "web", 7),
        autoscaler(("Deployment", "web"), json!({"minReplicas": 2, "maxReplicas": 4})),
    ]);
    assert_eq!(manifest.pods.len(), 4);
    let note = "HorizontalPodAutoscaler default/s: Deployment `web` counts with 4 replicas instead of 7, because maxReplicas allows no more";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
}

#[test]
fn an_autoscaler_without_a_target_that_it_can_scale_says_so() {
    let bounds = || json!({"minReplicas": 5, "maxReplicas": 9});
    let manifest = read(&[apps("Deployment", "web", 2), autoscaler(("Deployment", "wbe"), bounds())]);
    assert_eq!(manifest.pods.len(), 2);
    let note = "HorizontalPodAutoscaler default/s: its target Deployment `wbe` is not in the files, so it does not count";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
    let trainer = object("example.com/v1", "Trainer", "web", json!({"replicas": 2}));
    let manifest = read(&[trainer, autoscaler(("Trainer", "web"), bounds())]);
    let note = "HorizontalPodAutoscaler default/s: minReplicas (5) is not applied to Trainer `web`";
    assert!(manifest.notes.iter().any(|one| one.starts_with(note)), "{:?}", manifest.notes);
}

#[test]
fn the_bounds_of_an_autoscaler_are_numbers() {
    let wrong = autoscaler(("Deployment", "web"), json!({"minReplicas": "five", "maxReplicas": -1}));
    let found = refused(&wrong);
    assert_eq!(
        found,
        [
            "all.json: HorizontalPodAutoscaler default/s: spec.minReplicas: `\"five\"` is not a number of replicas; write a whole number",
            "all.json: HorizontalPodAutoscaler default/s: spec.maxReplicas: `-1` is not a number of replicas; write a whole number",
        ]
    );
    let manifest = read(&[apps("Deployment", "web", 2), stored(wrong, None)]);
    assert_eq!((manifest.pods.len(), manifest.notes.len()), (2, 2), "{:?}", manifest.notes);
    let crossed = autoscaler(("Deployment", "web"), json!({"minReplicas": 5, "maxReplicas": 2}));
    assert!(refused(&crossed)[0].contains("spec.maxReplicas: `2` is less than minReplicas (5)"));
}

#[test]
fn autoscalers_of_other_projects_are_named_with_what_does_not_count() {
    let target = json!({"scaleTargetRef": {"name": "web"}, "minReplicaCount": 3});
    let note = |object: &Value| read(std::slice::from_ref(object)).notes.join("\n");
    assert_eq!(
        note(&object("keda.sh/v1alpha1", "ScaledObject", "s", target)),
        "ScaledObject default/s: keda.sh/v1alpha1 ScaledObject is not read; the replicas that it sets for Deployment `web` do not \
         count (minReplicaCount: 3)"
    );
    let job = object("keda.sh/v1alpha1", "ScaledJob", "s", json!({"jobTargetRef": {"template": ending()}}));
    assert!(
        note(&job).contains("the Jobs that it makes while there is work do not count (minReplicaCount: 0)")
    );
    let vertical = object("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "s", json!({}));
    assert!(note(&vertical).ends_with("is not read; pods are planned with the requests of their template"));
    assert_eq!(note(&object("keda.sh/v1alpha1", "TriggerAuthentication", "s", json!({}))), "");
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
    let misspelt =
        job(json!({"template": {"spec": {"restartPolcy": "Never", "containers": [{"name": "a"}]}}}));
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
    let more = "spec.pytorchReplicaSpecs.Master.replicas: `2` is more than the one master";
    is_refused_for(&job("PyTorchJob", "pytorchReplicaSpecs", masters), more);
    is_refused_for(&job("MPIJob", "mpiReplicaSpecs", json!({"Master": one()})), "MPIJob has no such role");
    is_refused_for(&job("TFJob", "tfReplicaSpecs", json!({"Driver": one()})), "TFJob has no such role");
    read(&[job("TFJob", "tfReplicaSpecs", json!({"PS": one(), "Chief": one(), "worker": one()}))]);
}

#[test]
fn misspelt_resources_are_refused_or_doubted() {
    let asks = |name: &str| {
        let mut limits = json!({});
        limits[name] = json!("1");
        object("v1", "Pod", "p", json!({"containers": [{"name": "a", "resources": {"limits": limits}}]}))
    };
    for (name, meant) in [("CPU", "cpu"), ("Memory", "memory"), ("gpu", "nvidia.com/gpu")] {
        let problem = format!(
            "spec.containers[0].resources.limits.{name}: `{name}` must be a standard resource type or fully qualified; did you \
             mean {meant}?"
        );
        is_refused_for(&asks(name), &problem);
    }
    is_refused_for(&asks("widgets"), "use cpu, memory, ephemeral-storage, or a name with a domain");
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
    let bound =
        |name: &str| object("v1", "Pod", name, json!({"nodeName": "ghost", "containers": [{"name": "a"}]}));
    let manifest = read(&[bound("p")]);
    let note =
        "Pod default/p: it is bound to node `ghost`, which is not in the files, so nothing is planned for it";
    assert_eq!(manifest.bound_elsewhere, [note]);
    assert_eq!(manifest.unread, ["Pod default/p"]);
    let mut set = apps("Deployment", "web", 2);
    set["spec"]["template"]["spec"]["nodeName"] = json!("ghost");
    let manifest = read(&[set]);
    let note = "Deployment default/web: 2 of its pods are bound to node `ghost`, which is not in the files, so nothing is planned for them";
    assert_eq!((manifest.bound_elsewhere, manifest.unread.len()), (vec![note.to_owned()], 1));
    let manifest = read(&[stored(bound("p"), None), stored(bound("q"), None)]);
    let note = "2 pods run on nodes that are not in the files";
    assert_eq!((manifest.bound_elsewhere, manifest.unread.len()), (vec![note.to_owned()], 0));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}, "status": {"allocatable": {"cpu": "2"}}});
    let manifest = read(&[bound("p"), node]);
    assert!(manifest.bound_elsewhere.is_empty() && manifest.unread.is_empty());
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
