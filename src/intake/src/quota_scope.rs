//! Scopes of ResourceQuotas, and what they ask of a pod
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>; `pkg/quota/v1/evaluator/core` in Kubernetes).

use k8s_openapi::api::core::v1::{self as k8s, PodAffinityTerm, PodSpec, ResourceRequirements};
use poolwright_api::{FieldProblem, meant};
use poolwright_core::{Operator, PodScopes, QuotaScope, QuotaScopes};

/// The scopes that an API server knows.
const KNOWN: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Converts the scopes of a quota, and the expressions of its scope selector.
pub(crate) fn scopes(spec: &k8s::ResourceQuotaSpec) -> QuotaScopes {
    let plain = spec.scopes.iter().flatten().map(|scope| of(scope, Operator::Exists));
    let selected =
        spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    let selected = selected.map(|one| {
        let names = || one.values.iter().flatten().cloned().collect();
        let condition = match one.operator.as_str() {
            "In" => Operator::In(names()),
            "NotIn" => Operator::NotIn(names()),
            "DoesNotExist" => Operator::DoesNotExist,
            _ => Operator::Exists,
        };
        of(&one.scope_name, condition)
    });
    QuotaScopes(plain.chain(selected).collect())
}

fn of(name: &str, condition: Operator) -> QuotaScope {
    match name {
        "Terminating" => QuotaScope::Terminating,
        "NotTerminating" => QuotaScope::NotTerminating,
        "BestEffort" => QuotaScope::BestEffort,
        "NotBestEffort" => QuotaScope::NotBestEffort,
        "CrossNamespacePodAffinity" => QuotaScope::CrossNamespacePodAffinity,
        "PriorityClass" => QuotaScope::PriorityClass(condition),
        "VolumeAttributesClass" => QuotaScope::VolumeAttributesClass(condition),
        _ => QuotaScope::Unknown,
    }
}

/// Returns what scopes ask of a pod.
pub(crate) fn of_pod(spec: &PodSpec) -> PodScopes {
    PodScopes {
        terminating: spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0),
        best_effort: is_best_effort(spec),
        names_namespaces: names_namespaces(spec),
        priority_class: spec.priority_class_name.clone().filter(|name| !name.is_empty()),
    }
}

/// Returns the scopes of a quota that no API server knows, each with its path.
pub(crate) fn unknown(spec: &k8s::ResourceQuotaSpec) -> Vec<(String, &str)> {
    let plain = spec.scopes.iter().flatten().enumerate();
    let plain = plain.map(|(at, scope)| (format!("spec.scopes[{at}]"), scope.as_str()));
    let selected =
        spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    let selected = selected.enumerate().map(|(at, one)| {
        (format!("spec.scopeSelector.matchExpressions[{at}].scopeName"), one.scope_name.as_str())
    });
    plain.chain(selected).filter(|(_, scope)| !KNOWN.contains(scope)).collect()
}

/// Returns the problem of an unknown scope at a path.
pub(crate) fn problem(path: &str, scope: &str) -> FieldProblem {
    let next = match meant(scope, KNOWN) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("use one of {}", KNOWN.join(", ")),
    };
    FieldProblem::new(path, format!("`{scope}` is not a scope of a quota"), next)
}

/// Returns whether no container states CPU or memory (QoS class `BestEffort`).
fn is_best_effort(spec: &PodSpec) -> bool {
    let states = |stated: Option<&ResourceRequirements>| {
        let lists = stated.into_iter().flat_map(|stated| [&stated.requests, &stated.limits]);
        let mut amounts = lists.flatten().flatten();
        let is_zero = |text: &str| text.chars().filter(char::is_ascii_digit).all(|digit| digit == '0');
        amounts.any(|(name, amount)| matches!(name.as_str(), "cpu" | "memory") && !is_zero(&amount.0))
    };
    let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    !states(spec.resources.as_ref()) && !all.map(|one| one.resources.as_ref()).any(states)
}

/// Returns whether an affinity term of the pod names namespaces, be it only its own, or selects them
/// (`usesCrossNamespacePodAffinity`).
fn names_namespaces(spec: &PodSpec) -> bool {
    let Some(affinity) = &spec.affinity else { return false };
    let near = affinity.pod_affinity.iter().flat_map(|near| {
        let preferred = near.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        let required = near.required_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|one| &one.pod_affinity_term))
    });
    let away = affinity.pod_anti_affinity.iter().flat_map(|away| {
        let preferred = away.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        let required = away.required_during_scheduling_ignored_during_execution.iter().flatten();
        required.chain(preferred.map(|one| &one.pod_affinity_term))
    });
    let names = |term: &PodAffinityTerm| {
        term.namespace_selector.is_some() || term.namespaces.iter().flatten().next().is_some()
    };
    near.chain(away).any(names)
}
