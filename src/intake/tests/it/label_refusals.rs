//! Tests that keys and values of labels, annotations and selectors which an API server refuses are errors of written objects.

use serde_json::{Value, json};

use crate::json_kit::{apps, object, read, refused, stored};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Returns what is told of keys, and of values.
fn key(key: &str) -> String {
    format!("an API server refuses the key `{key}`; write it as `name` or `domain/name`")
}

fn value(value: &str) -> String {
    format!("an API server refuses `{value}` as the value of a label or taint; write letters, digits")
}

/// Checks that the problems of an object have these paths and causes, and that a stored one is read as it is.
fn has_problems(object: &Value, problems: &[(&str, String)]) {
    let found = refused(object);
    assert_eq!(found.len(), problems.len(), "{found:#?}");
    for (path, cause) in problems {
        let part = format!("{path}: {cause}");
        assert!(found.iter().any(|one| one.contains(&part)), "{part} is not in {found:#?}");
    }
    read(&[stored(object.clone(), None)]);
}

fn pod(spec: Value) -> Value {
    let mut pod = object("v1", "Pod", "a", json!({"containers": [{"image": "x", "name": "c"}]}));
    for (field, value) in spec.as_object().expect("fields") {
        pod["spec"][field] = value.clone();
    }
    pod
}

fn long(length: usize) -> String {
    "a".repeat(length)
}

#[test]
fn keys_and_values_of_labels_have_the_form_and_the_length_that_kubernetes_wants() {
    let labelled = |key: &str, value: &str| {
        let mut pod = pod(json!({}));
        pod["metadata"]["labels"] = json!({key: value});
        pod
    };
    let longest = format!("{}/{}", [long(63), long(63), long(63), long(61)].join("."), long(63));
    for (key, value) in
        [("app", "web-1_b.C"), ("example.com/App_1", ""), (longest.as_str(), long(63).as_str()), ("0", "0")]
    {
        read(&[labelled(key, value)]);
    }
    for wrong in ["", "a b", "-a", "a.", "/a", "a/", "a/b/c", "Example.com/a", "ex_ample/a", "ä"] {
        let found = refused(&labelled(wrong, "x"));
        assert!(found.len() == 1 && found[0].contains(&key(wrong)), "{wrong}: {found:?}");
    }
    for wrong in ["a b", "-a", "a-", "a/b", "ä", "a:b"] {
        let found = refused(&labelled("app", wrong));
        assert!(
            found.len() == 1 && found[0].contains(&format!("metadata.labels.app: {}", value(wrong))),
            "{found:?}"
        );
    }
    has_problems(
        &labelled("app", &long(64)),
        &[("metadata.labels.app", "the value has 64 characters, and 63 are the most; shorten it".to_owned())],
    );
    let name = format!("example.com/{}", long(64));
    let found = refused(&labelled(&name, "x"));
    assert!(
        found[0].ends_with("the name in the key has 64 characters, and 63 are the most; shorten it"),
        "{found:?}"
    );
}

#[test]
fn annotations_may_say_anything_but_not_too_much_under_keys_in_any_case() {
    let annotated = |annotations: Value| {
        let mut web = apps("Deployment", "web", 1);
        web["spec"]["template"]["metadata"]["annotations"] = annotations;
        web
    };
    read(&[annotated(json!({"Example.com/Note": "anything: {at: all}\n"}))]);
    has_problems(
        &annotated(json!({"two words": "x"})),
        &[("spec.template.metadata.annotations[\"two words\"]", key("two words"))],
    );
    let bytes = "x".repeat(256 << 10);
    has_problems(
        &annotated(json!({"n": bytes})),
        &[(
            "spec.template.metadata.annotations",
            "together they have 262145 bytes, and 262144 are the most".to_owned(),
        )],
    );
}

#[test]
fn labels_are_judged_on_objects_of_every_kind_and_in_every_template() {
    let mut service = object("v1", "Service", "s", json!({"selector": {"app": "a b"}}));
    service["metadata"]["labels"] = json!({"app": "b c"});
    has_problems(&service, &[("metadata.labels.app", value("b c")), ("spec.selector.app", value("a b"))]);
    let mut other = object("example.com/v1", "Widget", "w", json!({}));
    other["metadata"]["labels"] = json!({"app": "b c"});
    has_problems(&other, &[("metadata.labels.app", value("b c"))]);
    let mut pool = object(
        "poolwright.dev/v1alpha1",
        "NodePool",
        "p",
        json!({"template": {"spec": {
        "nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "default"}}}}),
    );
    pool["metadata"]["labels"] = json!({"app": "b c"});
    let found = refused(&pool);
    assert!(found.len() == 1 && found[0].contains("metadata.labels.app: "), "{found:?}");
    let taints = json!([{"key": "a b", "value": "c d", "effect": "NoSchedule"}]);
    let node = object("v1", "Node", "n", json!({"taints": taints}));
    has_problems(&node, &[("spec.taints[0].key", key("a b")), ("spec.taints[0].value", value("c d"))]);
    let mut cron = object(
        "batch/v1",
        "CronJob",
        "c",
        json!({"schedule": "@daily",
        "jobTemplate": {"spec": {"template": crate::json_kit::ending()}}}),
    );
    cron["spec"]["jobTemplate"]["spec"]["template"]["metadata"] = json!({"labels": {"app": "b c"}});
    let place = "spec.jobTemplate.spec.template.metadata.labels.app";
    has_problems(&cron, &[(place, value("b c"))]);
}

#[test]
fn selectors_of_nodes_and_pods_have_only_labels_that_something_can_have() {
    let terms = json!([{"matchExpressions": [{"key": "a b", "operator": "In", "values": ["ok", "c d"]}]}]);
    let wanted = json!([{"weight": 1, "preference": {"matchExpressions": [{"key": "ok", "operator": "In", "values": ["c d"]}]}}]);
    let nodes = json!({REQUIRED: {"nodeSelectorTerms": terms}, PREFERRED: wanted});
    let near = json!([{"topologyKey": "a b", "labelSelector": {"matchLabels": {"app": "e f"},
        "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["g h"]}]}}]);
    let spread = json!([{"maxSkew": 1, "topologyKey": "i j", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["k l"],
        "labelSelector": {"matchLabels": {"app": "m n"}}}]);
    let spec = json!({"nodeSelector": {"disk": "o p"}, "affinity": {"nodeAffinity": nodes, "podAffinity": {REQUIRED: near}},
        "topologySpreadConstraints": spread, "tolerations": [{"key": "q r", "value": "s t", "effect": "NoSchedule"}]});
    let term = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0]";
    let other = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    has_problems(
        &pod(spec),
        &[
            (&format!("{term}.key"), key("a b")),
            // A preference may name any value.
            (&format!("{term}.values[1]"), value("c d")),
            (&format!("{other}.topologyKey"), key("a b")),
            (&format!("{other}.labelSelector.matchLabels.app"), value("e f")),
            (&format!("{other}.labelSelector.matchExpressions[0].values[0]"), value("g h")),
            ("spec.topologySpreadConstraints[0].topologyKey", key("i j")),
            ("spec.topologySpreadConstraints[0].matchLabelKeys[0]", key("k l")),
            ("spec.topologySpreadConstraints[0].labelSelector.matchLabels.app", value("m n")),
            ("spec.nodeSelector.disk", value("o p")),
            ("spec.tolerations[0].key", key("q r")),
            ("spec.tolerations[0].value", value("s t")),
        ],
    );
}

#[test]
fn selectors_of_workloads_and_budgets_have_only_labels_that_pods_can_have() {
    let mut web = apps("Deployment", "web", 1);
    web["spec"]["selector"]["matchLabels"]["app"] = json!("a b");
    web["spec"]["template"]["metadata"]["labels"]["app"] = json!("a b");
    has_problems(
        &web,
        &[
            ("spec.selector.matchLabels.app", value("a b")),
            ("spec.template.metadata.labels.app", value("a b")),
        ],
    );
    let budget = object(
        "policy/v1",
        "PodDisruptionBudget",
        "b",
        json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "a b"}}}),
    );
    has_problems(&budget, &[("spec.selector.matchLabels.app", value("a b"))]);
}
