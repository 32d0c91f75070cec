//! Scheduling rules of pods and taints of nodes.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::FieldProblem;
use poolwright_core::rules::NODE_NAME_FIELD;
use poolwright_core::{
    ClaimName, NodeSelectorTerm, Operator, Requirement, Toleration, TolerationMatch, UnmodelledRule,
};
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::{Taint, TaintEffect};

use crate::error::all_or_problems;

/// Returns the required node affinity. Rules in it that cannot be evaluated go to `unmodelled`.
pub(crate) fn node_affinity(
    path: &str,
    affinity: Option<&k8s::NodeAffinity>,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Option<Vec<NodeSelectorTerm>> {
    let selector = affinity?.required_during_scheduling_ignored_during_execution.as_ref()?;
    let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms");
    Some(node_terms(&path, selector, unmodelled))
}

/// Converts terms on nodes. Expressions in them that cannot be evaluated go to `unmodelled`. `path` is that of the terms.
pub(crate) fn node_terms(
    path: &str,
    selector: &k8s::NodeSelector,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<NodeSelectorTerm> {
    let terms = selector.node_selector_terms.iter().enumerate();
    terms.map(|(at, term)| node_term(&format!("{path}[{at}]"), term, unmodelled)).collect()
}

/// Converts one term on nodes. Expressions in it that cannot be evaluated go to `unmodelled`.
pub(crate) fn node_term(
    path: &str,
    term: &k8s::NodeSelectorTerm,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> NodeSelectorTerm {
    let mut requirements = Vec::new();
    for (index, field) in term.match_fields.iter().flatten().enumerate() {
        match field_requirement(field) {
            Some(requirement) => requirements.push(requirement),
            None => unmodelled.push(UnmodelledRule {
                field: format!("{path}.matchFields[{index}]"),
                rule: format!(
                    "node affinity by the field `{}` with the operator `{}`",
                    field.key, field.operator
                ),
            }),
        }
    }
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        let values = expression.values.clone().unwrap_or_default();
        match operator(&expression.operator, values) {
            Some(operator) => requirements.push(Requirement { key: expression.key.clone(), operator }),
            None => unmodelled.push(UnmodelledRule {
                field: format!("{path}.matchExpressions[{index}]"),
                rule: format!("node affinity with the operator `{}` and these values", expression.operator),
            }),
        }
    }
    NodeSelectorTerm { requirements }
}

/// Kubernetes supports only one node field, the name: `In` or `NotIn` with one value.
fn field_requirement(from: &k8s::NodeSelectorRequirement) -> Option<Requirement> {
    let is_known = from.key == "metadata.name" && matches!(from.operator.as_str(), "In" | "NotIn");
    let values = from.values.clone().filter(|values| is_known && values.len() == 1)?;
    Some(Requirement { key: NODE_NAME_FIELD.to_owned(), operator: operator(&from.operator, values)? })
}

/// Returns an operator and its values; `None` if they do not match.
pub(crate) fn operator(name: &str, values: Vec<String>) -> Option<Operator> {
    let number = || match values.as_slice() {
        [only] => only.parse().ok(),
        _ => None,
    };
    Some(match name {
        "In" if !values.is_empty() => Operator::In(values.into_iter().collect()),
        "NotIn" if !values.is_empty() => Operator::NotIn(values.into_iter().collect()),
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt(number()?),
        "Lt" => Operator::Lt(number()?),
        "Gte" => Operator::Gte(number()?),
        "Lte" => Operator::Lte(number()?),
        _ => return None,
    })
}

/// Returns the claims with reserved nodes that admit the pod, from the tolerations that Poolwright gave it.
pub(crate) fn reserved_for(from: &[k8s::Toleration]) -> Vec<ClaimName> {
    from.iter().filter_map(reservation).collect()
}

/// Returns the claim of a toleration that Poolwright added.
fn reservation(from: &k8s::Toleration) -> Option<ClaimName> {
    let ours = from.key.as_deref() == Some(RESERVED_TAINT) && from.operator.as_deref() != Some("Exists");
    from.value.as_ref().filter(|_| ours).map(|value| ClaimName(value.clone()))
}

/// Converts tolerations, except those that Poolwright added. Tolerations that cannot be evaluated go to `unmodelled`.
pub(crate) fn tolerations(
    path: &str,
    from: &[k8s::Toleration],
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<Toleration> {
    let mut converted = Vec::new();
    for (at, toleration) in from.iter().enumerate() {
        if reservation(toleration).is_some() {
            continue;
        }
        if let Some(toleration) = one_toleration(toleration) {
            converted.push(toleration);
            continue;
        }
        let effect = toleration.effect.as_deref().filter(|effect| !effect.is_empty());
        let rule = format!(
            "a toleration with the operator `{}` and {}",
            toleration.operator.as_deref().unwrap_or("Equal"),
            effect.map_or_else(|| "all effects".to_owned(), |effect| format!("the effect `{effect}`")),
        );
        unmodelled.push(UnmodelledRule { field: format!("{path}.tolerations[{at}]"), rule });
    }
    converted
}

fn one_toleration(from: &k8s::Toleration) -> Option<Toleration> {
    let key = from.key.clone().filter(|key| !key.is_empty());
    let matches = match from.operator.as_deref().unwrap_or_default() {
        "Exists" => TolerationMatch::Exists,
        // Without a key there is no value to compare; Kubernetes requires `Exists` then.
        "" | "Equal" if key.is_some() => TolerationMatch::Equal(from.value.clone().unwrap_or_default()),
        _ => return None,
    };
    let effect = match from.effect.as_deref().unwrap_or_default() {
        "" => None,
        name => Some(TaintEffect::named(name)?),
    };
    Some(Toleration { key, matches, effect })
}

/// Returns a toleration of everything under one key, as controllers add them.
pub(crate) fn tolerate(key: &str, effect: TaintEffect) -> Toleration {
    Toleration { key: Some(key.to_owned()), matches: TolerationMatch::Exists, effect: Some(effect) }
}

/// Converts the taints of a node, or returns all problems.
pub(crate) fn taints(path: &str, from: &[k8s::Taint]) -> Result<Vec<Taint>, Vec<FieldProblem>> {
    let convert = |(at, taint): (usize, &k8s::Taint)| {
        let effect = TaintEffect::named(&taint.effect).ok_or_else(|| {
            FieldProblem::new(
                format!("{path}[{at}].effect"),
                format!("`{}` is not an effect of a taint", taint.effect),
                "use NoSchedule, PreferNoSchedule or NoExecute",
            )
        })?;
        Ok::<_, FieldProblem>(Taint {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect,
        })
    };
    all_or_problems(from.iter().enumerate().map(convert))
}
