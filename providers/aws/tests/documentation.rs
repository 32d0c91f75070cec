//! Tests that `docs/ec2nodeclass.md` describes every field of the CRD with its default, and no other field.

use std::collections::BTreeMap;
use std::path::Path;

use kube::CustomResourceExt;
use poolwright_provider_aws::node_class::{EC2NodeClass, conditions};
use serde_json::Value;

/// Returns the rows of the page's tables of fields: path and default, as written.
fn rows() -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ec2nodeclass.md");
    let page = std::fs::read_to_string(file).expect("docs/ec2nodeclass.md can be read");
    let mut rows = BTreeMap::new();
    for line in page.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [path, default, _] = cells[..] else { continue };
        let path = path.trim_matches('`').to_owned();
        assert!(rows.insert(path.clone(), default.to_owned()).is_none(), "{path} is there twice");
    }
    rows
}

/// Collects the fields of a schema by path, with their defaults. Maps and lists of plain values have no fields.
fn fields(schema: &Value, path: &str, found: &mut BTreeMap<String, Option<Value>>) {
    let inner = if schema["type"] == "array" { &schema["items"] } else { schema };
    let suffix = if schema["type"] == "array" { "[]" } else { "" };
    let Some(properties) = inner["properties"].as_object() else {
        found.insert(path.to_owned(), schema.get("default").cloned());
        return;
    };
    for (name, property) in properties {
        let dot = if path.is_empty() { "" } else { "." };
        fields(property, &format!("{path}{suffix}{dot}{name}"), found);
    }
}

fn schema(part: &str) -> Value {
    let crd = serde_json::to_value(EC2NodeClass::crd()).unwrap();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part].clone()
}

#[test]
fn every_field_of_a_class_is_on_its_page_with_its_default_and_no_other_is() {
    let mut wanted = BTreeMap::new();
    fields(&schema("spec"), "", &mut wanted);
    let rows = rows();
    let missing: Vec<_> = wanted.keys().filter(|path| !rows.contains_key(*path)).collect();
    assert!(missing.is_empty(), "docs/ec2nodeclass.md has no row for {missing:?}");
    let strange: Vec<_> = rows.keys().filter(|path| !wanted.contains_key(*path)).collect();
    assert!(strange.is_empty(), "docs/ec2nodeclass.md has rows for what is no field: {strange:?}");
    for (path, default) in wanted {
        if let Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) = &default {
            let text = match default.unwrap() {
                Value::String(text) => format!("`{text}`"),
                other => format!("`{other}`"),
            };
            assert_eq!(rows[&path], text, "the default of {path} in docs/ec2nodeclass.md");
        }
    }
}

#[test]
fn every_condition_and_every_part_of_the_status_is_on_the_page() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ec2nodeclass.md");
    let page = std::fs::read_to_string(file).expect("docs/ec2nodeclass.md can be read");
    for condition in conditions::ALL {
        assert!(page.contains(&format!("| `{condition}`")), "no row for the condition {condition}");
    }
    for part in schema("status")["properties"].as_object().unwrap().keys() {
        let internal = ["conditions", "observedGeneration"].contains(&part.as_str());
        assert!(internal || page.contains(&format!("`status.{part}`")), "status.{part} is not mentioned");
    }
}

#[test]
fn the_example_of_the_page_is_a_class() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ec2nodeclass.md");
    let page = std::fs::read_to_string(file).expect("docs/ec2nodeclass.md can be read");
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(!examples.is_empty(), "there is an example");
    let schema = serde_json::to_value(EC2NodeClass::crd()).unwrap()["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
    for example in examples {
        let object: Value = serde_saphyr::from_str(example).expect("the example is YAML");
        serde_json::from_value::<EC2NodeClass>(object.clone()).expect("the example is a class");
        let mut unknown = Vec::new();
        fields_that_are_not(&schema["properties"]["spec"], &object["spec"], "spec", &mut unknown);
        assert!(unknown.is_empty(), "the API server would drop {unknown:?}");
        let errors = kube::core::cel::Validator::new().validate(&schema, &object, None);
        assert!(errors.is_ok(), "{errors:?}");
    }
}

/// Collects the fields of an object that its schema does not have.
fn fields_that_are_not(schema: &Value, object: &Value, path: &str, found: &mut Vec<String>) {
    match object {
        Value::Object(object) if schema.get("properties").is_some() => {
            for (name, value) in object {
                let path = format!("{path}.{name}");
                match schema["properties"].get(name) {
                    None => found.push(path),
                    Some(inner) => fields_that_are_not(inner, value, &path, found),
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                fields_that_are_not(&schema["items"], item, path, found);
            }
        }
        _ => {}
    }
}
