//! What the schemas of the CustomResourceDefinitions refuse of Poolwright's own objects, in the words of a user and with the paths
//! that messages have.

use poolwright_api::PATTERNS;
use poolwright_intake::IntakeError;
use poolwright_intake::manifest::WrittenObject;
use poolwright_provider_contract::karpenter::{below, plain};
use poolwright_terms::API_VERSION;
use serde_json::Value;

use crate::clouds::{clouds, of_kind};

/// Returns the fields of each object that an API server refuses, each with the reason. The field is empty if it refuses the object
/// as a whole.
pub fn refused(objects: &[&Value]) -> Vec<Vec<(String, String)>> {
    let classes: Vec<_> = clouds().iter().map(|cloud| cloud.node_class).collect();
    let told = |(field, why): (String, String)| (bracketed(&field), in_words(&why));
    let all = poolwright_sim::replay::refused_fields(objects, &classes).into_iter();
    all.map(|fields| fields.into_iter().map(told).collect()).collect()
}

/// Returns what an API server refuses of objects that it has not stored yet, without the problems that are known already.
pub fn refused_written(written: &[WrittenObject], known: &[IntakeError]) -> Vec<IntakeError> {
    let ours: Vec<&WrittenObject> = written.iter().filter(|one| has_schema(&one.object)).collect();
    let mut found = Vec::new();
    // To read the schemas takes longer than most plans.
    if ours.is_empty() {
        return found;
    }
    let objects: Vec<&Value> = ours.iter().map(|one| &one.object).collect();
    for (one, fields) in ours.into_iter().zip(refused(&objects)) {
        let is_of = |error: &&IntakeError| {
            error.object == one.name && error.file.as_deref() == Some(one.file.as_str())
        };
        let known: Vec<&IntakeError> = known.iter().filter(is_of).collect();
        for (path, cause) in fields {
            if known.iter().all(|known| !is_told(known, &path, &cause)) {
                let (file, object) = (Some(one.file.clone()), one.name.clone());
                let next_step = next_step(&cause);
                found.push(IntakeError { file, object, path, cause, next_step });
            }
        }
    }
    found
}

/// Returns whether an object is of a kind and version that has a schema. What is wrong with others is said elsewhere.
fn has_schema(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    object["apiVersion"] == API_VERSION
        && (["NodePool", "NodeClaim"].contains(&kind) || of_kind(kind).is_some())
}

/// Returns whether a known problem is this one: it has the same cause, or is at this field or below it.
fn is_told(known: &IntakeError, path: &str, cause: &str) -> bool {
    known.cause == cause || below(&plain(&known.path), &plain(path)).is_some()
}

/// Says what a schema allows instead of what the object has. An API server shows regular expressions.
fn in_words(why: &str) -> String {
    let why = why.strip_prefix("Invalid value: ").unwrap_or(why);
    // Bounds are written as decimal numbers in a schema.
    let why = why.strip_suffix(".0").filter(|why| why.contains("imum of ")).unwrap_or(why);
    let of_clouds = clouds().iter().flat_map(|cloud| cloud.node_class.patterns);
    let said = PATTERNS.iter().chain(of_clouds).find_map(|(pattern, words)| {
        let end = format!(" does not match \"{pattern}\"");
        let value = why.strip_suffix(end.as_str())?;
        Some(format!("`{}` is not {words}", value.trim_matches('"')))
    });
    said.unwrap_or_else(|| why.to_owned())
}

/// Returns what to do about a number out of bounds. Other causes say it themselves.
fn next_step(cause: &str) -> String {
    let most =
        cause.split_once(" is greater than the maximum of ").map(|(_, most)| format!("write {most} or less"));
    let least =
        cause.split_once(" is less than the minimum of ").map(|(_, least)| format!("write {least} or more"));
    most.or(least).unwrap_or_default()
}

/// Writes the places in lists as `[2]`, and slashes in keys as slashes. The schema check of an API server writes `.2` and `~1`.
pub fn bracketed(path: &str) -> String {
    let mut made = String::new();
    for part in path.replace("~1", "/").split('.') {
        if !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) {
            made.push('[');
            made.push_str(part);
            made.push(']');
            continue;
        }
        if !made.is_empty() {
            made.push('.');
        }
        made.push_str(part);
    }
    made
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clouds::crds;

    /// Collects the patterns of a schema.
    fn patterns(schema: &Value, into: &mut Vec<String>) {
        match schema {
            Value::Object(fields) => {
                into.extend(fields.get("pattern").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| patterns(field, into));
            }
            Value::Array(items) => items.iter().for_each(|item| patterns(item, into)),
            _ => {}
        }
    }

    #[test]
    fn every_pattern_of_a_definition_is_said_in_words() {
        let mut all = Vec::new();
        for crd in crds() {
            patterns(&serde_json::to_value(crd).expect("a definition is JSON"), &mut all);
        }
        assert!(all.len() > 20, "{all:?}");
        for pattern in all {
            let said = in_words(&format!("Invalid value: \"x\" does not match \"{pattern}\""));
            assert!(said.starts_with("`x` is not "), "src/api/src/patterns.rs lacks {pattern}: {said}");
            assert!(said.contains("; write "), "{said}");
        }
    }

    fn pool(spec: &Value) -> WrittenObject {
        let class = json!({"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "aws"});
        let mut object = json!({"apiVersion": API_VERSION, "kind": "NodePool", "metadata": {"name": "gpu"},
            "spec": {"template": {"spec": {"nodeClassRef": class}}}});
        object["spec"].as_object_mut().expect("a map").extend(spec.as_object().expect("a map").clone());
        WrittenObject { file: "pool.yaml".to_owned(), name: "NodePool gpu".to_owned(), object }
    }

    #[test]
    fn what_is_known_at_a_field_or_below_it_is_not_said_again_and_the_rest_is() {
        let written = [pool(&json!({"weight": 500, "replicas": 3000, "limits": {"cpu": "-1"}}))];
        let known = IntakeError {
            file: Some("pool.yaml".to_owned()),
            object: "NodePool gpu".to_owned(),
            path: "spec.weight".to_owned(),
            cause: "too much".to_owned(),
            next_step: String::new(),
        };
        let told = |known: &[IntakeError]| {
            let found = refused_written(&written, known).into_iter();
            found.map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let replicas = "pool.yaml: NodePool gpu: spec.replicas: 3000 is greater than the maximum of 1000; write 1000 or less";
        let weight =
            "pool.yaml: NodePool gpu: spec.weight: 500 is greater than the maximum of 100; write 100 or less";
        let mut both = told(&[]);
        both.sort();
        assert_eq!(both, [replicas, weight]);
        assert_eq!(told(std::slice::from_ref(&known)), [replicas]);
        let other = IntakeError { file: Some("other.yaml".to_owned()), ..known };
        assert_eq!(told(&[other]).len(), 2, "a problem of another file is another one");
    }

    #[test]
    fn an_object_of_another_version_or_kind_has_no_schema_here() {
        let mut other = pool(&json!({"weight": 500}));
        other.object["apiVersion"] = json!("poolwright.dev/v9");
        let mut misspelt = pool(&json!({"weight": 500}));
        misspelt.object["kind"] = json!("NodePol");
        assert_eq!(refused_written(&[other, misspelt], &[]), []);
    }
}
