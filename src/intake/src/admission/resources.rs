//! The rules of an API server about the resources of containers (`ValidateResourceRequirements` in Kubernetes).

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::{FieldProblem, key_segment};
use poolwright_catalog::quantity;

use crate::error::quantity_problem;
use crate::quota::written as written_amount;
use crate::requests::of_containers;

const HUGE_PAGES: &str = "hugepages-";

/// What LimitRanges have written into the containers of a pod.
#[derive(Default)]
pub(super) struct Defaults {
    pub limits: Origins,
    pub requests: Origins,
}

/// Amounts with the LimitRanges that they come from, in words for messages: by the place of the container, such as
/// `containers[0]`, and then by resource.
pub(super) type Origins = BTreeMap<String, BTreeMap<String, String>>;

impl Defaults {
    fn limit(&self, place: &str, name: &str) -> Option<&str> {
        self.limits.get(place)?.get(name).map(String::as_str)
    }

    fn request(&self, place: &str, name: &str) -> Option<&str> {
        self.requests.get(place)?.get(name).map(String::as_str)
    }
}

/// Checks the containers of a new pod, and the resources of the whole pod. `path` is the path of its spec,
/// and `defaults` says which amounts its author has not written. Returns all problems.
pub(super) fn check(path: &str, spec: &PodSpec, defaults: &Defaults) -> Vec<FieldProblem> {
    let lists = [("containers", Some(&spec.containers)), ("initContainers", spec.init_containers.as_ref())];
    let mut problems = Vec::new();
    for (list, containers) in lists {
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let place = format!("{list}[{at}]");
            let stated = container.resources.as_ref();
            problems.extend(of_container(
                &format!("{path}.{place}.resources"),
                stated,
                |name| defaults.limit(&place, name),
                |name| defaults.request(&place, name),
            ));
        }
    }
    problems.extend(of_pod(path, spec, defaults));
    problems
}

/// Checks the resources of the whole pod: only CPU, memory and huge pages; at least what the containers request together, and no
/// limit below that of a container.
fn of_pod(path: &str, spec: &PodSpec, defaults: &Defaults) -> Vec<FieldProblem> {
    let Some(whole) = &spec.resources else { return Vec::new() };
    let at = format!("{path}.resources");
    let mut problems = of_container(&at, Some(whole), |_| None, |_| None);
    let written = |field: &str, amounts: Option<&BTreeMap<String, Quantity>>| {
        let names = amounts.into_iter().flatten().map(|(name, _)| name.clone());
        names.map(|name| (field.to_owned(), name)).collect::<Vec<_>>()
    };
    let all =
        [written("requests", whole.requests.as_ref()), written("limits", whole.limits.as_ref())].concat();
    for (field, name) in all {
        if !["cpu", "memory"].contains(&name.as_str()) && !name.starts_with(HUGE_PAGES) {
            problems.push(FieldProblem::new(
                format!("{at}.{field}{}", key_segment(&name)),
                format!("a pod cannot state {name} for all its containers together"),
                "write it in the container that uses it",
            ));
        }
    }
    if !problems.is_empty() {
        return problems;
    }
    let amount = |amounts: Option<&BTreeMap<String, Quantity>>, name: &str| {
        let text = amounts.and_then(|amounts| amounts.get(name))?;
        quantity::parse(&text.0).ok().map(quantity::Quantity::milli_ceil)
    };
    // Amounts of containers that cannot be read are named with their containers.
    let together = of_containers(path, spec).unwrap_or_default();
    for (name, text) in whole.requests.iter().flatten() {
        let Ok(stated) = quantity::amount(name, &text.0) else { continue };
        let sum = together.get(name);
        if sum > stated {
            let origins = defaults.requests.values().filter_map(|of| of.get(name));
            let origins: Vec<&str> =
                origins.map(String::as_str).collect::<BTreeSet<_>>().into_iter().collect();
            let (with, next) = if origins.is_empty() {
                (String::new(), "raise it, or lower the requests of the containers")
            } else {
                let with = format!(" with the default of {}", origins.join(" and of "));
                (with, "raise it, or write the requests of the containers")
            };
            problems.push(FieldProblem::new(
                format!("{at}.requests{}", key_segment(name)),
                format!(
                    "it must be at least the sum of the containers' requests, which is {}{with}",
                    written_amount(name, sum)
                ),
                next,
            ));
        }
    }
    for name in whole.limits.iter().flatten().map(|(name, _)| name) {
        let most = amount(whole.limits.as_ref(), name);
        for (index, container) in spec.containers.iter().enumerate() {
            let limits = container.resources.as_ref().and_then(|stated| stated.limits.as_ref());
            if amount(limits, name) > most {
                let place = format!("containers[{index}]");
                let (what, lower) = match defaults.limit(&place, name) {
                    Some(default) => (format!("the default limit of {default}"), "write a lower one"),
                    None => ("it".to_owned(), "lower it"),
                };
                problems.push(FieldProblem::new(
                    format!("{path}.{place}.resources.limits{}", key_segment(name)),
                    format!("{what} is larger than the limit of the whole pod"),
                    format!("{lower}, or raise {at}.limits{}", key_segment(name)),
                ));
            }
        }
    }
    problems
}

/// Checks the resources of a container. The closures return the LimitRange that has written a limit or a request, in words.
fn of_container<'a>(
    path: &str,
    stated: Option<&ResourceRequirements>,
    default_limit: impl Fn(&str) -> Option<&'a str>,
    default_request: impl Fn(&str) -> Option<&'a str>,
) -> Vec<FieldProblem> {
    let Some(stated) = stated else { return Vec::new() };
    let nothing = BTreeMap::new();
    let limits = stated.limits.as_ref().unwrap_or(&nothing);
    let requests = stated.requests.as_ref().unwrap_or(&nothing);
    let mut problems = Vec::new();
    let limit = amounts(&format!("{path}.limits"), limits, &mut problems);
    let request = amounts(&format!("{path}.requests"), requests, &mut problems);
    for (name, asked) in &request {
        let at = format!("{path}.requests{}", key_segment(name));
        let default = default_limit(name);
        // The author of a pod does not know an amount that a LimitRange has written.
        let of = |what: &str, default: Option<&str>, usual: &str| match default {
            Some(default) => format!("the default {what} of {default}"),
            None => usual.to_owned(),
        };
        let the_limit = || of("limit", default, "the limit");
        let the_request = || of("request", default_request(name), "it");
        match limit.get(name) {
            None if is_whole_only(name) && !limits.contains_key(*name) => problems.push(FieldProblem::new(
                format!("{path}.limits"),
                format!(
                    "{name} has {} and no limit, and cannot be shared",
                    of("request", default_request(name), "a request")
                ),
                format!("write the same amount under limits{}", key_segment(name)),
            )),
            Some(most) if is_whole_only(name) && most != asked => problems.push(FieldProblem::new(
                at,
                format!("{} differs from {}, and {name} cannot be shared", the_request(), the_limit()),
                "write the same amount in both",
            )),
            Some(most) if asked > most => problems.push(FieldProblem::new(
                at,
                format!("{} is larger than {}", the_request(), the_limit()),
                if default.is_some() {
                    "state a limit, or ask for less"
                } else {
                    "raise the limit or lower the request"
                },
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
            Ok(amount) if !is_in_pages(name, amount) => {
                let size = name.strip_prefix(HUGE_PAGES).unwrap_or_default();
                let cause = format!("`{text}` is not a multiple of the page size `{size}`");
                problems.push(FieldProblem::new(at, cause, "write whole pages of an existing size"));
            }
            Ok(amount) => {
                known.insert(name.as_str(), amount.milli_ceil());
            }
        }
    }
    known
}

/// Returns whether an amount of huge pages is one of whole pages. Other resources have no pages.
fn is_in_pages(name: &str, amount: quantity::Quantity) -> bool {
    let Some(size) = name.strip_prefix(HUGE_PAGES) else { return true };
    let size = quantity::parse(size).map_or(0, quantity::Quantity::milli_ceil);
    size > 0 && size % 1000 == 0 && amount.milli_ceil() % size == 0
}

/// Returns whether containers cannot share the resource: huge pages and extended resources, such as GPUs.
pub(super) fn is_whole_only(name: &str) -> bool {
    let of_kubernetes = name.split_once('/').is_none_or(|(domain, _)| domain.ends_with("kubernetes.io"));
    name.starts_with(HUGE_PAGES) || !of_kubernetes
}
