//! HorizontalPodAutoscalers: their targets have at least `minReplicas` and at most `maxReplicas`.

use poolwright_api::FieldProblem;
use serde_json::{Value, json};

use super::Manifest;
use super::counted::counted;
use super::objects::{Object, group, meta};
use super::read::Shared;
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

/// The versions of autoscalers that API servers have.
const VERSIONS: [&str; 2] = ["autoscaling/v1", "autoscaling/v2"];

/// Gives the targets of autoscalers the replicas that these would give them at once. An autoscaler that a quota does not allow
/// scales nothing; a note says so where it is read. `there` are objects that a cluster has besides. Returns notes, and the
/// problems of autoscalers that an API server has not stored yet.
pub(super) fn scale(objects: &mut Vec<Object>, there: &[Object]) -> (Vec<String>, Vec<IntakeError>) {
    let autoscalers: Vec<Object> = objects.iter().filter(|object| is_autoscaler(object)).cloned().collect();
    let refused = over_quota(&autoscalers, objects, there);
    let (mut notes, mut errors) = (Vec::new(), Vec::new());
    for (autoscaler, is_refused) in autoscalers.iter().zip(refused) {
        let name = autoscaler.name();
        let applied = if let Some(problem) = removed(autoscaler) {
            Err(vec![problem])
        } else if is_refused {
            checked(&autoscaler.value["spec"]).map(|_| None)
        } else {
            apply(autoscaler, objects)
        };
        match applied {
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

fn is_autoscaler(object: &Object) -> bool {
    object.kind == "HorizontalPodAutoscaler" && group(&object.api_version) == "autoscaling"
}

/// Returns the problem of a written autoscaler of a version that no API server has any more.
fn removed(autoscaler: &Object) -> Option<FieldProblem> {
    let version = autoscaler.api_version.as_str();
    (!autoscaler.is_stored() && !VERSIONS.contains(&version)).then(|| {
        let cause = format!("version `{version}` of this kind is not read");
        FieldProblem::new("apiVersion", cause, "use `autoscaling/v2`")
    })
}

/// Returns for each autoscaler whether a quota does not allow it.
fn over_quota(autoscalers: &[Object], objects: &[Object], there: &[Object]) -> Vec<bool> {
    let is_quota = |object: &&Object| object.kind == "ResourceQuota";
    if !autoscalers.iter().any(Object::is_new) || !objects.iter().any(|object| is_quota(&object)) {
        return vec![false; autoscalers.len()];
    }
    // Quotas are read before the replicas are known, because they decide about these. Their problems are told later.
    let (mut shared, mut unused) = (Shared::new(objects, &[]), Manifest::default());
    for quota in objects.iter().filter(is_quota) {
        drop(quota.read_into(&mut unused, &mut shared));
    }
    let stored = autoscalers.iter().filter(|object| !object.is_new());
    for object in stored.chain(there.iter().filter(|object| is_autoscaler(object))) {
        object.count_to_quotas(&mut shared);
    }
    autoscalers.iter().map(|autoscaler| autoscaler.over_quota(&mut shared).is_some()).collect()
}

/// Gives the target of one autoscaler its replicas. Returns a note.
fn apply(autoscaler: &Object, objects: &mut Vec<Object>) -> Result<Option<String>, Vec<FieldProblem>> {
    let spec = &autoscaler.value["spec"];
    let Checked { least, most, kind, own } = checked(spec)?;
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
    } else if counted < most {
        format!("; it may have up to {most}, which are not planned")
    } else {
        String::new()
    };
    Ok(Some(format!("{kind} `{own}` counts with {}{more}", self::counted(counted, "replica"))))
}

/// What an autoscaler asks for.
struct Checked<'a> {
    least: u64,
    /// Never less than the least.
    most: u64,
    /// The kind of its target.
    kind: &'a str,
    /// The name of its target.
    own: &'a str,
}

/// Reads the spec of an autoscaler. Errors: what an API server refuses (`validateHorizontalPodAutoscalerSpec` in Kubernetes).
fn checked(spec: &Value) -> Result<Checked<'_>, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut number = |field: &str, usual: Option<u64>, fewest: u64| {
        let stated = &spec[field];
        let number = if stated.is_null() { usual } else { stated.as_u64() };
        if let Some(number) = number.filter(|number| *number >= fewest) {
            return number;
        }
        let (cause, next) = match number {
            Some(number) => (format!("`{number}` is less than {fewest}"), "raise it"),
            None if stated.is_null() => ("missing".to_owned(), "add it"),
            None => (format!("`{stated}` is not a number of replicas"), "write a whole number"),
        };
        problems.push(FieldProblem::new(format!("spec.{field}"), cause, next));
        fewest
    };
    // A cluster with the feature gate HPAScaleToZero allows zero.
    let (least, most) = (number("minReplicas", Some(1), 0), number("maxReplicas", None, 1));
    if problems.is_empty() && most < least {
        let cause = format!("`{most}` is less than minReplicas ({least})");
        problems.push(FieldProblem::new("spec.maxReplicas", cause, "raise it"));
    }
    let target = |field: &str| spec["scaleTargetRef"][field].as_str().unwrap_or_default();
    let (kind, own) = (target("kind"), target("name"));
    for (field, text) in [("kind", kind), ("name", own)] {
        if text.is_empty() {
            problems.push(FieldProblem::new(format!("spec.scaleTargetRef.{field}"), "missing", "add it"));
        }
    }
    if problems.is_empty() { Ok(Checked { least, most, kind, own }) } else { Err(problems) }
}
