//! Priority of new pods (admission plugin `Priority`).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PodSpec;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use poolwright_api::FieldProblem;

use super::whereabouts;

/// The classes that every cluster has, with their values.
const BUILT_IN: [(&str, i32); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The policy of classes that state none.
const USUAL_POLICY: &str = "PreemptLowerPriority";

/// Returns the priority of a class that every cluster has.
pub(crate) fn built_in(name: &str) -> Option<i32> {
    BUILT_IN.iter().find(|(class, _)| *class == name).map(|(_, value)| *value)
}

/// Writes priority, class and preemption policy into the spec: those of its class, or of the default class. Returns a note if the
/// class is not among the manifests. `lost` are the objects of the manifests that are left out.
///
/// Errors: a priority in the spec that is not that of the class.
pub(super) fn admit(
    path: &str,
    spec: &mut PodSpec,
    classes: &BTreeMap<String, PriorityClass>,
    lost: &BTreeSet<String>,
) -> Result<Option<String>, FieldProblem> {
    let named = spec.priority_class_name.clone().filter(|name| !name.is_empty());
    // Of several default classes, the API server takes the one of the least value.
    let defaults = classes.values().filter(|class| class.global_default == Some(true));
    let class = match &named {
        Some(name) => classes.get(name),
        None => defaults.min_by_key(|class| class.value),
    };
    let known = class.map(|class| class.value.unwrap_or_default()).or_else(|| built_in(named.as_deref()?));
    // A pod without a class has the priority of the default class, or 0.
    if let (None, None, Some(stated)) = (&named, known, spec.priority.filter(|stated| *stated != 0)) {
        return Err(FieldProblem::new(
            format!("{path}.priority"),
            format!("an API server refuses `{stated}`, because the pod names no PriorityClass of this value"),
            "remove it, and write priorityClassName",
        ));
    }
    let Some(value) = known else {
        let counted = spec.priority.unwrap_or_default();
        // Without a class, the cluster's default class decides. The files may not have it.
        return Ok(named.map(|name| {
            let (is_where, next) = whereabouts(&format!("PriorityClass {name}"), lost);
            format!("PriorityClass `{name}` {is_where}, so the priority counts as {counted}; {next}")
        }));
    };
    let name = class.and_then(|class| class.metadata.name.clone()).or(named).unwrap_or_default();
    if let Some(stated) = spec.priority.filter(|stated| *stated != value) {
        return Err(FieldProblem::new(
            format!("{path}.priority"),
            format!("an API server refuses `{stated}`, because PriorityClass `{name}` has {value}"),
            "remove it, and write priorityClassName",
        ));
    }
    let policy = class.and_then(|class| class.preemption_policy.as_deref()).unwrap_or(USUAL_POLICY);
    if let Some(stated) = spec.preemption_policy.as_deref().filter(|stated| *stated != policy) {
        return Err(FieldProblem::new(
            format!("{path}.preemptionPolicy"),
            format!("an API server refuses `{stated}`, because PriorityClass `{name}` has {policy}"),
            "remove it, and choose another class",
        ));
    }
    spec.priority = Some(value);
    if let Some(class) = class {
        spec.priority_class_name.clone_from(&class.metadata.name);
    }
    spec.preemption_policy = Some(policy.to_owned());
    Ok(None)
}
