//! HorizontalPodAutoscalers: their targets have at least `minReplicas`.

use serde_json::{Value, json};

use super::objects::{Object, group, meta};

/// Gives the targets of autoscalers the replicas that these would give them at once. Returns a note for each autoscaler.
pub(super) fn scale(objects: &mut [Object]) -> Vec<String> {
    let scales = |object: &&Object| {
        object.kind == "HorizontalPodAutoscaler" && group(&object.api_version) == "autoscaling"
    };
    let autoscalers: Vec<(String, String, Value)> = objects
        .iter()
        .filter(scales)
        .map(|object| (object.name(), object.namespace().to_owned(), object.value["spec"].clone()))
        .collect();
    let mut notes = Vec::new();
    for (name, namespace, spec) in autoscalers {
        let target = |field: &str| spec["scaleTargetRef"][field].as_str().unwrap_or_default();
        let (kind, own) = (target("kind"), target("name"));
        let found = objects.iter_mut().find(|object| {
            object.kind == kind && meta(&object.value, "name") == Some(own) && object.namespace() == namespace
        });
        let Some(found) = found else { continue };
        let replicas = found.value["spec"]["replicas"].as_u64().unwrap_or(1);
        // An autoscaler leaves a target with zero replicas alone.
        if replicas == 0 {
            continue;
        }
        let least = spec["minReplicas"].as_u64().unwrap_or(1).max(replicas);
        let most = spec["maxReplicas"].as_u64().unwrap_or(least).max(least);
        if least > replicas && found.value["spec"].is_object() {
            found.value["spec"]["replicas"] = json!(least);
        }
        let more = if most > least {
            format!("; it may have up to {most}, which are not planned")
        } else {
            String::new()
        };
        notes.push(format!("{name}: {kind} `{own}` counts with {least} replicas{more}"));
    }
    notes
}
