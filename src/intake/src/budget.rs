//! PodDisruptionBudgets.

use k8s_openapi::api::policy::v1 as policy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use poolwright_api::FieldProblem;
use poolwright_core::{BudgetLimit, BudgetSelector, CountOrPercent, PodDisruptionBudget, UnhealthyPods};

use crate::error::{IntakeError, Keep, first_of, object_name};
use crate::others::requirements;
use crate::pod::{key_of, uid_of};

/// Converts a PodDisruptionBudget. Fails only for amounts that an API server would refuse.
pub fn budget(from: &policy::PodDisruptionBudget) -> Result<PodDisruptionBudget, IntakeError> {
    let meta = &from.metadata;
    convert_budget(from).map_err(|problems| {
        let namespace = meta.namespace.as_deref().or(Some("default"));
        first_of(problems, object_name("PodDisruptionBudget", namespace, meta.name.as_deref()))
    })
}

/// Converts a PodDisruptionBudget, or returns all problems.
pub(crate) fn convert_budget(
    from: &policy::PodDisruptionBudget,
) -> Result<PodDisruptionBudget, Vec<FieldProblem>> {
    let nothing = policy::PodDisruptionBudgetSpec::default();
    let spec = from.spec.as_ref().unwrap_or(&nothing);
    let selector = match &spec.selector {
        None => BudgetSelector::Nothing,
        Some(selector) => match requirements(selector) {
            Some(all) => BudgetSelector::Pods(all),
            None => BudgetSelector::Invalid("spec.selector.matchExpressions".to_owned()),
        },
    };
    let mut problems = Vec::new();
    let mut limit = |field: &str, amount: Option<&IntOrString>| {
        amount.and_then(|amount| count_or_percent(&format!("spec.{field}"), amount).keep(&mut problems))
    };
    let least = limit("minAvailable", spec.min_available.as_ref());
    let most = limit("maxUnavailable", spec.max_unavailable.as_ref());
    if spec.min_available.is_some() && spec.max_unavailable.is_some() {
        let cause = "a budget has minAvailable or maxUnavailable, not both";
        problems.push(FieldProblem::new("spec", cause, "remove one of them"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    // A status of an older spec does not count.
    let status = from.status.as_ref().filter(|status| status.observed_generation == from.metadata.generation);
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let failed = |one: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        one.type_ == "DisruptionAllowed" && one.status == "False" && one.reason == "SyncFailed"
    };
    let expected = status.and_then(|status| status.expected_pods);
    Ok(PodDisruptionBudget {
        key: key_of(&from.metadata),
        uid: uid_of(&from.metadata),
        selector,
        limit: least.map(BudgetLimit::MinAvailable).or(most.map(BudgetLimit::MaxUnavailable)),
        expected: expected.and_then(|pods| u64::try_from(pods).ok()).unwrap_or(0),
        allowed: status.and_then(|status| u64::try_from(status.disruptions_allowed?).ok()),
        failure: conditions.iter().find(failed).map(|one| one.message.clone()),
        unhealthy: unhealthy_pods(spec, from.status.as_ref()),
    })
}

/// Returns what a budget says about pods that are not ready. Here the API server takes the status of an older spec too.
fn unhealthy_pods(
    spec: &policy::PodDisruptionBudgetSpec,
    status: Option<&policy::PodDisruptionBudgetStatus>,
) -> UnhealthyPods {
    let count = |count: Option<i32>| count.and_then(|pods| u64::try_from(pods).ok()).unwrap_or(0);
    let policy = spec.unhealthy_pod_eviction_policy.as_deref();
    // Kubernetes asks clients not to count on the eviction of such pods if they do not know the policy.
    if policy.is_some_and(|policy| !matches!(policy, "AlwaysAllow" | "IfHealthyBudget")) {
        return UnhealthyPods::default();
    }
    UnhealthyPods {
        always_allowed: policy == Some("AlwaysAllow"),
        healthy: count(status.and_then(|status| status.current_healthy)),
        desired: count(status.and_then(|status| status.desired_healthy)),
    }
}

fn count_or_percent(path: &str, amount: &IntOrString) -> Result<CountOrPercent, FieldProblem> {
    let (read, said) = match amount {
        IntOrString::Int(count) => (u64::try_from(*count).ok().map(CountOrPercent::Count), count.to_string()),
        IntOrString::String(text) => (
            text.strip_suffix('%').and_then(|number| number.parse().ok()).map(CountOrPercent::Percent),
            text.clone(),
        ),
    };
    read.ok_or_else(|| {
        let cause = format!("`{said}` is neither a number of pods nor a percentage");
        FieldProblem::new(path, cause, "write a number such as 1, or a percentage such as `50%`")
    })
}
