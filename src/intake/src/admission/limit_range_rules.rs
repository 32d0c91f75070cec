//! What an API server refuses of the entries of a new LimitRange (`ValidateLimitRange` in Kubernetes), besides amounts that
//! contradict each other.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::{FieldProblem, key_segment, meant};
use poolwright_catalog::quantity;

type Amounts = BTreeMap<String, Quantity>;

/// The types of Kubernetes itself. Others have a domain.
const TYPES: [&str; 3] = ["Container", "Pod", "PersistentVolumeClaim"];

/// Returns all problems of the entries.
pub(super) fn problems(range: &k8s::LimitRange) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    let mut types = BTreeSet::new();
    for (at, item) in range.spec.iter().flat_map(|spec| &spec.limits).enumerate() {
        let path = format!("spec.limits[{at}]");
        problems.extend(type_of(&path, &item.type_));
        if !item.type_.is_empty() && !types.insert(&item.type_) {
            let cause = format!("another entry has the type {}", item.type_);
            problems.push(FieldProblem::new(format!("{path}.type"), cause, "write one entry for each type"));
        }
        let is_written = |of: &Option<Amounts>| of.as_ref().is_some_and(|amounts| !amounts.is_empty());
        for (field, amounts) in [("default", &item.default), ("defaultRequest", &item.default_request)] {
            if item.type_ == "Pod" && is_written(amounts) {
                let cause = "an API server refuses it for the type Pod";
                let next = "write it into an entry of the type Container";
                problems.push(FieldProblem::new(format!("{path}.{field}"), cause, next));
            }
        }
        let bounds_storage =
            [&item.min, &item.max].into_iter().flatten().any(|all| all.contains_key("storage"));
        if item.type_ == "PersistentVolumeClaim" && !bounds_storage {
            let cause = "neither min nor max has storage, which an API server refuses";
            problems.push(FieldProblem::new(path.clone(), cause, "add either"));
        }
        problems.extend(ratios(&path, item));
    }
    problems
}

fn type_of(path: &str, written: &str) -> Option<FieldProblem> {
    if TYPES.contains(&written) || written.contains('/') {
        return None;
    }
    let cause = if written.is_empty() {
        "missing".to_owned()
    } else {
        format!("`{written}` is not a type of a LimitRange")
    };
    let next = match meant(written, TYPES).filter(|_| !written.is_empty()) {
        Some(known) => format!("did you mean `{known}`?"),
        None => format!("use one of {}", TYPES.join(", ")),
    };
    Some(FieldProblem::new(format!("{path}.type"), cause, next))
}

/// Returns the ratios that no pod can keep: below 1, or above what `min` and `max` allow.
fn ratios(path: &str, item: &k8s::LimitRangeItem) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    for (name, written) in item.max_limit_request_ratio.iter().flatten() {
        let Ok(most) = quantity::parse(&written.0) else { continue };
        let most = most.milli_ceil();
        let of = |bound: &Option<Amounts>| {
            let text = bound.as_ref()?.get(name)?;
            quantity::parse(&text.0).ok().map(quantity::Quantity::milli_ceil)
        };
        let is_above =
            |(least, largest): (i128, i128)| most.saturating_mul(least) > largest.saturating_mul(1000);
        let (cause, next) = if most < 1000 {
            (format!("`{}` is less than 1", written.0), "raise it")
        } else if of(&item.min).zip(of(&item.max)).is_some_and(is_above) {
            (format!("`{}` is more than `max` divided by `min`", written.0), "lower it")
        } else {
            continue;
        };
        let at = format!("{path}.maxLimitRequestRatio{}", key_segment(name));
        problems.push(FieldProblem::new(at, cause, next));
    }
    problems
}
