//! The rules of an API server about the resources of containers (`ValidateResourceRequirements` in Kubernetes).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::{FieldProblem, key_segment};
use poolwright_catalog::quantity;

use crate::error::quantity_problem;

const HUGE_PAGES: &str = "hugepages-";

/// Checks the containers of a new pod. `path` is the path of its spec. Returns all problems.
pub(super) fn check(path: &str, spec: &PodSpec) -> Result<(), Vec<FieldProblem>> {
    let lists = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    let mut problems = Vec::new();
    for (list, containers) in lists {
        for (at, container) in containers.into_iter().flatten().enumerate() {
            problems.extend(of_container(&format!("{path}.{list}[{at}].resources"), container));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn of_container(path: &str, container: &Container) -> Vec<FieldProblem> {
    let Some(stated) = &container.resources else { return Vec::new() };
    let nothing = BTreeMap::new();
    let limits = stated.limits.as_ref().unwrap_or(&nothing);
    let requests = stated.requests.as_ref().unwrap_or(&nothing);
    let mut problems = Vec::new();
    let limit = amounts(&format!("{path}.limits"), limits, &mut problems);
    let request = amounts(&format!("{path}.requests"), requests, &mut problems);
    for (name, asked) in &request {
        let at = format!("{path}.requests{}", key_segment(name));
        match limit.get(name) {
            None if is_whole_only(name) && !limits.contains_key(*name) => problems.push(FieldProblem::new(
                format!("{path}.limits"),
                format!("{name} has a request and no limit, and cannot be shared"),
                format!("write the same amount under limits{}", key_segment(name)),
            )),
            Some(most) if is_whole_only(name) && most != asked => problems.push(FieldProblem::new(
                at,
                format!("it differs from the limit, and {name} cannot be shared"),
                "write the same amount in both",
            )),
            Some(most) if asked > most => problems.push(FieldProblem::new(
                at,
                "it is larger than the limit",
                "raise the limit or lower the request",
            )),
            _ => {}
        }
    }
    let has = |name: &str| limits.contains_key(name) || requests.contains_key(name);
    if limits.keys().chain(requests.keys()).any(|name| name.starts_with(HUGE_PAGES))
        && !has("cpu")
        && !has("memory")
    {
        problems.push(FieldProblem::new(path, "huge pages need CPU or memory beside them", "request either"));
    }
    problems
}

/// Returns the amounts in thousandths. Amounts that an API server refuses go to `problems`.
fn amounts<'a>(
    path: &str,
    stated: &'a BTreeMap<String, Quantity>,
    problems: &mut Vec<FieldProblem>,
) -> BTreeMap<&'a str, i128> {
    let mut known = BTreeMap::new();
    for (name, Quantity(text)) in stated {
        let at = format!("{path}{}", key_segment(name));
        match quantity::parse(text) {
            Err(error) => problems.push(quantity_problem(at, &error)),
            Ok(amount) if amount.is_negative() => {
                problems.push(FieldProblem::new(at, format!("`{text}` is negative"), "write zero or more"));
            }
            Ok(amount) if is_whole_only(name) && amount.milli_ceil() % 1000 != 0 => {
                let cause = format!("`{text}` is not a whole number, and {name} comes in whole units");
                problems.push(FieldProblem::new(at, cause, "write a whole number"));
            }
            Ok(amount) => {
                known.insert(name.as_str(), amount.milli_ceil());
            }
        }
    }
    known
}

/// Returns whether containers cannot share the resource: huge pages and extended resources, such as GPUs.
fn is_whole_only(name: &str) -> bool {
    let of_kubernetes = name.split_once('/').is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"));
    name.starts_with(HUGE_PAGES) || !of_kubernetes
}
