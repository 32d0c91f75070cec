//! Tests the conversion of pods, nodes and DaemonSets.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use poolwright_catalog::ResourceName;
use poolwright_core::{Operator, PodHealth, PodPhase, PodRole, RequestPart, TolerationMatch};
use poolwright_intake::{daemonset, node, pod};
use poolwright_terms::TaintEffect;
use serde_json::{Value, json};

fn read(spec: Value) -> poolwright_core::Pod {
    let object = json!({"metadata": {"name": "a", "namespace": "ml", "uid": "u1"}, "spec": spec});
    pod(&object_of(object)).expect("the pod converts")
}

fn object_of(mut value: Value) -> Pod {
    value["apiVersion"] = "v1".into();
    value["kind"] = "Pod".into();
    serde_json::from_value(value).expect("a pod")
}

fn with(field: &str, value: Value) -> Value {
    let mut spec = json!({"containers": [{"image": "x", "name": "a"}]});
    spec[field] = value;
    spec
}

fn unmodelled(spec: Value) -> Vec<String> {
    read(spec).spec.unmodelled.iter().map(|rule| format!("{}: {}", rule.field, rule.rule)).collect()
}

#[test]
fn a_container_that_states_only_limits_requests_them() {
    let pod = read(json!({"containers": [
        {"image": "x", "name": "a", "resources": {"limits": {"cpu": "2", "nvidia.com/gpu": "1"}, "requests": {"cpu": "500m"}}},
        {"image": "x", "name": "b", "resources": {"limits": {"memory": "1Gi"}}},
    ]}));
    let requests = &pod.spec.requests;
    assert_eq!(
        (requests.get("cpu"), requests.get("memory"), requests.get("nvidia.com/gpu")),
        (500, 1 << 30, 1)
    );
    assert_eq!(requests.get(ResourceName::PODS), 1);
}

#[test]
fn init_containers_count_where_they_are_larger_and_sidecars_and_overhead_always() {
    let pod = read(json!({
        "initContainers": [
            {"image": "x", "name": "side", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
            {"image": "x", "name": "load", "resources": {"requests": {"cpu": "4", "memory": "1Gi"}}},
        ],
        "containers": [{"image": "x", "name": "a", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}],
        "overhead": {"cpu": "50m"},
    }));
    assert_eq!((pod.spec.requests.get("cpu"), pod.spec.requests.get("memory")), (4150, 2 << 30));
    let [cpu] = &pod.request_origins[..] else { panic!("{:?}", pod.request_origins) };
    let named = |name: &str| name.to_owned();
    assert_eq!(
        (cpu.resource.as_str(), cpu.parts.as_slice()),
        (
            "cpu",
            &[
                RequestPart::Init { container: named("load"), amount: 4000 },
                RequestPart::Sidecar { container: named("side"), amount: 100 },
                RequestPart::Overhead { runtime_class: None, amount: 50 },
            ][..]
        ),
        "the containers ask for more memory than the init container"
    );
    let plain =
        read(json!({"containers": [{"image": "x", "name": "a", "resources": {"requests": {"cpu": "1"}}}]}));
    assert_eq!(plain.request_origins, []);
    let whole = read(
        json!({"resources": {"requests": {"cpu": "3"}}, "runtimeClassName": "kata", "overhead": {"memory": "1Mi"},
        "containers": [{"image": "x", "name": "a", "resources": {"requests": {"cpu": "1"}}}]}),
    );
    let parts: Vec<&RequestPart> = whole.request_origins.iter().flat_map(|origin| &origin.parts).collect();
    assert_eq!(
        parts,
        [
            &RequestPart::Whole { amount: 3000 },
            &RequestPart::Overhead { runtime_class: Some(named("kata")), amount: 1 << 20 },
        ]
    );
}

#[test]
fn requests_of_the_whole_pod_count_instead_of_those_of_its_containers() {
    let containers = json!([{"name": "a", "resources": {"requests": {"cpu": "1"}}}]);
    let stated = read(json!({"containers": containers, "resources": {"requests": {"cpu": "3"}}}));
    assert_eq!(stated.spec.requests.get("cpu"), 3000);
    let limits = json!({"limits": {"cpu": "8", "memory": "1Gi"}});
    let limited = read(json!({"containers": containers, "resources": limits}));
    assert_eq!((limited.spec.requests.get("cpu"), limited.spec.requests.get("memory")), (1000, 1 << 30));
}

#[test]
fn a_bad_quantity_names_the_pod_and_the_path() {
    let object = json!({"metadata": {"name": "a", "namespace": "ml"}, "spec": {"containers": [
        {"image": "x", "name": "a", "resources": {"requests": {"memory": "10GB"}}},
    ]}});
    let error = pod(&object_of(object)).unwrap_err();
    assert_eq!(error.object, "Pod ml/a");
    assert_eq!(error.path, "spec.containers[0].resources.requests.memory");
    assert!(error.to_string().contains("`10GB`") && error.next_step.contains("Gi"), "{error}");
}

#[test]
fn selectors_affinity_and_tolerations_are_kept_as_they_are() {
    let pod = read(json!({
        "containers": [],
        "nodeSelector": {"team": "vision"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [
                {"key": "poolwright.dev/gpu-model", "operator": "In", "values": ["a100", "h100"]},
                {"key": "poolwright.dev/gpu-memory", "operator": "Gt", "values": ["40000"]},
            ]},
            {},
        ]}}},
        "tolerations": [{"operator": "Exists"}, {"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
    }));
    let terms = pod.spec.node_affinity.clone().unwrap();
    let models: BTreeSet<_> = ["a100", "h100"].map(str::to_owned).into();
    assert_eq!(terms[0].requirements[0].operator, Operator::In(models));
    assert_eq!(terms[0].requirements[1].operator, Operator::Gt(40000));
    assert_eq!(terms[1].requirements.len(), 0, "an empty term stays, and matches nothing");
    assert_eq!(pod.spec.node_selector["team"], "vision");
    assert_eq!((&pod.spec.tolerations[0].key, pod.spec.tolerations[0].effect), (&None, None));
    assert_eq!(pod.spec.tolerations[1].matches, TolerationMatch::Equal("yes".into()));
    assert_eq!(pod.spec.tolerations[1].effect, Some(TaintEffect::NoSchedule));
    assert_eq!(pod.spec.unmodelled, []);
}

#[test]
fn every_rule_that_is_not_modelled_is_named_by_its_field() {
    let volume = |source: Value| {
        let mut volume = json!({"name": "v"});
        volume.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        json!([{"name": "tmp", "emptyDir": {}}, volume])
    };
    let cases = [
        (
            with("volumes", volume(json!({"gcePersistentDisk": {"pdName": "d"}}))),
            "spec.volumes[1].gcePersistentDisk: a disk by name",
        ),
        (
            with("resourceClaims", json!([{"name": "gpu"}])),
            "spec.resourceClaims: dynamic resource allocation (DRA)",
        ),
        (with("os", json!({"name": "windows"})), "spec.os: an operating system"),
        (
            with("tolerations", json!([{"key": "a", "operator": "Gt", "value": "5"}])),
            "spec.tolerations[0]: a toleration with the operator `Gt`",
        ),
    ];
    for (spec, expected) in cases {
        let found = unmodelled(spec);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with(expected), "{} is not {expected}", found[0]);
    }
}

#[test]
fn preferences_and_volumes_that_any_node_can_provide_are_no_obstacle() {
    let preferred = json!([{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}}]);
    let preferred = json!({"preferredDuringSchedulingIgnoredDuringExecution": preferred});
    let spec = json!({
        "containers": [{"image": "x", "name": "a", "ports": [{"containerPort": 80}]}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
        "affinity": {"podAffinity": preferred, "podAntiAffinity": preferred},
        "volumes": [
            {"name": "a", "configMap": {"name": "c"}}, {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "emptyDir": {}}, {"name": "d", "projected": {}}, {"name": "e", "hostPath": {"path": "/dev"}},
            {"name": "f", "downwardAPI": {}}, {"name": "g", "nfs": {"server": "s", "path": "/"}},
            {"name": "h", "csi": {"driver": "secrets"}}, {"name": "i", "fc": {}},
        ],
        "os": {"name": "linux"},
    });
    assert_eq!(unmodelled(spec), [""; 0]);
}

#[test]
fn an_affinity_that_makes_no_sense_is_named_instead_of_dropped() {
    let spec = with(
        "affinity",
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["much"]}]},
        ]}}}),
    );
    let found = unmodelled(spec);
    assert!(
        found[0].contains("nodeSelectorTerms[0].matchExpressions[0]: node affinity with the operator `Gt`"),
        "{found:?}"
    );
}

#[test]
fn the_phase_of_a_pod_comes_from_its_spec_and_status() {
    let phase = |spec: Value, status: Value| {
        let mut spec = spec;
        spec["containers"] = json!([]);
        pod(&object_of(json!({"metadata": {"name": "a"}, "spec": spec, "status": status}))).unwrap().phase
    };
    let unschedulable = json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.", "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    assert_eq!(phase(json!({}), json!({})), PodPhase::Waiting);
    assert_eq!(
        phase(json!({"nodeName": "n"}), json!({"phase": "Running"})),
        PodPhase::Bound { node: "n".into() }
    );
    assert_eq!(phase(json!({"nodeName": "n"}), json!({"phase": "Failed"})), PodPhase::Finished);
    assert_eq!(phase(json!({"schedulingGates": [{"name": "queue"}]}), json!({})), PodPhase::Gated);
    let PodPhase::Unschedulable { since, message } = phase(json!({}), unschedulable) else {
        panic!("unschedulable")
    };
    assert_eq!(since.to_string(), "2026-01-01T00:00:00Z");
    assert!(message.contains("Insufficient nvidia.com/gpu"));
}

#[test]
fn the_health_of_a_pod_comes_from_its_phase_and_its_condition_ready() {
    let health = |status: Value| {
        let object = json!({"metadata": {"name": "a"}, "spec": {"containers": []}, "status": status});
        pod(&object_of(object)).unwrap().health
    };
    let ready = |phase: &str, ready: &str| json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
    assert_eq!(health(ready("Pending", "False")), PodHealth::Pending);
    assert_eq!(health(ready("Running", "True")), PodHealth::Ready);
    assert_eq!(health(ready("Running", "False")), PodHealth::NotReady);
    assert_eq!(health(ready("Unknown", "Unknown")), PodHealth::NotReady);
    assert_eq!(health(json!({"phase": "Running"})), PodHealth::NotReady);
    assert_eq!(health(json!({})), PodHealth::Ready, "nothing is known of a pod that was never stored");
}

#[test]
fn pods_of_daemonsets_and_mirrors_are_told_from_work() {
    let role = |meta: Value| pod(&object_of(json!({"metadata": meta}))).unwrap().role;
    let owner = |kind: &str, version: &str| {
        json!({"name": "a", "ownerReferences": [
            {"apiVersion": version, "kind": kind, "name": "o", "uid": "1", "controller": true},
        ]})
    };
    assert_eq!(role(owner("ReplicaSet", "apps/v1")), PodRole::Workload);
    assert_eq!(role(owner("DaemonSet", "apps/v1")), PodRole::DaemonSet);
    assert_eq!(role(owner("DaemonSet", "apps.kruise.io/v1alpha1")), PodRole::Workload);
    assert_eq!(role(owner("Node", "v1")), PodRole::Mirror);
    assert_eq!(
        role(json!({"name": "a", "annotations": {"kubernetes.io/config.mirror": "x"}})),
        PodRole::Mirror
    );
}

#[test]
fn a_pod_names_the_daemonset_that_is_its_controller() {
    let named = |kind: &str, name: &str, is_controller: bool| {
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": is_controller});
        pod(&object_of(json!({"metadata": {"name": "agent-x", "ownerReferences": [owner]}})))
            .unwrap()
            .daemonset
    };
    assert_eq!(named("DaemonSet", "agent", true).as_deref(), Some("agent"));
    assert_eq!(named("DaemonSet", "agent", false), None);
    assert_eq!(named("DaemonSet", "", true), None);
    assert_eq!(named("ReplicaSet", "web", true), None);
}

#[test]
fn a_node_that_is_cordoned_carries_the_taint_at_once() {
    let object: Node = serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n", "annotations": {"poolwright.dev/cordoned-until": "initialization"}},
        "spec": {"unschedulable": true, "providerID": "kwok://n", "taints": [{"key": "a", "effect": "NoExecute"}]},
        "status": {"allocatable": {"cpu": "3920m", "nvidia.com/gpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }))
    .unwrap();
    let node = node(&object).unwrap();
    assert!(node.ready && node.cordoned && node.cordoned_until_initialized);
    assert_eq!(node.provider_id.as_deref(), Some("kwok://n"));
    assert_eq!(
        node.taints.iter().map(|taint| taint.key.as_str()).collect::<Vec<_>>(),
        ["a", "node.kubernetes.io/unschedulable"]
    );
    assert_eq!((node.allocatable.get("cpu"), node.allocatable.get("nvidia.com/gpu")), (3920, 1));
}

#[test]
fn pods_of_a_daemonset_tolerate_what_its_controller_adds() {
    let object: DaemonSet = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d", "namespace": "kube-system"},
        "spec": {"selector": {}, "template": {"spec": {"containers": [{"image": "x", "name": "a", "resources": {"requests": {"cpu": "100m"}}}]}}},
    }))
    .unwrap();
    let set = daemonset(&object).unwrap();
    assert_eq!(set.spec.requests.get("cpu"), 100);
    assert!(
        set.spec.tolerations.iter().any(|t| t.key.as_deref() == Some("node.kubernetes.io/unschedulable"))
    );
}
