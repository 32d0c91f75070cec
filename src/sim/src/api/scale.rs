//! The subresource `scale`: the replicas of a workload of any kind (autoscaling/v1 Scale).

use serde_json::{Value, json};

use super::answer::Refusal;
use super::kinds::Kind;
use super::objects;

/// Returns whether a kind has the subresource. ReplicationControllers are left out, because nothing here scales one.
pub(super) fn has(kind: &Kind) -> bool {
    kind.group == "apps" && ["Deployment", "ReplicaSet", "StatefulSet"].contains(&kind.kind.as_str())
}

/// Returns the scale of a workload.
pub(super) fn of(workload: &Value) -> Value {
    let from = &workload["metadata"];
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        objects::set(&mut metadata, field, from.get(field).cloned());
    }
    let count = |part: &str| workload[part]["replicas"].as_i64().unwrap_or(0);
    let mut spec = json!({});
    // Go omits an empty number.
    if count("spec") != 0 {
        spec["replicas"] = json!(count("spec"));
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": spec,
        "status": {"replicas": count("status"), "selector": selector(&workload["spec"]["selector"])}})
}

/// Applies a Scale that a client sent to a workload.
pub(super) fn apply(kind: &Kind, workload: &Value, scale: &Value) -> Result<Value, Refusal> {
    let name = workload["metadata"]["name"].as_str().unwrap_or_default();
    let wrong = |field: &str, wanted: &str| scale[field].as_str().is_some_and(|own| own != wanted);
    if !scale.is_object() || wrong("kind", "Scale") || wrong("apiVersion", "autoscaling/v1") {
        return Err(Refusal::bad_request("the object provided is no Scale of autoscaling/v1"));
    }
    let own = scale["metadata"]["name"].as_str().unwrap_or_default();
    if own != name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({own}) does not match the name on the URL ({name})"
        )));
    }
    let replicas = match &scale["spec"]["replicas"] {
        Value::Null => 0,
        sent => sent
            .as_i64()
            .ok_or_else(|| Refusal::bad_request(format!("spec.replicas is no number: {sent}")))?,
    };
    if replicas < 0 {
        let sentence = format!("Invalid value: {replicas}: must be greater than or equal to 0");
        return Err(Refusal::invalid_scale(name, ("spec.replicas", sentence)));
    }
    let version = scale["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    if !version.is_empty() && workload["metadata"]["resourceVersion"] != version {
        return Err(Refusal::changed(kind, name));
    }
    let mut changed = workload.clone();
    changed["spec"]["replicas"] = json!(replicas);
    Ok(changed)
}

/// Returns a selector in the format of `kubectl get -l`.
fn selector(selector: &Value) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        terms.push((key.clone(), format!("{key}={}", value.as_str().unwrap_or_default())));
    }
    for one in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = one["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> =
            one["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match one["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            _ => key.to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    // Sorted by key alone, labels before expressions (`labels.Requirements`).
    terms.sort_by(|(one, _), (other, _)| one.cmp(other));
    terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(",")
}
