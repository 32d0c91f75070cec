//! HorizontalPodAutoscalers: their targets have at least `minReplicas` and at most `maxReplicas`.

use poolwright_api::FieldProblem;
use serde_json::{Value, json};

use super::objects::{Object, group, meta};
use super::scale_down::{replicas_of_only_set, scale_down};
use crate::error::{IntakeError, OfObject};

/// The kinds that have as many pods, or groups of pods, as `spec.replicas` says.
const SCALED: [&str; 8] = [
    "CloneSet",
    "Deployment",
    "DeploymentConfig",
    "LeaderWorkerSet",
    "ReplicaSet",
    "ReplicationController",
    "Rollout",
    "StatefulSet",
];

/// Gives the targets of autoscalers the replicas that these would give them at once. Returns notes, and the problems of
/// autoscalers that an API server has not stored yet.
pub(super) fn scale(objects: &mut Vec<Object>) -> (Vec<String>, Vec<IntakeError>) {
    let scales = |object: &&Object| {
        object.kind == "HorizontalPodAutoscaler" && group(&object.api_version) == "autoscaling"
    };
    let autoscalers: Vec<Object> = objects.iter().filter(scales).cloned().collect();
    let (mut notes, mut errors) = (Vec::new(), Vec::new());
    for autoscaler in &autoscalers {
        let name = autoscaler.name();
        match apply(autoscaler, objects) {
            Ok(note) => notes.extend(note.map(|note| format!("{name}: {note}"))),
            Err(found) if autoscaler.is_stored() => {
                for FieldProblem { path, cause, .. } in found {
                    notes.push(format!("{name}: {path}: {cause}; it does not count"));
                }
            }
            Err(found) => {
                let file = || Some(autoscaler.file.clone());
                let named = found.into_iter().map(|problem| problem.of(name.as_str()));
                errors.extend(named.map(|error| IntakeError { file: file(), ..error }));
            }
        }
    }
    (notes, errors)
}

/// Gives the target of one autoscaler its replicas. Returns a note.
fn apply(autoscaler: &Object, objects: &mut Vec<Object>) -> Result<Option<String>, Vec<FieldProblem>> {
    let spec = &autoscaler.value["spec"];
    let (least, most) = bounds(spec)?;
    let target = |field: &str| spec["scaleTargetRef"][field].as_str().unwrap_or_default();
    let (kind, own) = (target("kind"), target("name"));
    if own.is_empty() {
        return Ok(Some("it names no target (spec.scaleTargetRef), so it does not count".to_owned()));
    }
    let namespace = autoscaler.namespace();
    let is_target = |object: &Object| {
        object.kind == kind && meta(&object.value, "name") == Some(own) && object.namespace() == namespace
    };
    let Some(at) = objects.iter().position(is_target) else {
        return Ok(Some(format!("its target {kind} `{own}` is not in the files, so it does not count")));
    };
    let found = &mut objects[at];
    if !SCALED.contains(&kind) || !found.is_read() || !found.value["spec"].is_object() {
        return Ok(Some(format!(
            "minReplicas ({least}) is not applied to {kind} `{own}`, whose number of pods is not read from spec.replicas"
        )));
    }
    let replicas = match &found.value["spec"]["replicas"] {
        Value::Null => Some(1),
        stated => stated.as_u64(),
    };
    // What is no number is a problem of the target. An autoscaler leaves a target with zero replicas alone.
    let Some(replicas) = replicas.filter(|replicas| *replicas > 0) else { return Ok(None) };
    let counted = replicas.clamp(least, most);
    if counted != replicas {
        found.value["spec"]["replicas"] = json!(counted);
    }
    let stands = replicas.max(replicas_of_only_set(objects, at));
    let deleted = if stands > most { scale_down(objects, at, most) } else { 0 };
    let more = if stands > most {
        let deleted = match deleted {
            0 => String::new(),
            1 => "; one of its pods would be deleted and does not count".to_owned(),
            more => format!("; {more} of its pods would be deleted and do not count"),
        };
        format!(" instead of {stands}, because maxReplicas allows no more{deleted}")
    } else if counted < most && most < u64::MAX {
        format!("; it may have up to {most}, which are not planned")
    } else {
        String::new()
    };
    Ok(Some(format!("{kind} `{own}` counts with {counted} replicas{more}")))
}

/// Returns the least and the most replicas. The most are never less than the least.
fn bounds(spec: &Value) -> Result<(u64, u64), Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut number = |field: &str, usual: u64| match &spec[field] {
        Value::Null => usual,
        stated => stated.as_u64().unwrap_or_else(|| {
            let cause = format!("`{stated}` is not a number of replicas");
            problems.push(FieldProblem::new(format!("spec.{field}"), cause, "write a whole number"));
            usual
        }),
    };
    let (least, most) = (number("minReplicas", 1), number("maxReplicas", u64::MAX));
    if problems.is_empty() && most < least {
        let cause = format!("`{most}` is less than minReplicas ({least})");
        problems.push(FieldProblem::new("spec.maxReplicas", cause, "raise it"));
    }
    if problems.is_empty() { Ok((least, most)) } else { Err(problems) }
}
