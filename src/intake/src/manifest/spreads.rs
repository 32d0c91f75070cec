//! What an API server refuses of the topology spread of new pods (`validateTopologySpreadConstraints` in Kubernetes).

use poolwright_api::{FieldProblem, meant};
use serde_json::Value;

use super::refusals::Problems;
use crate::others::ANYWAY;

/// The field of a pod's spec.
pub(super) const FIELD: &str = "topologySpreadConstraints";

/// The value of `whenUnsatisfiable` that makes a constraint a rule.
const REQUIRED: &str = "DoNotSchedule";

/// Checks the constraints of one pod. What has a wrong type is told where the pod is read.
pub(super) fn of_pod(path: &str, constraints: &[Value], into: &mut Problems) {
    for (at, constraint) in constraints.iter().enumerate() {
        let mut refuse = |field: &str, cause: String, next: &str| {
            into.push(FieldProblem::new(format!("{path}[{at}].{field}"), cause, next));
        };
        if is_missing(&constraint["maxSkew"]) {
            refuse("maxSkew", "missing".to_owned(), "add it");
        } else if let Some(skew) = constraint["maxSkew"].as_i64().filter(|skew| *skew < 1) {
            refuse("maxSkew", format!("`{skew}` is less than 1"), "write 1 or more");
        }
        if is_missing(&constraint["topologyKey"]) {
            refuse("topologyKey", "missing".to_owned(), "add it, such as topology.kubernetes.io/zone");
        }
        let when = &constraint["whenUnsatisfiable"];
        if is_missing(when) {
            refuse("whenUnsatisfiable", "missing".to_owned(), "write DoNotSchedule or ScheduleAnyway");
        } else if let Some(problem) = unknown(when, [REQUIRED, ANYWAY]) {
            refuse("whenUnsatisfiable", problem.0, &problem.1);
        }
        let same = |one: &Value| {
            ["topologyKey", "whenUnsatisfiable"].iter().all(|field| one[field] == constraint[field])
        };
        if !is_missing(when) && constraints[..at].iter().any(same) {
            let cause = "another constraint has the same topologyKey and whenUnsatisfiable".to_owned();
            refuse("topologyKey", cause, "remove one of them");
        }
        if let Some(least) = constraint["minDomains"].as_i64() {
            if least < 1 {
                refuse("minDomains", format!("`{least}` is less than 1"), "write 1 or more");
            } else if *when == ANYWAY {
                let cause = format!("an API server refuses it with {ANYWAY}");
                refuse("minDomains", cause, "write DoNotSchedule, or remove it");
            }
        }
        for field in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if let Some(problem) = unknown(&constraint[field], ["Honor", "Ignore"]) {
                refuse(field, problem.0, &problem.1);
            }
        }
        let selector = &constraint["labelSelector"];
        let keys = constraint["matchLabelKeys"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !keys.is_empty() && selector.is_null() {
            let cause = "an API server refuses it without labelSelector".to_owned();
            refuse("matchLabelKeys", cause, "add labelSelector, or remove it");
        }
        for (place, key) in keys.iter().enumerate() {
            if let Some(key) = key.as_str().filter(|key| selects(selector, key)) {
                let cause = format!("`{key}` is also in labelSelector");
                refuse(&format!("matchLabelKeys[{place}]"), cause, "remove one of them");
            }
        }
    }
}

fn is_missing(value: &Value) -> bool {
    value.is_null() || *value == ""
}

/// Returns cause and remedy if a text is none of two names. A field without a value has its default.
fn unknown(value: &Value, known: [&'static str; 2]) -> Option<(String, String)> {
    let text = value.as_str().filter(|text| !known.contains(text))?;
    let next = match meant(text, known) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("write {} or {}", known[0], known[1]),
    };
    Some((format!("`{text}` does not exist"), next))
}

/// Returns whether a selector is about a label.
pub(super) fn selects(selector: &Value, key: &str) -> bool {
    let expressions = selector["matchExpressions"].as_array();
    !selector["matchLabels"][key].is_null() || expressions.into_iter().flatten().any(|one| one["key"] == key)
}
