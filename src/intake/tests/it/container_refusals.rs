//! Tests that ports and variables of written containers which an API server refuses are errors, each with its path and the next step.

use serde_json::{Value, json};

use crate::json_kit::{object, read, refused};
use crate::mount_refusals::has_problems;

/// A pod whose only container has these fields.
fn pod(mut container: Value) -> Value {
    container["name"] = json!("c");
    container["image"] = json!("x");
    object("v1", "Pod", "a", json!({"containers": [container]}))
}

#[test]
fn two_ports_of_one_name_and_ports_that_do_not_exist_are_refused() {
    let ports = json!([
        {"name": "http", "containerPort": 80}, {"name": "http", "containerPort": 81},
        {"name": "Metrics_1", "containerPort": 82}, {"containerPort": 70000}, {"hostPort": 99},
        {"containerPort": 83, "hostPort": -1}, {"containerPort": 84, "protocol": "tcp"},
    ]);
    let next = "use a number from 1 to 65535";
    has_problems(
        &pod(json!({"ports": ports})),
        &[
            "ports[1].name: another port of the container has the name `http`; rename one of them",
            "ports[2].name: an API server refuses the name `Metrics_1`; write at most 15 lower-case letters, digits and single `-`, with \
             a letter among them and no `-` at an end",
            &format!("ports[3].containerPort: 70000 is not a port; {next}"),
            "ports[4].containerPort: missing; write the number of the port",
            &format!("ports[5].hostPort: -1 is not a port; {next}"),
            "ports[6].protocol: `tcp` does not exist; write `TCP`",
        ],
    );
    // Another container may have a port of the same name, and zero asks for no port of the node.
    let port = json!([{"name": "http", "containerPort": 80, "hostPort": 0}]);
    let both =
        json!([{"image": "x", "name": "a", "ports": port}, {"image": "x", "name": "b", "ports": port}]);
    assert_eq!(read(&[object("v1", "Pod", "a", json!({"containers": both}))]).pods.len(), 1);
}

#[test]
fn a_variable_without_a_name_or_with_no_source_or_two_is_refused() {
    let field = json!({"fieldPath": "spec.nodeName"});
    let secret = json!({"name": "s", "key": "k"});
    let env = json!([
        {"value": "1"}, {"name": "A=B", "value": "1"}, {"name": "C", "valueFrom": {}},
        {"name": "D", "valueFrom": {"fieldRef": field, "secretKeyRef": secret}},
        {"name": "E", "value": "1", "valueFrom": {"fieldRef": field}},
    ]);
    has_problems(
        &pod(json!({"env": env})),
        &[
            "env[0].name: missing; name the variable",
            "env[1].name: an API server refuses the name `A=B`; write printable ASCII characters without `=`",
            "env[2].valueFrom: it names no source; add one of fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef, or \
             remove it",
            "env[3].valueFrom: a variable has one source, and this has fieldRef and secretKeyRef; keep one of them",
            "env[4].valueFrom: the variable also has a value; remove one of them",
        ],
    );
    let good = json!([{"name": "empty"}, {"name": "my.variable-1", "value": ""}, {"name": "N", "valueFrom": {"fieldRef": field}}]);
    assert_eq!(read(&[pod(json!({"env": good}))]).pods.len(), 1);
}

#[test]
fn a_misspelt_source_of_a_variable_is_its_only_problem() {
    let env = json!([{"name": "A", "valueFrom": {"secretKeyReff": {"name": "s", "key": "k"}}}]);
    let found = refused(&pod(json!({"env": env})));
    assert!(found.len() == 1 && found[0].contains("secretKeyReff: unknown field"), "{found:#?}");
}

#[test]
fn a_toleration_that_compares_numbers_needs_one() {
    let with = |toleration: Value| {
        let mut pod = pod(json!({}));
        pod["spec"]["tolerations"] = json!([toleration]);
        pod
    };
    for operator in ["Gt", "Lt"] {
        let found = refused(&with(json!({"key": "sla", "operator": operator, "value": "high"})));
        let end =
            format!("spec.tolerations[0].value: `{operator}` takes one whole number; write one, in quotes");
        assert!(found.len() == 1 && found[0].ends_with(&end), "{found:#?}");
        // Poolwright does not compare them, so the pod is not planned as if it had no such toleration.
        let manifest = read(&[with(json!({"key": "sla", "operator": operator, "value": "950"}))]);
        let rules = &manifest.pods[0].spec.unmodelled;
        assert_eq!(rules.len(), 1, "{rules:?}");
        assert_eq!(rules[0].field, "spec.tolerations[0]");
        assert_eq!(rules[0].rule, format!("a toleration with the operator `{operator}` and all effects"));
    }
}
