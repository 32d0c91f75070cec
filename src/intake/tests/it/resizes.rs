//! Tests the requests of a pod that is resized while it runs, and of a pod with pod-level resources.

use k8s_openapi::api::core::v1::Pod;
use poolwright_core::rules::NODE_NAME_FIELD;
use poolwright_core::{Operator, PodPhase, Requirement};
use poolwright_intake::pod;
use serde_json::{Value, json};

fn read(spec: Value, status: Value) -> poolwright_core::Pod {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "ml", "uid": "u1"},
        "spec": spec, "status": status,
    });
    let object: Pod = serde_json::from_value(object).expect("a pod");
    pod(&object).expect("the pod converts")
}

fn cpu(spec: Value, status: Value) -> u64 {
    read(spec, status).spec.requests.get("cpu")
}

fn asks(cpu: &str) -> Value {
    json!({"name": "a", "resources": {"requests": {"cpu": cpu}}})
}

fn has(cpu: &str, admitted: &str) -> Value {
    json!({"name": "a", "ready": true, "restartCount": 0, "image": "", "imageID": "",
        "resources": {"requests": {"cpu": cpu}}, "allocatedResources": {"cpu": admitted}})
}

#[test]
fn a_resize_on_its_way_counts_as_the_largest_of_wanted_admitted_and_given() {
    let one = |wanted: &str, given: &str, admitted: &str| {
        cpu(json!({"containers": [asks(wanted)]}), json!({"containerStatuses": [has(given, admitted)]}))
    };
    assert_eq!(one("1", "1", "1"), 1000);
    // An increase counts before the node grants it. A decrease counts once the node has applied it.
    assert_eq!((one("4", "1", "1"), one("4", "1", "4")), (4000, 4000));
    assert_eq!((one("1", "4", "4"), one("1", "4", "1"), one("1", "2", "4")), (4000, 4000, 4000));
}

#[test]
fn a_resize_that_its_node_can_never_admit_does_not_count() {
    let pending = |reason: &str| {
        json!({
            "containerStatuses": [has("1", "1")],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        })
    };
    let spec = json!({"containers": [asks("64")]});
    assert_eq!(cpu(spec.clone(), pending("Infeasible")), 1000);
    assert_eq!(cpu(spec, pending("Deferred")), 64000);
}

#[test]
fn sidecars_are_resized_too_and_init_containers_are_not() {
    let sidecar = json!({"name": "a", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}});
    let spec = json!({"initContainers": [sidecar], "containers": [{"image": "x", "name": "b"}]});
    assert_eq!(cpu(spec, json!({"initContainerStatuses": [has("3", "3")]})), 3000);
    let spec = json!({"initContainers": [asks("1")], "containers": [{"image": "x", "name": "b"}]});
    assert_eq!(cpu(spec, json!({"initContainerStatuses": [has("3", "3")]})), 1000);
}

#[test]
fn a_pod_that_is_resized_as_a_whole_counts_so_and_its_containers_do_not() {
    let spec = json!({"resources": {"requests": {"cpu": "2"}}, "containers": [asks("1")]});
    let status = json!({"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}});
    assert_eq!(cpu(spec, status), 5000);
}

#[test]
fn huge_pages_and_scratch_disk_are_counted_and_huge_pages_of_a_pod_are_its_limit() {
    let container = json!({"name": "a", "resources": {
        "requests": {"ephemeral-storage": "3Gi"}, "limits": {"hugepages-2Mi": "4Mi", "memory": "1Gi"},
    }});
    let requests = read(json!({"containers": [container]}), json!({})).spec.requests.clone();
    assert_eq!((requests.get("ephemeral-storage"), requests.get("hugepages-2Mi")), (3 << 30, 4 << 20));
    let whole = json!({"limits": {"hugepages-2Mi": "8Mi"}});
    let requests =
        read(json!({"resources": whole, "containers": [container]}), json!({})).spec.requests.clone();
    assert_eq!((requests.get("hugepages-2Mi"), requests.get("memory")), (8 << 20, 1 << 30));
}

#[test]
fn a_node_is_asked_for_by_name_and_other_fields_are_named() {
    let by = |field: Value| {
        let terms = json!([{"matchFields": [field]}]);
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        read(
            json!({"containers": [{"image": "x", "name": "a"}], "affinity": {"nodeAffinity": required}}),
            json!({}),
        )
        .spec
    };
    let spec = by(json!({"key": "metadata.name", "operator": "In", "values": ["n1"]}));
    let wanted =
        Requirement { key: NODE_NAME_FIELD.to_owned(), operator: Operator::In(["n1".to_owned()].into()) };
    assert_eq!(spec.node_affinity.as_ref().unwrap()[0].requirements, [wanted]);
    assert_eq!(spec.unmodelled, []);
    let spec = by(json!({"key": "spec.unschedulable", "operator": "In", "values": ["false"]}));
    assert_eq!(
        (spec.unmodelled[0].field.as_str(), spec.unmodelled[0].rule.as_str()),
        (
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]",
            "node affinity by the field `spec.unschedulable` with the operator `In`"
        )
    );
}

#[test]
fn a_pod_that_names_its_node_is_there_even_while_it_is_gated() {
    let spec = json!({"containers": [{"image": "x", "name": "a"}], "nodeName": "n1"});
    assert_eq!(read(spec, json!({})).phase, PodPhase::Bound { node: "n1".into() });
    let spec = json!({"containers": [{"image": "x", "name": "a"}], "schedulingGates": [{"name": "quota"}]});
    assert_eq!(read(spec, json!({})).phase, PodPhase::Gated);
}
