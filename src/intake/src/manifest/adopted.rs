//! Pods and ReplicaSets without a controller that a controller of the manifest adopts, as its selector says (`ControllerRefManager`
//! in Kubernetes). A deletion with `--cascade=orphan` leaves such objects.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use poolwright_core::Requirement;
use poolwright_core::rules::matches;
use serde::Deserialize;
use serde_json::{Value, json};

use super::objects::{Object, group, meta};
use crate::others::requirements;

/// The controllers that adopt by a selector: group, kind, and the kind that they adopt.
const ADOPTERS: [(&str, &str, &str); 5] = [
    ("apps", "Deployment", "ReplicaSet"),
    ("apps", "ReplicaSet", "Pod"),
    ("apps", "StatefulSet", "Pod"),
    ("", "ReplicationController", "Pod"),
    ("batch", "Job", "Pod"),
];

/// Gives stored objects without a controller the reference to the controller that adopts them. `running` are the pods of a cluster
/// that are not in the manifest. Objects that are only written stay as their author wrote them. Returns notes.
pub(super) fn adopt(objects: &mut [Object], running: &mut [Object]) -> Vec<String> {
    let adopters: Vec<Adopter> = objects.iter().filter_map(Adopter::of).collect();
    let mut by_place: BTreeMap<(&str, &str), Vec<&Adopter>> = BTreeMap::new();
    for adopter in &adopters {
        by_place.entry((adopter.namespace.as_str(), adopter.adopts)).or_default().push(adopter);
    }
    let stored = objects.iter_mut().filter(|object| object.is_stored());
    let mut notes = Vec::new();
    for orphan in stored.chain(running) {
        if !may_be_adopted(orphan) {
            continue;
        }
        let near = by_place.get(&(orphan.namespace(), orphan.kind.as_str()));
        let taker = near.into_iter().flatten().copied().find(|adopter| adopter.takes(orphan));
        let Some(adopter) = taker else { continue };
        if refer(&mut orphan.value, &adopter.reference) {
            notes.push(format!("{}: it has no controller, and {} adopts it", orphan.name(), adopter.name));
        }
    }
    notes
}

/// Returns whether it has no controller and is not being deleted.
fn may_be_adopted(object: &Object) -> bool {
    let references = object.value["metadata"]["ownerReferences"].as_array();
    let is_controlled = references.into_iter().flatten().any(|one| one["controller"] == true);
    !is_controlled && object.value["metadata"]["deletionTimestamp"].is_null()
}

/// Adds a reference to those of an object. Returns whether it could.
fn refer(object: &mut Value, reference: &Value) -> bool {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return false };
    let references = metadata.entry("ownerReferences").or_insert(Value::Null);
    if references.is_null() {
        *references = json!([]);
    }
    let Some(references) = references.as_array_mut() else { return false };
    references.push(reference.clone());
    true
}

/// A controller that adopts objects.
struct Adopter {
    /// Kind and name, for notes.
    name: String,
    /// The name of its object.
    own: String,
    kind: &'static str,
    namespace: String,
    adopts: &'static str,
    selector: Vec<Requirement>,
    reference: Value,
}

impl Adopter {
    /// Returns the object as an adopter; `None` if it adopts nothing. An API server refuses an empty selector.
    fn of(object: &Object) -> Option<Self> {
        let mut adopters = ADOPTERS.into_iter();
        let (_, kind, adopts) =
            adopters.find(|(of, kind, _)| *kind == object.kind && *of == group(&object.api_version))?;
        if !object.value["metadata"]["deletionTimestamp"].is_null() {
            return None;
        }
        let stated = &object.value["spec"]["selector"];
        let selector = match kind {
            "ReplicationController" => json!({"matchLabels": stated}),
            _ => stated.clone(),
        };
        let selector = requirements(&LabelSelector::deserialize(&selector).ok()?)?;
        if selector.is_empty() {
            return None;
        }
        let own = meta(&object.value, "name")?;
        // A written object has the UID that its conversion makes up.
        let made_up = || match meta(&object.value, "namespace") {
            Some(namespace) => format!("{namespace}/{own}"),
            None => own.to_owned(),
        };
        let uid = meta(&object.value, "uid").map_or_else(made_up, str::to_owned);
        let reference = json!({"apiVersion": object.api_version, "kind": kind, "name": own, "uid": uid,
            "controller": true});
        Some(Self {
            name: object.name(),
            own: own.to_owned(),
            kind,
            namespace: object.namespace().to_owned(),
            adopts,
            selector,
            reference,
        })
    }

    /// Returns whether it adopts this object of the right kind and namespace, which has no controller.
    fn takes(&self, orphan: &Object) -> bool {
        let has_ended = matches!(orphan.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let may_have = match self.kind {
            "StatefulSet" => meta(&orphan.value, "name").is_some_and(|name| self.numbers(name)),
            "ReplicaSet" | "ReplicationController" => !has_ended,
            _ => true,
        };
        let labels = &orphan.value["metadata"]["labels"];
        let labels = BTreeMap::<String, String>::deserialize(labels).unwrap_or_default();
        may_have && self.selector.iter().all(|one| matches(one, &labels))
    }

    /// Returns whether a name is its own and a number.
    fn numbers(&self, pod: &str) -> bool {
        let number = pod.strip_prefix(self.own.as_str()).and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    }
}
