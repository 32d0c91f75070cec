//! What an API server refuses of a ResourceQuota (`ValidateResourceQuotaSpec` in Kubernetes).

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::{FieldProblem, key_segment, meant};
use poolwright_catalog::{ResourceName, quantity};

use crate::quota::REQUESTS;
use crate::quota_scope::{self, OPERATORS};

/// The entries without a domain that count objects.
const COUNTS: [&str; 9] = [
    "configmaps",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
];

/// The entries without a domain that sum CPU and memory of pods.
const COMPUTE: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];

/// The entries without a domain that sum storage.
const STORAGE: [&str; 4] =
    ["ephemeral-storage", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.storage"];

/// The scopes that take a selector with values. The others are there or not.
const WITH_VALUES: [&str; 2] = ["PriorityClass", "VolumeAttributesClass"];

/// Scopes of which no pod meets both.
const CONFLICTS: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

/// Returns everything that an API server refuses of a new quota, besides amounts that are no quantities.
pub(super) fn problems(spec: &k8s::ResourceQuotaSpec) -> Vec<FieldProblem> {
    let entries = spec.hard.iter().flatten();
    let mut problems: Vec<FieldProblem> = entries.filter_map(|(name, amount)| entry(name, amount)).collect();
    let scopes: Vec<&str> = spec.scopes.iter().flatten().map(String::as_str).collect();
    for (at, scope) in scopes.iter().enumerate() {
        problems.extend(one_scope(&format!("spec.scopes[{at}]"), scope, spec));
    }
    problems.extend(conflict("spec.scopes", &scopes));
    let expressions = spec.scope_selector.iter().flat_map(|all| all.match_expressions.iter().flatten());
    let expressions: Vec<&k8s::ScopedResourceSelectorRequirement> = expressions.collect();
    let path = "spec.scopeSelector.matchExpressions";
    for (at, one) in expressions.iter().enumerate() {
        problems.extend(one_scope(&format!("{path}[{at}].scopeName"), &one.scope_name, spec));
        problems.extend(condition(&format!("{path}[{at}]"), one));
    }
    let scopes: Vec<&str> = expressions.iter().map(|one| one.scope_name.as_str()).collect();
    problems.extend(conflict(path, &scopes));
    problems
}

/// Returns what is wrong with the name of an entry, or with a part of a unit (`ValidateResourceQuotaResourceName`).
fn entry(name: &str, Quantity(amount): &Quantity) -> Option<FieldProblem> {
    let at = || format!("spec.hard{}", key_segment(name));
    if !name.contains('/') && !is_standard(name) {
        let next = if name.to_lowercase().contains("gpu") {
            format!("did you mean `{REQUESTS}{}`?", ResourceName::NVIDIA_GPU)
        } else if let Some(known) = meant(name, COUNTS.into_iter().chain(COMPUTE).chain(STORAGE)) {
            format!("did you mean `{known}`?")
        } else {
            "correct it, or write `count/` and the plural of a kind".to_owned()
        };
        return Some(FieldProblem::new(at(), format!("`{name}` is not a resource of a quota"), next));
    }
    let is_of_kubernetes = || name.contains("kubernetes.io/") || name.starts_with(REQUESTS);
    let is_whole_only = COUNTS.contains(&name) || (name.contains('/') && !is_of_kubernetes());
    let is_broken = quantity::parse(amount).is_ok_and(|amount| amount.milli_ceil() % 1000 != 0);
    (is_whole_only && is_broken)
        .then(|| FieldProblem::new(at(), format!("`{amount}` is not a whole number"), "write a whole number"))
}

/// Returns whether an entry is one of Kubernetes itself (`IsStandardQuotaResourceName`).
fn is_standard(name: &str) -> bool {
    let is_huge = name.strip_prefix(REQUESTS).unwrap_or(name).starts_with("hugepages-");
    is_huge || COUNTS.contains(&name) || COMPUTE.contains(&name) || STORAGE.contains(&name)
}

/// Returns what is wrong with a scope: it does not exist, or does not apply to an entry (`IsResourceQuotaScopeValidForResource`).
fn one_scope(path: &str, scope: &str, spec: &k8s::ResourceQuotaSpec) -> Option<FieldProblem> {
    if !quota_scope::KNOWN.contains(&scope) {
        let next = one_of(scope, &quota_scope::KNOWN);
        return Some(FieldProblem::new(path, format!("`{scope}` is not a scope of a quota"), next));
    }
    let applies = |name: &str| match scope {
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => ["persistentvolumeclaims", "requests.storage"].contains(&name),
        _ => name == "pods" || COMPUTE.contains(&name),
    };
    let entries = spec.hard.iter().flatten().map(|(name, _)| name.as_str());
    let others: Vec<&str> = entries.filter(|name| is_standard(name) && !applies(name)).collect();
    (!others.is_empty()).then(|| {
        let cause = format!("an API server refuses this scope with {}", others.join(", "));
        FieldProblem::new(path, cause, "remove the scope, or write a quota of its own for the rest")
    })
}

/// Returns the problem of scopes that exclude each other.
fn conflict(path: &str, scopes: &[&str]) -> Option<FieldProblem> {
    let [one, other] = CONFLICTS.into_iter().find(|pair| pair.iter().all(|scope| scopes.contains(scope)))?;
    let cause = format!("no pod meets both {one} and {other}, so an API server refuses them together");
    Some(FieldProblem::new(path, cause, "remove one of them"))
}

/// Returns what is wrong with the operator or the values of an expression (`validateScopedResourceSelectorRequirement`).
fn condition(path: &str, one: &k8s::ScopedResourceSelectorRequirement) -> Option<FieldProblem> {
    let (operator, scope) = (one.operator.as_str(), one.scope_name.as_str());
    let has_values = one.values.iter().flatten().next().is_some();
    let (field, cause, next) = if !OPERATORS.contains(&operator) {
        let cause = if operator.is_empty() {
            "missing".to_owned()
        } else {
            format!("`{operator}` is not an operator of a scope selector")
        };
        ("operator", cause, one_of(operator, &OPERATORS))
    } else if quota_scope::KNOWN.contains(&scope) && !WITH_VALUES.contains(&scope) && operator != "Exists" {
        ("operator", format!("the scope {scope} takes only the operator Exists"), "write Exists".to_owned())
    } else if operator.ends_with("In") && !has_values {
        ("values", format!("missing, and the operator {operator} needs at least one"), "add it".to_owned())
    } else if !operator.ends_with("In") && has_values {
        ("values", format!("the operator {operator} takes no values"), "remove them".to_owned())
    } else {
        return None;
    };
    Some(FieldProblem::new(format!("{path}.{field}"), cause, next))
}

/// Says which of these names was meant, or names all of them.
fn one_of(name: &str, known: &[&'static str]) -> String {
    match meant(name, known.iter().copied()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("use one of {}", known.join(", ")),
    }
}
