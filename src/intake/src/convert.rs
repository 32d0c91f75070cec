//! Converts small values in both directions: amounts, taints, deadlines.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use poolwright_api as api;
use poolwright_api::FieldProblem;
use poolwright_api::key_segment;
use poolwright_catalog::{ResourceList, quantity};
use poolwright_core as core;
use poolwright_terms::Taint;

use crate::error::{Keep, quantity_problem};

/// Converts Kubernetes quantities to a resource list.
pub(crate) fn resources(
    path: &str,
    from: Option<&BTreeMap<String, Quantity>>,
) -> Result<ResourceList, FieldProblem> {
    let (list, problems) = readable(path, from);
    problems.into_iter().next().map_or(Ok(list), Err)
}

/// Converts the Kubernetes quantities that can be read. Also returns a problem for each of the others.
pub(crate) fn readable(
    path: &str,
    from: Option<&BTreeMap<String, Quantity>>,
) -> (ResourceList, Vec<FieldProblem>) {
    let from = from.into_iter().flatten();
    amounts_at(path, from.map(|(name, quantity)| (name, quantity.0.as_str())))
}

/// Converts amounts of our API to a resource list, or returns all problems.
pub(crate) fn amounts(
    path: &str,
    from: &BTreeMap<String, api::Amount>,
) -> Result<ResourceList, Vec<FieldProblem>> {
    let (list, problems) = amounts_at(path, from.iter().map(|(name, amount)| (name, amount.0.as_str())));
    if problems.is_empty() { Ok(list) } else { Err(problems) }
}

fn amounts_at<'a>(
    path: &str,
    from: impl Iterator<Item = (&'a String, &'a str)>,
) -> (ResourceList, Vec<FieldProblem>) {
    let (mut list, mut problems) = (ResourceList::new(), Vec::new());
    for (name, text) in from {
        match quantity::amount(name, text) {
            Ok(amount) => list.set(name.as_str(), amount),
            Err(error) => problems.push(quantity_problem(format!("{path}{}", key_segment(name)), &error)),
        }
    }
    (list, problems)
}

/// Returns whether an annotation protects a node, claim or pool from disruption. Any value except `false` does.
pub(crate) fn is_kept(meta: &ObjectMeta) -> bool {
    let said =
        meta.annotations.as_ref().and_then(|all| all.get(poolwright_terms::keys::DO_NOT_DISRUPT_ANNOTATION));
    said.is_some_and(|value| value != "false")
}

/// Converts a resource list to amounts of our API.
pub fn allocatable_amounts(list: &ResourceList) -> BTreeMap<String, api::Amount> {
    list.iter().map(|(name, amount)| (name.to_string(), api::Amount(name.quantity(amount)))).collect()
}

/// Converts a taint to that of a node.
pub fn node_taint(taint: &Taint) -> k8s::Taint {
    k8s::Taint {
        key: taint.key.clone(),
        value: Some(taint.value.clone()).filter(|value| !value.is_empty()),
        effect: taint.effect.as_str().to_owned(),
        time_added: None,
    }
}

/// Converts taints to those of a node.
pub fn node_taints(taints: &[Taint]) -> Vec<k8s::Taint> {
    taints.iter().map(node_taint).collect()
}

/// Converts deadlines to core's model, or returns all problems. `path` is that of the deadlines.
pub(crate) fn core_deadlines(
    path: &str,
    from: &api::Deadlines,
) -> Result<core::Deadlines, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut read = |field: &str, text: &api::DurationText| {
        let path = || format!("{path}.{field}");
        let length = text.parse().map_err(|error| FieldProblem::duration(path(), &error));
        let length = length.and_then(|length| {
            let cause = "a deadline of zero is always exceeded";
            let zero = || FieldProblem::new(path(), cause, "write a duration such as `5m`");
            if length.is_zero() { Err(zero()) } else { Ok(length) }
        });
        length.keep(&mut problems)
    };
    let launch = read("launch", &from.launch);
    let registration = read("registration", &from.registration);
    let initialization = read("initialization", &from.initialization);
    let termination = from.termination.as_ref().map(|text| read("termination", text));
    match (launch, registration, initialization) {
        (Some(launch), Some(registration), Some(initialization)) if problems.is_empty() => {
            Ok(core::Deadlines { launch, registration, initialization, termination: termination.flatten() })
        }
        _ => Err(problems),
    }
}

/// Converts deadlines to our API's form.
pub fn deadlines(from: core::Deadlines) -> api::Deadlines {
    api::Deadlines {
        launch: from.launch.into(),
        registration: from.registration.into(),
        initialization: from.initialization.into(),
        termination: from.termination.map(Into::into),
    }
}
