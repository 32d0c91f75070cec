//! Tests that the CRDs match the types, and that their rules accept valid objects and reject invalid ones.

mod cases;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel::{ErrorKind, Validator};
use poolwright_api::render;
use poolwright_provider_aws::node_class::EC2NodeClass;
use poolwright_provider_kwok::KwokNodeClass;
use poolwright_provider_registry::CLOUDS;
use serde_json::Value;

use cases::{Case, Cases};

fn crds() -> Vec<CustomResourceDefinition> {
    poolwright_provider_contract::crds(CLOUDS.iter().map(|cloud| cloud.node_class))
}

/// Returns the manifests under `crds/`: file name and content.
fn crd_files() -> Vec<(String, String)> {
    crds().iter().map(|crd| (format!("{}.yaml", crd.spec.names.plural), render(crd))).collect()
}

/// Returns the problems of an object as the API server finds them: those of the schema, or if there are none, those of the rules.
fn problems(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let schema = schema(kind);
    let mut plain = schema.clone();
    spell_out_int_or_string(&mut plain);
    let structure = jsonschema::validator_for(&plain).expect("the CRD's schema is a JSON schema");
    let mut found: Vec<String> = structure.iter_errors(object).map(|error| error.to_string()).collect();
    // The API server evaluates no rules of an object that does not match the schema.
    if !found.is_empty() {
        return found;
    }
    if let Err(errors) = Validator::new().validate(&schema, object, old) {
        for error in errors {
            assert_eq!(error.kind, ErrorKind::ValidationFailure, "a rule cannot be evaluated: {error:?}");
            found.push(error.to_string());
        }
    }
    found
}

/// Adds the meaning of `x-kubernetes-int-or-string` in plain JSON Schema.
fn spell_out_int_or_string(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.contains_key("x-kubernetes-int-or-string") {
                fields.insert("type".to_owned(), serde_json::json!(["integer", "string"]));
            }
            fields.values_mut().for_each(spell_out_int_or_string);
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out_int_or_string),
        _ => {}
    }
}

fn schema(kind: &str) -> Value {
    // Built once, because there are some hundred cases and each needs one.
    static SCHEMAS: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
        let schema = |crd: &CustomResourceDefinition| {
            let schema = crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref();
            serde_json::to_value(schema.unwrap()).unwrap()
        };
        crds().iter().map(|crd| (crd.spec.names.kind.clone(), schema(crd))).collect()
    });
    SCHEMAS.get(kind).unwrap_or_else(|| panic!("no CRD {kind}")).clone()
}

/// Returns the messages of all CEL rules of a schema.
fn rules(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "x-kubernetes-validations" {
                    let messages =
                        value.as_array().unwrap().iter().map(|rule| rule["message"].as_str().unwrap());
                    found.extend(messages.map(str::to_owned));
                } else {
                    rules(value, found);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| rules(item, found)),
        _ => {}
    }
}

fn check(cases: &Cases, case: &Case) {
    let (accepted, rejected) = (cases.accepted(case), cases.rejected(case));
    let old = case.update.then_some(&accepted);
    assert_eq!(
        problems(&case.kind, &accepted, None),
        [""; 0],
        "`{}`: the accept case is rejected",
        case.name
    );
    let problems = problems(&case.kind, &rejected, old);
    assert!(
        problems.iter().any(|problem| problem.contains(&case.message)),
        "`{}`: the reject case should be refused with {:?}; found: {problems:?}",
        case.name,
        case.message,
    );
}

#[test]
fn every_case_is_accepted_and_rejected_as_the_table_says() {
    let cases = Cases::load();
    for (kind, base) in &cases.bases {
        assert_eq!(problems(kind, base, None), [""; 0], "the plain {kind} is rejected");
    }
    for case in &cases.cases {
        check(&cases, case);
    }
}

#[test]
fn every_rule_of_every_crd_has_a_case_and_says_something_of_its_own() {
    let cases = Cases::load();
    for crd in crds() {
        let kind = &crd.spec.names.kind;
        let mut messages = Vec::new();
        rules(&schema(kind), &mut messages);
        let unique: BTreeSet<_> = messages.iter().collect();
        assert_eq!(unique.len(), messages.len(), "two rules of {kind} have the same message: {messages:?}");
        for message in unique {
            let about = |case: &Case| !case.message.is_empty() && message.starts_with(&case.message);
            let covered = cases.cases.iter().any(|case| &case.kind == kind && about(case));
            assert!(covered, "no case of {kind} in fixtures/crds/cases.yaml is about the rule {message:?}");
        }
    }
}

#[test]
fn the_manifests_are_what_the_types_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    let expected: BTreeSet<String> = crd_files().into_iter().map(|(name, _)| name).collect();
    let present: BTreeSet<String> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(present, expected, "crds/ has other files than the API has kinds; run `make crds`");
    for (name, content) in crd_files() {
        let written = fs::read_to_string(folder.join(&name)).unwrap();
        assert!(written == content, "crds/{name} is not what the types say; run `make crds`");
    }
}

fn json(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

#[test]
fn an_absent_optional_field_is_left_out_and_never_null() {
    let cases = Cases::load();
    let pool: poolwright_api::NodePool = serde_json::from_value(cases.bases["NodePool"].clone()).unwrap();
    let claim: poolwright_api::NodeClaim = serde_json::from_value(cases.bases["NodeClaim"].clone()).unwrap();
    let class: KwokNodeClass = serde_json::from_value(cases.bases["KwokNodeClass"].clone()).unwrap();
    let ec2: EC2NodeClass = serde_json::from_value(cases.bases["EC2NodeClass"].clone()).unwrap();
    for object in [json(&pool), json(&claim), json(&class), json(&ec2)] {
        let text = object.to_string();
        assert!(!text.contains("null"), "{text}");
    }
}

#[test]
fn defaults_of_the_schema_are_the_defaults_of_the_types() {
    let cases = Cases::load();
    let pool: poolwright_api::NodePool = serde_json::from_value(cases.bases["NodePool"].clone()).unwrap();
    assert_eq!((pool.spec.weight, pool.spec.scale_to_zero.after.0.as_str()), (0, "auto"));
    let defaulted = kube::core::cel::apply_defaults(&schema("NodePool"), &cases.bases["NodePool"]);
    assert_eq!(serde_json::from_value::<poolwright_api::NodePool>(defaulted.clone()).unwrap(), pool);
    assert_eq!(defaulted["spec"]["template"]["spec"]["deadlines"]["registration"], "15m");
}

#[test]
fn a_class_without_a_word_about_it_is_encrypted_private_and_wants_a_token_for_metadata() {
    let cases = Cases::load();
    let mut object = cases.bases["EC2NodeClass"].clone();
    object["spec"]["blockDeviceMappings"] =
        serde_json::json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}}]);
    let class: EC2NodeClass = serde_json::from_value(object.clone()).unwrap();
    let defaulted = kube::core::cel::apply_defaults(&schema("EC2NodeClass"), &object);
    assert_eq!(
        serde_json::from_value::<EC2NodeClass>(defaulted.clone()).unwrap(),
        class,
        "the schema's defaults are those of the types"
    );
    let spec = &defaulted["spec"];
    assert_eq!(
        spec["metadataOptions"],
        serde_json::json!({"httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": 1, "httpTokens": "required"})
    );
    assert_eq!((&spec["associatePublicIPAddress"], &spec["efa"]), (&false.into(), &"None".into()));
    let ebs = &spec["blockDeviceMappings"][0]["ebs"];
    assert_eq!((&ebs["volumeType"], &ebs["deleteOnTermination"]), (&"gp3".into(), &true.into()));
    assert_eq!(class.spec.block_device_mappings[0].ebs.encryption(), Some(true));
}

#[test]
fn no_label_that_an_offering_decides_can_be_set_by_a_template() {
    use poolwright_terms::labels::{DECIDED_BY_OFFERING, RESERVED};
    let cases = Cases::load();
    for key in RESERVED.into_iter().chain(DECIDED_BY_OFFERING) {
        let mut pool = cases.bases["NodePool"].clone();
        pool["spec"]["template"]["metadata"] = serde_json::json!({"labels": {key: "x"}});
        let problems = problems("NodePool", &pool, None);
        assert!(
            problems.iter().any(|problem| problem.contains("labels that an offering")),
            "{key} is accepted"
        );
    }
}
