//! The devices that pods claim, and the claims that their containers use (`validatePodResourceClaims` and
//! `validateResourceClaimNames` in Kubernetes).

use poolwright_api::{FieldProblem, meant};
use serde_json::Value;

use super::{items, own_name, required};
use crate::manifest::refusals::Problems;

/// Adds what is wrong with the claims of a pod, and with their use.
pub(super) fn check(path: &str, spec: &Value, into: &mut Problems) {
    let listed = &spec["resourceClaims"];
    of_pod(&format!("{path}.resourceClaims"), items(listed), into);
    // A list that cannot be read is told elsewhere.
    if !listed.is_null() && !listed.is_array() {
        return;
    }
    let names: Vec<&str> = items(listed).iter().filter_map(|claim| claim["name"].as_str()).collect();
    used(&format!("{path}.resources.claims"), &spec["resources"], &names, into);
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&spec[list]).iter().enumerate() {
            used(&format!("{path}.{list}[{at}].resources.claims"), &container["resources"], &names, into);
        }
    }
}

/// Checks the claims of a pod.
fn of_pod(path: &str, claims: &[Value], into: &mut Problems) {
    let mut seen = Vec::new();
    for (at, claim) in claims.iter().enumerate() {
        let path = format!("{path}[{at}]");
        own_name(&path, &claim["name"], "claim", &mut seen, into);
        let fields = ["resourceClaimName", "resourceClaimTemplateName"];
        match fields.into_iter().filter(|field| !claim[*field].is_null()).count() {
            1 => {}
            0 => {
                let cause = "it has neither resourceClaimName nor resourceClaimTemplateName";
                into.push(FieldProblem::new(path, cause, "add one of them"));
            }
            _ => {
                let cause = "it has both resourceClaimName and resourceClaimTemplateName";
                into.push(FieldProblem::new(path, cause, "keep one of them"));
            }
        }
    }
}

/// Checks the claims that resources use. `names` are those of the pod.
fn used(path: &str, resources: &Value, names: &[&str], into: &mut Problems) {
    let claims = items(&resources["claims"]);
    for (at, claim) in claims.iter().enumerate() {
        let (path, name) = (format!("{path}[{at}].name"), &claim["name"]);
        let is_there = required(&path, name, "name one of the resourceClaims of the pod", into);
        let Some(text) = name.as_str().filter(|_| is_there) else { continue };
        let is_same = |other: &Value| other["name"] == *name && other["request"] == claim["request"];
        if !names.contains(&text) {
            let next = match meant(text, names.iter().copied()) {
                Some(known) => format!("did you mean `{known}`?"),
                None => "add it there, or remove this".to_owned(),
            };
            let cause = format!("`{text}` is not one of the resourceClaims of the pod");
            into.push(FieldProblem::new(path, cause, next));
        } else if claims[..at].iter().any(is_same) {
            into.push(FieldProblem::new(path, format!("`{text}` is there twice"), "remove one of them"));
        }
    }
}
