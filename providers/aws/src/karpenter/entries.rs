//! Finds the entries of maps that a class cannot have: tags, and settings of the kubelet. The rules of the class name only the map.

use poolwright_provider_contract::karpenter::{Report, join};
use serde_json::{Map, Value, json};

use super::class::problems_of;
use crate::node_class::EC2NodeClass;
use crate::resolve::{KIND, kubelet};

/// The maps of a class whose entries have rules: the fields that lead to each.
const MAPS: [&[&str]; 5] = [
    &["tags"],
    &["kubelet", "systemReserved"],
    &["kubelet", "kubeReserved"],
    &["kubelet", "evictionHard"],
    &["kubelet", "evictionSoft"],
];

/// Reports each entry that is refused, and removes it, so that the rest can be checked.
pub(super) fn check(spec: &mut Map<String, Value>, report: &mut Report) {
    for place in MAPS {
        let path = place.iter().fold("spec".to_owned(), |path, field| join(&path, field));
        let [first, rest @ ..] = place else { continue };
        let value = spec.get_mut(*first);
        let map = value.and_then(|value| rest.iter().try_fold(value, |value, field| value.get_mut(*field)));
        let Some(map) = map.and_then(Value::as_object_mut) else { continue };
        let mut refused = Vec::new();
        for (key, value) in map.iter() {
            // A value of another type has a problem of its own.
            let is_read = value.is_string() || (value.is_number() && place.last() != Some(&"tags"));
            if let Some(why) = is_read.then(|| refusal(place, key, value)).flatten() {
                let (cause, next) = why.split_once("; ").unwrap_or((&why, "correct it, or remove it"));
                report.problem(join(&path, key), cause, next);
                refused.push(key.clone());
            }
        }
        for key in refused {
            map.remove(&key);
        }
    }
}

/// Returns why a class cannot have this entry.
fn refusal(place: &[&str], key: &str, value: &Value) -> Option<String> {
    let class = with_entry(place, key, value);
    if let Some(problem) = problems_of(&class).into_iter().find(|problem| is_about(place, &problem.path)) {
        return Some(format!("it is refused, because {}", problem.cause));
    }
    // The kubelet reads both kinds of thresholds alike.
    let place: &[&str] =
        if place.last() == Some(&"evictionSoft") { &["kubelet", "evictionHard"] } else { place };
    let class: EC2NodeClass = serde_json::from_value(with_entry(place, key, value)).ok()?;
    kubelet::reserved(&class.spec).err().map(|wrong| wrong.cause)
}

/// Returns whether a problem is about the map at this place, and not about what the class with one entry lacks besides.
fn is_about(place: &[&str], path: &str) -> bool {
    place.last().is_some_and(|field| path.contains(field))
}

/// Returns a class with this entry alone.
fn with_entry(place: &[&str], key: &str, value: &Value) -> Value {
    let mut spec = json!({"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}],
        "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]});
    let mut at = &mut spec;
    for field in place {
        at = &mut at[*field];
    }
    at[key] = value.clone();
    json!({"apiVersion": poolwright_terms::API_VERSION, "kind": KIND, "metadata": {"name": "one-entry"}, "spec": spec})
}
