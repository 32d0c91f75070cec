//! Plans pods from the Kubernetes documentation (https://kubernetes.io/docs/), each with the expected purchases.
//! `documentation_workloads.rs` covers controllers, volumes and devices.

use serde_json::{Value, json};

use crate::documentation_kit::{answer, node, pod, requests, running};

fn required(terms: Value) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": terms})
}

fn node_affinity(expressions: Value) -> Value {
    json!({"affinity": {"nodeAffinity": required(json!({"nodeSelectorTerms": [{"matchExpressions": expressions}]}))}})
}

fn spread(key: &str, selector: &str) -> Value {
    json!({"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"foo": selector}}})
}

const ZONE: &str = "topology.kubernetes.io/zone";
const HOST: &str = "kubernetes.io/hostname";

#[test]
fn assign_pods_to_nodes() {
    let selects = |key: &str, value: &str| answer(&[pod("nginx", json!({"nodeSelector": {key: value}}))]);
    assert_eq!(selects("disktype", "ssd"), ["small in a: nginx"], "the pool's template gives the label");
    assert_eq!(selects("disktype", "hdd"), ["left: nginx (NoOfferingFits)"]);
    assert_eq!(selects(ZONE, "b"), ["small in b: nginx"]);
    assert_eq!(selects("node.kubernetes.io/instance-type", "large"), ["large in a: nginx"]);
    assert_eq!(selects("kubernetes.io/arch", "arm64"), ["left: nginx (NoOfferingFits)"]);
    assert_eq!(selects("kubernetes.io/os", "linux"), ["small in a: nginx"]);
    assert_eq!(selects(HOST, "foo-node"), ["left: nginx (NoOfferingFits)"], "no new node has that name");
}

#[test]
fn node_affinity_examples() {
    let zones = json!([{"key": ZONE, "operator": "In", "values": ["antarctica-east1", "c"]}]);
    assert_eq!(
        answer(&[pod("with-node-affinity", node_affinity(zones))]),
        ["small in c: with-node-affinity"]
    );
    let away = json!([{"key": ZONE, "operator": "NotIn", "values": ["a", "b"]}]);
    assert_eq!(answer(&[pod("p", node_affinity(away))]), ["small in c: p"]);
    let ssd = json!([{"key": "disktype", "operator": "Exists"}]);
    assert_eq!(answer(&[pod("p", node_affinity(ssd))]), ["small in a: p"]);
    let none = json!([{"key": "disktype", "operator": "DoesNotExist"}]);
    assert_eq!(answer(&[pod("p", node_affinity(none))]), ["left: p (NoOfferingFits)"]);
    let preferred = json!({"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": {"matchExpressions": [{"key": "none", "operator": "Exists"}]}}]}}});
    assert_eq!(answer(&[pod("p", preferred)]), ["small in a: p"], "a preference forbids nothing");
    let either = json!({"affinity": {"nodeAffinity": required(json!({"nodeSelectorTerms": [
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z"]}]},
        {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}))}});
    assert_eq!(answer(&[pod("p", either)]), ["small in b: p"], "terms are OR-ed");
}

#[test]
fn inter_pod_affinity_examples() {
    let security = |pod: Value, value: &str| {
        let mut pod = pod;
        pod["metadata"]["labels"] = json!({"security": value});
        pod
    };
    let near = json!({"affinity": {"podAffinity": required(json!([
        {"topologyKey": ZONE, "labelSelector": {"matchExpressions": [
            {"key": "security", "operator": "In", "values": ["S1"]}]}}]))}});
    let there = [node("n", "b", json!({})), security(running("r", "n"), "S1")];
    let mut with = there.to_vec();
    with.push(pod(
        "with-pod-affinity",
        json!({"affinity": near["affinity"], "containers": requests(&json!({"cpu": "3"}))}),
    ));
    assert_eq!(answer(&with), ["small in b: with-pod-affinity"], "its node is too small, its zone is not");
    assert_eq!(answer(&[pod("with-pod-affinity", near)]), ["left: with-pod-affinity (TopologyRule)"]);

    let away = json!({"affinity": {"podAntiAffinity": required(json!([
        {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"security": "S1"}}}]))},
        "containers": requests(&json!({"cpu": "3"}))});
    let mut with = there.to_vec();
    with.push(pod("away", away));
    assert_eq!(answer(&with), ["small in a: away"]);
}

#[test]
fn each_web_server_is_on_a_node_with_a_cache() {
    let set = |name: &str, app: &str, affinity: Value| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 3,
            "selector": {"matchLabels": {"app": app}}, "template": {"metadata": {"labels": {"app": app}},
            "spec": {"affinity": affinity, "containers": [{"name": "main", "image": "x"}]}}}})
    };
    let term =
        |app: &str| required(json!([{"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": app}}}]));
    let cache = set("redis-cache", "store", json!({"podAntiAffinity": term("store")}));
    let web = set(
        "web-server",
        "web-store",
        json!({"podAntiAffinity": term("web-store"), "podAffinity": term("store")}),
    );
    let lines = answer(&[cache, web]);
    assert_eq!(lines.len(), 3, "{lines:?}");
    for line in lines {
        assert!(line.contains("redis-cache-") && line.contains("web-server-"), "{line}");
    }
}

#[test]
fn topology_spread_examples() {
    // Three pods on four nodes in two zones, as in the documentation's figure.
    let mut cluster = vec![
        node("node1", "a", json!({})),
        node("node2", "a", json!({})),
        node("node3", "b", json!({})),
        node("node4", "b", json!({})),
    ];
    cluster.extend([running("one", "node1"), running("two", "node2"), running("three", "node3")]);
    let full = requests(&json!({"cpu": "3"}));
    let mypod = |spec: Value| {
        let mut all = cluster.clone();
        all.push(pod("mypod", spec));
        answer(&all)
    };
    let one = json!({"topologySpreadConstraints": [spread(ZONE, "bar")], "containers": full});
    let lines = mypod(one);
    assert!(lines == ["small in b: mypod"] || lines == ["small in c: mypod"], "{lines:?}");
    let on_node = json!({"topologySpreadConstraints": [spread(ZONE, "bar")]});
    let lines = mypod(on_node);
    assert!(!lines[0].contains("node1") && !lines[0].contains("node2"), "zone a has two: {lines:?}");
    let unknown = json!({"topologySpreadConstraints": [spread("rack", "bar")], "containers": full});
    assert_eq!(mypod(unknown), ["left: mypod (TopologyRule)"]);
    let anyway = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"foo": "bar"}}}], "containers": full});
    assert_eq!(mypod(anyway), ["small in a: mypod"]);
    // Node affinity excludes zone c, so it does not count.
    let not_c = json!([{"key": ZONE, "operator": "NotIn", "values": ["c"]}]);
    let mut with_affinity = node_affinity(not_c);
    with_affinity["topologySpreadConstraints"] = json!([spread(ZONE, "bar")]);
    with_affinity["containers"] = full;
    assert_eq!(mypod(with_affinity), ["small in b: mypod"]);
}

#[test]
fn taints_and_tolerations_examples() {
    let pool = |key: &str| {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {}},
            "spec": {"taints": [{"key": key, "value": "value1", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"},
                "conditions": [{"type": "Ready", "status": "True"}]}})
    };
    let tolerating =
        |toleration: Value| answer(&[pool("key1"), pod("p", json!({"tolerations": [toleration]}))]);
    let onto = ["node `n`: p"];
    let beside = ["small in a: p"];
    assert_eq!(
        tolerating(json!({"key": "key1", "operator": "Equal", "value": "value1", "effect": "NoSchedule"})),
        onto
    );
    assert_eq!(tolerating(json!({"key": "key1", "operator": "Exists", "effect": "NoSchedule"})), onto);
    assert_eq!(tolerating(json!({"operator": "Exists"})), onto);
    assert_eq!(tolerating(json!({"key": "key1", "operator": "Equal", "value": "other"})), beside);
    assert_eq!(tolerating(json!({"key": "key1", "operator": "Exists", "effect": "NoExecute"})), beside);
    assert_eq!(tolerating(json!({"key": "key2", "operator": "Exists"})), beside);
}

#[test]
fn resource_examples() {
    let asking = |amounts: Value| answer(&[pod("p", json!({"containers": requests(&amounts)}))]);
    assert_eq!(asking(json!({"memory": "64Mi", "cpu": "250m"})), ["small in a: p"]);
    assert_eq!(asking(json!({"cpu": "100"})), ["left: p (NoOfferingFits)"]);
    assert_eq!(asking(json!({"memory": "1000Gi"})), ["left: p (NoOfferingFits)"]);
    assert_eq!(asking(json!({"nvidia.com/gpu": 1})), ["gpu in a: p"]);
    assert_eq!(asking(json!({"nvidia.com/gpu": 5})), ["left: p (NoOfferingFits)"]);
    assert_eq!(asking(json!({"example.com/dongle": 3})), ["left: p (NoOfferingFits)"]);
    assert_eq!(asking(json!({"ephemeral-storage": "2Gi"})), ["small in a: p"]);
    assert_eq!(asking(json!({"ephemeral-storage": "200Gi"})), ["left: p (NoOfferingFits)"]);
    assert_eq!(asking(json!({"hugepages-2Mi": "100Mi", "memory": "100Mi"})), ["huge in c: p"]);
    // The larger of single init containers and the sum of containers.
    let init = json!({"containers": requests(&json!({"cpu": "1"})),
        "initContainers": [{"name": "init", "image": "x", "resources": {"requests": {"cpu": "6"}}}]});
    assert_eq!(answer(&[pod("p", init)]), ["large in a: p"]);
    // A sidecar runs beside the other containers.
    let sidecar = json!({"containers": requests(&json!({"cpu": "3"})), "initContainers": [
        {"name": "side", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}]});
    assert_eq!(answer(&[pod("p", sidecar)]), ["large in a: p"]);
    let overhead = json!({"containers": requests(&json!({"cpu": "3900m"})), "overhead": {"cpu": "250m"},
        "runtimeClassName": "kata"});
    assert_eq!(answer(&[pod("p", overhead)]), ["large in a: p"]);
}

#[test]
fn pods_that_buy_nothing() {
    assert_eq!(
        answer(&[pod("test-pod", json!({"schedulingGates": [{"name": "example.com/foo"}]}))]),
        ["left: test-pod (SchedulingGated)"]
    );
    assert_eq!(
        answer(&[pod("annotation-second-scheduler", json!({"schedulerName": "my-scheduler"}))]),
        ["left: annotation-second-scheduler (OtherScheduler)"]
    );
    assert_eq!(answer(&[pod("nginx", json!({"nodeName": "kube-01"}))]), [""; 0], "somebody placed it");
    let suspended = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "myjob"}, "spec": {
        "suspend": true, "parallelism": 1, "completions": 5, "template": {"spec": {"restartPolicy": "Never",
        "containers": [{"name": "main", "image": "x"}]}}}});
    assert_eq!(answer(&[suspended]), [""; 0]);
}

#[test]
fn host_port_examples() {
    let port = |name: &str, port: u16| {
        pod(
            name,
            json!({"containers": [{"name": "main", "image": "x", "ports": [{"containerPort": 80, "hostPort": port}]}]}),
        )
    };
    assert_eq!(answer(&[port("one", 8080), port("two", 8080)]).len(), 2);
    assert_eq!(answer(&[port("one", 8080), port("two", 8081)]).len(), 1);
}

#[test]
fn a_daemonset_takes_its_part_of_a_new_node() {
    let set = json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "fluentd-elasticsearch"}, "spec": {
        "selector": {"matchLabels": {"name": "fluentd"}}, "template": {"metadata": {"labels": {"name": "fluentd"}},
        "spec": {"containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "200Mi"}}}]}}}});
    let large = pod("p", json!({"containers": requests(&json!({"cpu": "4"}))}));
    assert_eq!(answer(std::slice::from_ref(&large)), ["small in a: p"]);
    assert_eq!(answer(&[set, large]), ["large in a: p"]);
}
