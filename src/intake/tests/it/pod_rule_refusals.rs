//! Tests that claims of devices, quantities and rules about other pods which an API server refuses are errors of written pods.

use serde_json::{Value, json};

use crate::core_refusals::check;
use crate::json_kit::{apps, object, read, refused};

fn pod() -> Value {
    object("v1", "Pod", "a", json!({"containers": [{"image": "x", "name": "c"}]}))
}

#[test]
fn a_container_uses_only_claims_that_its_pod_has() {
    let containers = |claims: Value| json!([{"image": "x", "name": "c", "resources": {"claims": claims}}]);
    let lacks = "spec.containers[0].resources.claims[0].name: `g` is not one of the resourceClaims of the pod; add it there";
    check(&pod(), [("spec.containers", containers(json!([{"name": "g"}])), lacks)]);
    let whole = "spec.resources.claims[0].name: `g` is not one of the resourceClaims of the pod";
    check(&pod(), [("spec.resources", json!({"claims": [{"name": "g"}]}), whole)]);
    let mut web = apps("Deployment", "web", 2);
    web["spec"]["template"]["spec"]["initContainers"] = containers(json!([{"name": "g"}]));
    web["spec"]["template"]["spec"]["initContainers"][0]["name"] = json!("i");
    let found = refused(&web);
    let path = "spec.template.spec.initContainers[0].resources.claims[0].name: `g` is not one of";
    assert!(found.len() == 1 && found[0].contains(path), "{found:#?}");

    let mut with_claim = pod();
    with_claim["spec"]["resourceClaims"] = json!([{"name": "gpu", "resourceClaimTemplateName": "one"}]);
    let gpu = |request: &str| json!({"name": "gpu", "request": request});
    check(
        &with_claim,
        [
            ("spec.containers", containers(json!([{"name": "gpu"}])), ""),
            ("spec.containers", containers(json!([gpu("a"), gpu("b")])), ""),
            (
                "spec.containers",
                containers(json!([gpu("a"), gpu("a")])),
                "spec.containers[0].resources.claims[1].name: `gpu` is there twice; remove one of them",
            ),
            (
                "spec.containers",
                containers(json!([{"name": "gpi"}])),
                "spec.containers[0].resources.claims[0].name: `gpi` is not one of the resourceClaims of the pod; did you mean `gpu`?",
            ),
        ],
    );
}

#[test]
fn each_quantity_of_a_pod_is_one_and_is_told_beside_other_problems() {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        json!([volume])
    };
    let items = |divisor: &str| {
        let from = json!({"containerName": "c", "resource": "limits.cpu", "divisor": divisor});
        json!({"items": [{"path": "cpu", "resourceFieldRef": from}]})
    };
    let from = json!({"resourceFieldRef": {"resource": "limits.cpu", "divisor": "some"}});
    let variable = json!([{"image": "x", "name": "c", "env": [{"name": "CPU", "valueFrom": from}]}]);
    check(
        &pod(),
        [
            ("spec.volumes", volume(json!({"emptyDir": {"sizeLimit": "1Gi"}})), ""),
            ("spec.volumes", volume(json!({"downwardAPI": items("1m")})), ""),
            (
                "spec.volumes",
                volume(json!({"emptyDir": {"sizeLimit": "lots"}})),
                "spec.volumes[0].emptyDir.sizeLimit: `lots` is no quantity",
            ),
            (
                "spec.volumes",
                volume(json!({"emptyDir": {"sizeLimit": "-1Gi"}})),
                "spec.volumes[0].emptyDir.sizeLimit: `-1Gi` is negative",
            ),
            (
                "spec.volumes",
                volume(json!({"downwardAPI": items("some")})),
                "spec.volumes[0].downwardAPI.items[0].resourceFieldRef.divisor: `some` is no quantity",
            ),
            (
                "spec.volumes",
                volume(json!({"projected": {"sources": [{"downwardAPI": items("some")}]}})),
                "spec.volumes[0].projected.sources[0].downwardAPI.items[0].resourceFieldRef.divisor: `some` is no",
            ),
            (
                "spec.containers",
                variable,
                "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor: `some` is no quantity",
            ),
        ],
    );
    let mut both = pod();
    both["spec"]["volumes"] = volume(json!({"emptyDir": {"sizeLimit": "lots"}}));
    both["spec"]["volumes"][0]["name"] = json!("V_1");
    assert_eq!(refused(&both).len(), 2, "{:?}", refused(&both));
}

#[test]
fn a_term_about_other_pods_that_an_api_server_refuses_is_told() {
    let term = |fields: Value| {
        let mut term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "a"}}});
        for (field, value) in fields.as_object().expect("fields") {
            term[field] = value.clone();
        }
        term
    };
    let labelled = |labels: Value, kind: &str, rule: Value| {
        let mut pod = pod();
        pod["metadata"]["labels"] = labels;
        pod["spec"]["affinity"] = json!({kind: rule});
        pod
    };
    let (required, preferred) =
        ("requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution");
    let label = json!({"app": "a"});
    for (fields, told) in [
        (
            json!({"matchLabelKeys": ["b"], "labelSelector": null}),
            "matchLabelKeys: an API server refuses it without labelSelector; add labelSelector, or remove it",
        ),
        (
            json!({"mismatchLabelKeys": ["b"], "labelSelector": null}),
            "mismatchLabelKeys: an API server refuses it without labelSelector; add labelSelector, or remove it",
        ),
        (
            json!({"matchLabelKeys": ["b"], "mismatchLabelKeys": ["b"]}),
            "matchLabelKeys[0]: `b` is also in mismatchLabelKeys; remove one of them",
        ),
        (
            json!({"matchLabelKeys": ["app"]}),
            "matchLabelKeys[0]: `app` is also in labelSelector; remove one of them",
        ),
        (
            json!({"namespaces": ["ml", "A_B"]}),
            "namespaces[1]: an API server refuses the name `A_B`; write lower-case letters, digits and `-`, with a letter or digit at both ends",
        ),
    ] {
        for kind in ["podAffinity", "podAntiAffinity"] {
            let rule = json!({required: [term(fields.clone())]});
            let found = refused(&labelled(label.clone(), kind, rule));
            let path = format!("spec.affinity.{kind}.{required}[0].{told}");
            assert!(found.len() == 1 && found[0].ends_with(&path), "{path} is not {found:#?}");
            let rule = json!({preferred: [{"weight": 1, "podAffinityTerm": term(fields.clone())}]});
            let found = refused(&labelled(label.clone(), kind, rule));
            let path = format!("spec.affinity.{kind}.{preferred}[0].podAffinityTerm.{told}");
            assert!(found.len() == 1 && found[0].ends_with(&path), "{path} is not {found:#?}");
        }
    }
    // Without the label, an API server adds nothing to the selector.
    let rule = json!({required: [term(json!({"matchLabelKeys": ["app"]}))]});
    read(&[labelled(json!({}), "podAffinity", rule)]);
    // A key whose values differ may be in the selector, too.
    let rule = json!({required: [term(json!({"mismatchLabelKeys": ["app"]}))]});
    read(&[labelled(label, "podAntiAffinity", rule)]);
    let mut web = apps("Deployment", "web", 1);
    let keys = json!({"matchLabelKeys": ["app"], "labelSelector": {"matchLabels": {"app": "web"}}});
    web["spec"]["template"]["spec"]["affinity"] = json!({"podAffinity": {required: [term(keys)]}});
    let found = refused(&web);
    assert!(found.len() == 1 && found[0].contains("`app` is also in labelSelector"), "{found:#?}");
}
