//! DaemonSets of a replay: its new nodes have room for the largest pods of each.

use std::sync::Arc;

use poolwright_core::{ObjectKey, Pods};
use poolwright_intake::Manifest;
use serde_json::{Map, Value, json};

use super::name_of;
use crate::plan::daemons::note;

/// Lets the template of a DaemonSet ask for as much as its largest pods, with a note if they ask for more. Admission gives pods
/// more than the template: defaults, injected containers, and the sizes of a VerticalPodAutoscaler.
pub(super) fn size(object: &mut Value, manifest: &Manifest, notes: &mut Vec<String>) {
    let key = name_of(object).map(|(namespace, name)| ObjectKey::new(namespace, name));
    let Some(set) = manifest.daemonsets.iter().find(|set| Some(&set.key) == key.as_ref()) else { return };
    let pods: Pods = manifest.pods.iter().map(|pod| (pod.key.clone(), Arc::new(pod.clone()))).collect();
    let sized = set.sized_as(&pods);
    let mut more = Map::new();
    for (name, amount) in sized.spec.requests.iter() {
        let lacking = amount.saturating_sub(set.spec.requests.get(name.as_str()));
        if lacking > 0 {
            more.insert(name.to_string(), json!(name.quantity(lacking)));
        }
    }
    if more.is_empty() {
        return;
    }
    notes.push(note(&set.key));
    // Nobody knows which container asks for it. Overhead counts besides the containers, whatever they ask for.
    let spec = &mut object["spec"]["template"]["spec"];
    if spec["overhead"].is_null() {
        spec["overhead"] = Value::Object(more);
    } else if let Some(containers) = spec["containers"].as_array_mut() {
        containers.push(json!({"name": "more", "image": "more", "resources": {"requests": more}}));
    }
}
