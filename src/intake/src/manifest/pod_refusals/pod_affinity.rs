//! The terms of pod affinity and anti-affinity (`validatePodAffinityTerm` in Kubernetes).

use poolwright_api::FieldProblem;
use serde_json::Value;

use super::{items, labels, required, selector};
use crate::manifest::names::NameRule;
use crate::manifest::refusals::Problems;
use crate::manifest::spreads::selects;

/// Adds what is wrong with a term. `own` are the labels of its pod.
pub(super) fn term(path: &str, term: &Value, own: &Value, into: &mut Problems) {
    let next = "add it, such as kubernetes.io/hostname";
    required(&format!("{path}.topologyKey"), &term["topologyKey"], next, into);
    labels::key(&format!("{path}.topologyKey"), &term["topologyKey"], into);
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let path = format!("{path}.{field}");
        labels::keys(&path, &term[field], into);
        if !items(&term[field]).is_empty() && term["labelSelector"].is_null() {
            let cause = "an API server refuses it without labelSelector";
            into.push(FieldProblem::new(path, cause, "add labelSelector, or remove it"));
        }
    }
    for (at, key) in items(&term["matchLabelKeys"]).iter().enumerate() {
        let Some(text) = key.as_str() else { continue };
        let other = if items(&term["mismatchLabelKeys"]).contains(key) {
            "mismatchLabelKeys"
        } else if selects(&term["labelSelector"], text) && !own[text].is_null() {
            // An API server adds the value of the pod's label to the selector, which then has the key twice.
            "labelSelector"
        } else {
            continue;
        };
        let path = format!("{path}.matchLabelKeys[{at}]");
        into.push(FieldProblem::new(path, format!("`{text}` is also in {other}"), "remove one of them"));
    }
    for (at, namespace) in items(&term["namespaces"]).iter().enumerate() {
        let path = format!("{path}.namespaces[{at}]");
        into.extend(namespace.as_str().and_then(|name| NameRule::Label.broken_by(&path, name)));
    }
    for field in ["labelSelector", "namespaceSelector"] {
        selector(&format!("{path}.{field}"), &term[field], into);
    }
}
