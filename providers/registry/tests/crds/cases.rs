//! The table of objects that the CRDs accept and reject. The unit tests, which need no API server, and the tests on a real one
//! both read it, so they judge the same objects.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

/// The table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    /// A plain object of each kind; cases are changes to it.
    pub bases: BTreeMap<String, Value>,
    /// The cases.
    pub cases: Vec<Case>,
}

/// One rule of a CRD, with an object that it accepts, an object that it rejects, and the message of the rejection.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The rule, in words.
    pub name: String,
    /// Kind of the object.
    pub kind: String,
    /// The message of the rejection, or its beginning.
    pub message: String,
    /// Whether the rejected object is an update of the accepted one instead of a new object.
    #[serde(default)]
    pub update: bool,
    /// The change (JSON merge patch) that turns the base into an object to accept.
    pub accept: Value,
    /// The change that makes the accepted object one to reject.
    pub reject: Value,
}

impl Cases {
    /// Reads the table.
    pub fn load() -> Self {
        // Both crates whose tests read the table are two levels below the root.
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/crds/cases.yaml");
        let text = std::fs::read_to_string(&file).expect("fixtures/crds/cases.yaml can be read");
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("fixtures/crds/cases.yaml: {error}"))
    }

    /// Returns the object that must be accepted.
    pub fn accepted(&self, case: &Case) -> Value {
        merged(&self.bases[&case.kind], &case.accept)
    }

    /// Returns the object that must be rejected.
    pub fn rejected(&self, case: &Case) -> Value {
        merged(&self.accepted(case), &case.reject)
    }
}

/// Applies a JSON merge patch (RFC 7386).
fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut fields = target.as_object().cloned().unwrap_or_default();
    for (key, change) in changes {
        if change.is_null() {
            fields.remove(key);
        } else {
            let old = fields.get(key).cloned().unwrap_or(Value::Null);
            fields.insert(key.clone(), merged(&old, change));
        }
    }
    Value::Object(fields)
}
