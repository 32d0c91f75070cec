//! Tests autoscalers: the replicas that their targets get, and the pods that go when these are fewer.

use poolwright_core::PodPhase;
use serde_json::{Value, json};

use crate::json_kit::{OF_SET, OF_WEB, apps, ending, has, names, object, pod, read, refused, stored};

fn autoscaler(target: (&str, &str), bounds: Value) -> Value {
    let (kind, name) = target;
    let mut spec = bounds;
    spec["scaleTargetRef"] = json!({"apiVersion": "apps/v1", "kind": kind, "name": name});
    object("autoscaling/v2", "HorizontalPodAutoscaler", "s", spec)
}

#[test]
fn a_target_of_an_autoscaler_has_its_least_replicas() {
    let scaled = |replicas: Option<u32>, least: u32| {
        let mut set = apps("Deployment", "a", 1);
        set["spec"]["replicas"] = json!(replicas);
        let bounds = json!({"minReplicas": least, "maxReplicas": 9});
        read(&[set, autoscaler(("Deployment", "a"), bounds)])
    };
    let manifest = scaled(None, 5);
    assert_eq!(manifest.pods.len(), 5);
    let note = "HorizontalPodAutoscaler default/s: Deployment `a` counts with 5 replicas; it may have up to 9, which are not planned";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
    assert_eq!((scaled(Some(7), 5).pods.len(), scaled(Some(0), 5).pods.len()), (7, 0));
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
fn an_autoscaler_names_its_target_and_its_most_replicas() {
    let bare = object("autoscaling/v2", "HorizontalPodAutoscaler", "s", json!({"minReplicas": 5}));
    assert_eq!(
        refused(&bare),
        [
            "all.json: HorizontalPodAutoscaler default/s: spec.maxReplicas: missing; add it",
            "all.json: HorizontalPodAutoscaler default/s: spec.scaleTargetRef.kind: missing; add it",
            "all.json: HorizontalPodAutoscaler default/s: spec.scaleTargetRef.name: missing; add it",
        ]
    );
    let none = autoscaler(("Deployment", "web"), json!({"maxReplicas": 0}));
    assert!(refused(&none)[0].contains("spec.maxReplicas: `0` is less than 1"));
}

#[test]
fn an_autoscaler_that_a_quota_does_not_allow_scales_nothing() {
    let quota = |allowed: u32| {
        let hard = json!({"count/horizontalpodautoscalers.autoscaling": allowed.to_string()});
        object("v1", "ResourceQuota", "team", json!({"hard": hard}))
    };
    let bounds = || autoscaler(("Deployment", "web"), json!({"minReplicas": 5, "maxReplicas": 9}));
    let pods = |quota: Value, more: &[Value]| {
        let manifest = read(&[&[quota, apps("Deployment", "web", 1), bounds()][..], more].concat());
        let says = manifest.notes.iter().any(|note| {
            note.starts_with(
                "HorizontalPodAutoscaler default/s: it cannot be created, because ResourceQuota `team`",
            )
        });
        (manifest.pods.len(), says)
    };
    assert_eq!(pods(quota(0), &[]), (1, true));
    assert_eq!(pods(quota(1), &[]), (5, false));
    let mut other = stored(autoscaler(("Deployment", "other"), json!({"maxReplicas": 9})), None);
    other["metadata"]["name"] = json!("t");
    assert_eq!(pods(quota(1), &[other]), (1, true), "the stored one counts first");
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

/// A stored Deployment that wants `wanted` pods, its ReplicaSet that wants `has`, and pods of this with their nodes.
fn standing(wanted: u32, has: u32, pods: &[(&str, Option<&str>)]) -> Vec<Value> {
    let mut all = vec![
        stored(apps("Deployment", "web", wanted), None),
        stored(apps("ReplicaSet", "web-5d4", has), OF_WEB),
    ];
    for (name, node) in pods {
        let mut pod = pod(name, OF_SET);
        pod["spec"]["nodeName"] = json!(node);
        pod["status"] = json!({"phase": if node.is_some() { "Running" } else { "Pending" }});
        all.push(pod);
    }
    all
}

#[test]
fn an_autoscaler_with_a_smaller_most_scales_down_the_replica_set_and_pods_without_a_node_go_first() {
    let pods = [("a", Some("n")), ("b", None), ("c", Some("n")), ("d", None)];
    let bounds = || autoscaler(("Deployment", "web"), json!({"minReplicas": 1, "maxReplicas": 3}));
    let mut objects = standing(7, 7, &pods);
    assert_eq!(read(&objects).pods.len(), 7, "without it, the ReplicaSet lacks three");
    objects.push(bounds());
    let manifest = read(&objects);
    assert_eq!(names(&manifest), ["a", "c", "d"]);
    let note = "HorizontalPodAutoscaler default/s: Deployment `web` counts with 3 replicas instead of 7, because maxReplicas allows no more; \
                one of its pods would be deleted and does not count";
    assert!(has(&manifest, note), "{:?}", manifest.notes);
    let waiting = manifest.pods.iter().filter(|pod| !matches!(pod.phase, PodPhase::Bound { .. })).count();
    assert_eq!(waiting, 1);
    // The autoscaler has scaled the Deployment, which has not scaled its ReplicaSet yet.
    let mut objects = standing(3, 7, &pods);
    objects.push(bounds());
    assert_eq!(names(&read(&objects)), ["a", "c", "d"]);
}

#[test]
fn a_rollout_may_have_more_pods_than_an_autoscaler_allows() {
    let mut objects = standing(4, 3, &[("a", None), ("b", None), ("c", None)]);
    objects.push(stored(apps("ReplicaSet", "web-77f", 2), OF_WEB));
    objects.push(autoscaler(("Deployment", "web"), json!({"minReplicas": 1, "maxReplicas": 4})));
    assert_eq!(read(&objects).pods.len(), 5);
}

#[test]
fn the_oldest_replica_sets_and_the_highest_ordinals_go_first() {
    let numbered = |mut set: Value, revision: &str| {
        set["metadata"]["annotations"] = json!({"deployment.kubernetes.io/revision": revision});
        set
    };
    let scaled =
        |kind: &str, most: u32| autoscaler((kind, "web"), json!({"minReplicas": 1, "maxReplicas": most}));
    let manifest = read(&[
        stored(apps("Deployment", "web", 5), None),
        numbered(stored(apps("ReplicaSet", "web-5d4", 3), OF_WEB), "10"),
        numbered(stored(apps("ReplicaSet", "web-77f", 2), OF_WEB), "9"),
        pod("new", OF_SET),
        pod("old", ["apps/v1", "ReplicaSet", "web-77f"]),
        scaled("Deployment", 2),
    ]);
    assert_eq!(names(&manifest), ["new", "web-5d4-1"]);
    let of_set = ["apps/v1", "StatefulSet", "web"];
    let manifest = read(&[
        stored(apps("StatefulSet", "web", 4), None),
        pod("web-0", of_set),
        pod("web-3", of_set),
        scaled("StatefulSet", 2),
    ]);
    assert_eq!(names(&manifest), ["web-0", "web-1"]);
}

#[test]
fn a_group_of_a_leader_worker_set_goes_with_its_leader() {
    const VERSION: &str = "leaderworkerset.x-k8s.io/v1";
    let template = json!({"spec": {"containers": [{"image": "x", "name": "a"}]}});
    let spec = json!({"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}});
    let set = stored(object(VERSION, "LeaderWorkerSet", "llm", spec), None);
    let leaders = stored(apps("StatefulSet", "llm", 2), Some([VERSION, "LeaderWorkerSet", "llm"]));
    let mut objects = vec![set, leaders];
    for group in ["llm-0", "llm-1"] {
        let worker = format!("{group}-1");
        objects.push(pod(group, ["apps/v1", "StatefulSet", "llm"]));
        let mut workers = stored(apps("StatefulSet", group, 1), Some(["v1", "Pod", group]));
        workers["spec"]["ordinals"] = json!({"start": 1});
        objects.push(workers);
        objects.push(pod(&worker, ["apps/v1", "StatefulSet", group]));
    }
    objects.push(autoscaler(("LeaderWorkerSet", "llm"), json!({"maxReplicas": 1})));
    let manifest = read(&objects);
    assert_eq!(names(&manifest), ["llm-0", "llm-0-1"], "{:?}", manifest.notes);
}
