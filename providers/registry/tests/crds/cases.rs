//! The table of what the CRDs accept and reject. Read by the unit tests, which need no API server, and by the tests on a
//! real one, so that both judge the same objects.

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

/// One rule of a CRD: what it accepts, what it rejects and what it says then.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The rule, in words.
    pub name: String,
    /// Kind of the object.
    pub kind: String,
    /// What the refusal says, or how that begins.
    pub message: String,
    /// The reject case is an update of the accepted object instead of a new one.
    #[serde(default)]
    pub update: bool,
    /// Change (JSON merge patch) that makes the base an object to accept.
    pub accept: Value,
    /// Change that makes the accepted object one to reject.
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

    /// The object that must be accepted.
    pub fn accepted(&self, case: &Case) -> Value {
        merged(&self.bases[&case.kind], &case.accept)
    }

    /// The object that must be rejected.
    pub fn rejected(&self, case: &Case) -> Value {
        merged(&self.accepted(case), &case.reject)
    }
}

/// RFC 7386.
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
