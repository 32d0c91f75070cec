//! Tests that every input from a watch or a file gives an object or an error, never a panic.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{Node, Pod};
use poolwright_api::{NodeClaim, NodePool};
use poolwright_intake::manifest::parse;
use poolwright_intake::{daemonset, node, node_claim, node_pool, pod};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Generates text near the expected formats, and sometimes far from them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[-+]?[0-9]{0,25}[.]?[0-9]{0,3}(n|u|m|k|Ki|Mi|Gi|Ei|E|e[0-9]{1,3})?",
        "(In|NotIn|Exists|DoesNotExist|Gt|Lt|Gte|NoSchedule|NoExecute|Equal|DoNotSchedule|Always)?",
        "[0-9]{1,10}(ms|s|m|h)",
        "\\PC{0,8}",
    ]
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(text(), 0..3)
}

fn amounts() -> impl Strategy<Value = Value> {
    let name = prop_oneof![
        Just("cpu".to_owned()),
        Just("memory".to_owned()),
        Just("nvidia.com/gpu".to_owned()),
        text()
    ];
    prop::collection::btree_map(name, text(), 0..4).prop_map(|map| json!(map))
}

fn resources() -> impl Strategy<Value = Value> {
    (amounts(), amounts()).prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

prop_compose! {
    fn containers()(all in prop::collection::vec((text(), resources(), text(), any::<i32>()), 0..3)) -> Value {
        all.into_iter().map(|(name, resources, restart, port)| json!({
            "name": name, "resources": resources, "restartPolicy": restart, "ports": [{"containerPort": port, "hostPort": port}],
        })).collect()
    }
}

prop_compose! {
    fn pod_spec()(
        containers in containers(), init in containers(), whole in resources(), overhead in amounts(),
        (key, operator, values, effect) in (text(), text(), texts(), text()), host in any::<bool>(), priority in any::<i32>(),
    ) -> Value {
        json!({
            "containers": containers, "initContainers": init, "resources": whole, "overhead": overhead,
            "hostNetwork": host, "priority": priority, "nodeName": effect,
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}, {},
            ]}}},
            "tolerations": [{"key": key, "operator": operator, "effect": effect}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": operator}],
        })
    }
}

fn object(api_version: &str, kind: &str, fields: Value) -> Value {
    let mut object =
        Map::from_iter([("apiVersion".into(), json!(api_version)), ("kind".into(), json!(kind))]);
    object.extend(fields.as_object().cloned().unwrap_or_default());
    Value::Object(object)
}

proptest! {
    #[test]
    fn no_pod_makes_intake_panic_and_one_without_a_bad_quantity_or_port_always_converts(spec in pod_spec()) {
        let value = object("v1", "Pod", json!({"metadata": {"name": "a"}, "spec": spec}));
        let read: Pod = serde_json::from_value(value).unwrap();
        if let Err(error) = pod(&read) {
            let bad = ["resources", "overhead", "hostPort"];
            prop_assert!(bad.iter().any(|field| error.path.contains(field)), "{error}");
        }
        let value = object("apps/v1", "DaemonSet", json!({"spec": {"selector": {}, "template": {"spec": spec}}}));
        let read: DaemonSet = serde_json::from_value(value).unwrap();
        let _ = daemonset(&read);
    }

    #[test]
    fn no_node_makes_intake_panic(allocatable in amounts(), key in text(), effect in text()) {
        let value = object("v1", "Node", json!({
            "spec": {"taints": [{"key": key, "effect": effect}]}, "status": {"allocatable": allocatable},
        }));
        let _ = node(&serde_json::from_value::<Node>(value).unwrap());
    }

    #[test]
    fn no_pool_makes_intake_panic(limits in amounts(), values in texts(), length in text(), after in text(), weight in any::<i32>()) {
        let value = object("poolwright.dev/v1alpha1", "NodePool", json!({"metadata": {}, "spec": {
            "limits": limits, "weight": weight, "scaleToZero": {"after": after},
            "template": {"spec": {
                "nodeClassRef": {"group": "", "kind": "", "name": ""}, "deadlines": {"launch": length},
                "requirements": [{"key": "a", "operator": "Gt", "values": values}],
            }},
        }}));
        let _ = node_pool(&serde_json::from_value::<NodePool>(value).unwrap());
    }

    #[test]
    fn no_claim_makes_intake_panic(allocatable in amounts(), price in text(), pods in texts(), length in text()) {
        let value = object("poolwright.dev/v1alpha1", "NodeClaim", json!({"metadata": {}, "spec": {
            "nodeClassRef": {"group": "", "kind": "", "name": ""}, "pods": pods, "deadlines": {"launch": length},
            "offerings": [{"instanceType": "", "zone": "", "capacityType": "spot", "usdPerHour": price, "allocatable": allocatable}],
        }}));
        let _ = node_claim(&serde_json::from_value::<NodeClaim>(value).unwrap());
    }

    #[test]
    fn no_text_makes_the_reader_of_manifests_panic(text in "(\\PC|\n| ){0,200}") {
        let _ = parse("a.yaml", &text);
    }

    #[test]
    fn no_manifest_that_is_nearly_right_makes_the_reader_panic(spec in pod_spec(), replicas in any::<i32>(), kind in 0usize..4) {
        let kinds = [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("batch/v1", "Job"), ("v1", "Pod")];
        let replicas = replicas % 1000;
        let value = object(kinds[kind].0, kinds[kind].1, json!({"metadata": {"name": "a"}, "spec": {
            "selector": {}, "replicas": replicas, "parallelism": replicas, "template": {"spec": spec},
        }}));
        let _ = parse("a.json", &value.to_string());
    }
}
