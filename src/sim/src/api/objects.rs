//! Prepares objects for storage: names, generations, defaults and immutable fields.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::answer::Refusal;
use super::kinds::Kind;
use super::pods;

/// Prepares a new object: metadata, defaults, validation.
pub(super) fn for_creation(
    kind: &Kind,
    mut object: Value,
    uid: &str,
    now: Timestamp,
) -> Result<Value, Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let metadata = &mut object["metadata"];
    for field in
        ["resourceVersion", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"]
    {
        remove(metadata, field);
    }
    metadata["uid"] = json!(uid);
    metadata["creationTimestamp"] = json!(second(now));
    if kind.traits.generation {
        metadata["generation"] = json!(1);
    }
    drop_empty(metadata);
    if kind.traits.status && !kind.is_pod() && kind.kind != "Node" {
        remove(&mut object, "status");
    }
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    if kind.is_pod() {
        pods::complete(&mut object, now);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = json!(name);
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
        }
        ("policy", "PodDisruptionBudget") => {
            object["status"] = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0,
                "expectedPods": 0});
        }
        ("", "Node") => {
            // Like kube-apiserver's TaintNodesByCondition admission.
            let taint = json!({"key": poolwright_terms::keys::NOT_READY_TAINT, "effect": "NoSchedule"});
            let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
            if !taints.iter().any(|one| one["key"] == taint["key"] && one["effect"] == taint["effect"]) {
                taints.push(taint);
            }
            object["spec"]["taints"] = json!(taints);
            if object["status"].is_null() {
                object["status"] = json!({});
            }
            // Go serialises these fields even when they are empty.
            let info = [
                "architecture",
                "bootID",
                "containerRuntimeVersion",
                "kernelVersion",
                "kubeProxyVersion",
                "kubeletVersion",
                "machineID",
                "operatingSystem",
                "osImage",
                "systemUUID",
            ];
            for field in info {
                if object["status"]["nodeInfo"][field].is_null() {
                    object["status"]["nodeInfo"][field] = json!("");
                }
            }
            if object["status"]["daemonEndpoints"].is_null() {
                object["status"]["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 0}});
            }
        }
        _ => {}
    }
    if let Some(custom) = &kind.custom {
        custom.complete(&mut object);
    }
    check(kind, &object, None)?;
    Ok(object)
}

/// Prepares an update of the main resource: metadata and spec, not the status.
pub(super) fn for_update(kind: &Kind, before: &Value, mut object: Value) -> Result<Value, Refusal> {
    keep_metadata(kind, before, &mut object)?;
    if kind.traits.status {
        set(&mut object, "status", before.get("status").cloned());
    }
    if let Some(custom) = &kind.custom {
        custom.complete(&mut object);
    }
    if kind.is_pod() {
        if object["spec"]["schedulingGates"].as_array().is_some_and(Vec::is_empty) {
            remove(&mut object["spec"], "schedulingGates");
        }
        pods::check_update(kind, before, &object)?;
    }
    let generation = before["metadata"]["generation"].as_u64();
    if kind.traits.generation
        && let Some(generation) = generation
    {
        let changed = asked(before) != asked(&object);
        object["metadata"]["generation"] = json!(generation + u64::from(changed));
    }
    check(kind, &object, Some(before))?;
    Ok(object)
}

/// Prepares an update of the subresource `status`.
pub(super) fn for_status(kind: &Kind, before: &Value, mut object: Value) -> Result<Value, Refusal> {
    keep_metadata(kind, before, &mut object)?;
    if let Some(custom) = &kind.custom {
        // An update of a custom resource's status changes nothing else, not even labels.
        let status = object.get_mut("status").map(Value::take);
        let (object, problems) = custom.with_status(before, status, !kind.traits.trusted);
        refuse(kind, &object, &problems)?;
        return Ok(object);
    }
    set(&mut object, "spec", before.get("spec").cloned());
    Ok(object)
}

/// Restores immutable metadata, and refuses new finalizers on an object that is being deleted.
fn keep_metadata(kind: &Kind, before: &Value, object: &mut Value) -> Result<(), Refusal> {
    let name = before["metadata"]["name"].as_str().unwrap_or_default();
    let known = &before["metadata"];
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    let deleting = known.get("deletionTimestamp").is_some_and(|time| !time.is_null());
    let finalizers = |metadata: &Value| -> Vec<String> {
        let all = metadata["finalizers"].as_array().into_iter().flatten();
        all.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    };
    let had = finalizers(known);
    let added: Vec<String> =
        finalizers(&object["metadata"]).into_iter().filter(|name| !had.contains(name)).collect();
    if deleting && !added.is_empty() {
        let sentence = format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers {added:?}"
        );
        return Err(Refusal::invalid(kind, name, &[("metadata.finalizers".to_owned(), sentence)]));
    }
    for field in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
        "selfLink",
    ] {
        let value = known.get(field).cloned();
        set(&mut object["metadata"], field, value);
    }
    object["kind"] = json!(kind.kind);
    object["apiVersion"] = json!(kind.api_version());
    drop_empty(&mut object["metadata"]);
    Ok(())
}

fn check(kind: &Kind, object: &Value, before: Option<&Value>) -> Result<(), Refusal> {
    let custom = kind.custom.as_ref().filter(|_| !kind.traits.trusted);
    let problems = custom.map(|custom| custom.problems(object, before)).unwrap_or_default();
    refuse(kind, object, &problems)
}

fn refuse(kind: &Kind, object: &Value, problems: &[(String, String)]) -> Result<(), Refusal> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if problems.is_empty() { Ok(()) } else { Err(Refusal::invalid(kind, name, problems)) }
}

/// Returns the fields of the object without status and metadata: changes of the rest increase the generation.
fn asked(object: &Value) -> BTreeMap<&str, &Value> {
    let fields = object.as_object().into_iter().flatten().map(|(field, value)| (field.as_str(), value));
    fields.filter(|(field, _)| !["metadata", "status"].contains(field)).collect()
}

/// Removes empty maps and lists, which are not stored.
fn drop_empty(metadata: &mut Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let empty = match &metadata[field] {
            Value::Object(map) => map.is_empty(),
            Value::Array(list) => list.is_empty(),
            Value::Null => true,
            _ => false,
        };
        if empty {
            remove(metadata, field);
        }
    }
}

pub(super) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove(field);
    }
}

pub(super) fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) if !value.is_null() => object[field] = value,
        _ => remove(object, field),
    }
}

/// Formats a time as in metadata.
pub(super) fn second(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
