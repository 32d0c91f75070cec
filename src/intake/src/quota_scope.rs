//! Scopes of ResourceQuotas, and what they ask of a pod
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>; `pkg/quota/v1/evaluator/core` in Kubernetes).

use k8s_openapi::api::core::v1::{self as k8s, PodAffinityTerm, PodSpec, ResourceRequirements};
use poolwright_core::{Operator, PodScopes, QuotaScope, QuotaScopes};

/// The scopes that an API server knows.
pub(crate) const KNOWN: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// The operators of scope selectors.
pub(crate) const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];

/// Converts the scopes of a quota, and the expressions of its scope selector.
pub(crate) fn scopes(spec: &k8s::ResourceQuotaSpec) -> QuotaScopes {
    let plain = spec.scopes.iter().flatten().map(|scope| of(scope, Operator::Exists));
    let selected =
        spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    let selected = selected.map(|one| {
        let names = || one.values.iter().flatten().cloned().collect();
        match one.operator.as_str() {
            "In" => of(&one.scope_name, Operator::In(names())),
            "NotIn" => of(&one.scope_name, Operator::NotIn(names())),
            "DoesNotExist" => of(&one.scope_name, Operator::DoesNotExist),
            "Exists" => of(&one.scope_name, Operator::Exists),
            _ => QuotaScope::Unknown,
        }
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

/// Returns the scopes and operators of a quota that are not known, in words, each with its path.
pub(crate) fn unknown(spec: &k8s::ResourceQuotaSpec) -> Vec<(String, String)> {
    let scope =
        |path: String, scope: &str| (!KNOWN.contains(&scope)).then(|| (path, format!("the scope `{scope}`")));
    let plain = spec.scopes.iter().flatten().enumerate();
    let mut unknown: Vec<(String, String)> =
        plain.filter_map(|(at, name)| scope(format!("spec.scopes[{at}]"), name)).collect();
    let selected =
        spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    for (at, one) in selected.enumerate() {
        let path = format!("spec.scopeSelector.matchExpressions[{at}]");
        unknown.extend(scope(format!("{path}.scopeName"), &one.scope_name));
        if !OPERATORS.contains(&one.operator.as_str()) {
            unknown.push((format!("{path}.operator"), format!("the operator `{}`", one.operator)));
        }
    }
    unknown
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
