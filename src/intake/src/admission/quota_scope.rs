//! Scopes of ResourceQuotas: the pods that a quota counts
//! (<https://kubernetes.io/docs/concepts/policy/resource-quotas/#quota-scopes>).

use k8s_openapi::api::core::v1::{self as k8s, PodSpec, ResourceRequirements};
use poolwright_api::{FieldProblem, meant};

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

/// A condition on pods. The operator and the values are those of a scope selector.
struct Condition {
    scope: String,
    operator: String,
    values: Vec<String>,
}

/// The conditions of a quota. A pod that it counts meets all of them.
#[derive(Default)]
pub(super) struct Scopes(Vec<Condition>);

impl Scopes {
    /// Reads the scopes of a quota.
    pub fn of(spec: &k8s::ResourceQuotaSpec) -> Self {
        let plain = spec.scopes.iter().flatten().map(|scope| Condition {
            scope: scope.clone(),
            operator: "Exists".to_owned(),
            values: Vec::new(),
        });
        let selected =
            spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
        let selected = selected.map(|one| Condition {
            scope: one.scope_name.clone(),
            operator: one.operator.clone(),
            values: one.values.clone().unwrap_or_default(),
        });
        Self(plain.chain(selected).collect())
    }

    /// Returns whether a quota with these scopes counts a pod of the namespace.
    pub fn match_pod(&self, namespace: &str, spec: &PodSpec) -> bool {
        self.0.iter().all(|condition| condition.holds(namespace, spec))
    }
}

impl Condition {
    fn holds(&self, namespace: &str, spec: &PodSpec) -> bool {
        let ends = spec.active_deadline_seconds.is_some_and(|seconds| seconds >= 0);
        match self.scope.as_str() {
            "Terminating" => ends,
            "NotTerminating" => !ends,
            "BestEffort" => is_best_effort(spec),
            "NotBestEffort" => !is_best_effort(spec),
            "CrossNamespacePodAffinity" => crosses_namespaces(namespace, spec),
            "PriorityClass" => {
                let class = spec.priority_class_name.as_deref().filter(|name| !name.is_empty());
                let is_listed = class.is_some_and(|name| self.values.iter().any(|value| value == name));
                match self.operator.as_str() {
                    "In" => is_listed,
                    "NotIn" => !is_listed,
                    "DoesNotExist" => class.is_none(),
                    _ => class.is_some(),
                }
            }
            // `VolumeAttributesClass` is about volumes. An API server refuses all others.
            _ => false,
        }
    }
}

/// Returns the scopes of a quota that no API server knows, each with its path.
pub(super) fn unknown(spec: &k8s::ResourceQuotaSpec) -> Vec<(String, &str)> {
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
pub(super) fn problem(path: &str, scope: &str) -> FieldProblem {
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

/// Returns whether an affinity term of the pod names other namespaces, or selects namespaces.
fn crosses_namespaces(own: &str, spec: &PodSpec) -> bool {
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
    near.chain(away).any(|term| {
        term.namespace_selector.is_some() || term.namespaces.iter().flatten().any(|other| other != own)
    })
}
