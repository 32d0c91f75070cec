//! Requirements of a pool, and expressions of a term of node affinity, that no node meets together.

use std::collections::BTreeMap;

use poolwright_api::{Operator, Requirement};
use poolwright_core as planner;
use poolwright_provider_contract::karpenter::Report;
use serde_json::Value;

use super::requirements::Made;

/// Reports each requirement that contradicts requirements before it.
pub(super) fn report(all: &[Made], report: &mut Report) {
    for (at, made) in all.iter().enumerate() {
        let key = &made.requirement.key;
        let mut others: Vec<&Made> = all[..at].iter().filter(|one| one.requirement.key == *key).collect();
        // A contradiction among those before has a problem already.
        if contradict(&others) || !contradict(&[&others[..], &[made]].concat()) {
            continue;
        }
        // One of them is enough to name, if both contradict each other.
        if let Some(one) = others.iter().find(|one| contradict(&[**one, made])) {
            others = vec![*one];
        }
        let of_catalogue = made.of_catalogue || others.iter().any(|one| one.of_catalogue);
        let (what, next) = if of_catalogue {
            (
                "nothing in the built-in catalogue meets it together with",
                "correct one of them, or name instance types with node.kubernetes.io/instance-type",
            )
        } else {
            ("no node meets it together with", "correct one of them")
        };
        let others: Vec<&str> = others.iter().map(|one| one.path.as_str()).collect();
        report.problem(&made.path, format!("{what} {}", others.join(" and ")), next);
    }
}

/// Returns whether no value of their label meets all of these requirements.
fn contradict(all: &[&Made]) -> bool {
    let all: Option<Vec<planner::Requirement>> = all.iter().map(|one| of_planner(&one.requirement)).collect();
    all.is_some_and(|all| planner::rules::contradiction(&all).is_some())
}

/// Returns the label on which a term of node affinity has expressions that no node meets together.
pub(super) fn in_term(term: &Value) -> Option<String> {
    let mut by_key: BTreeMap<String, Vec<planner::Requirement>> = BTreeMap::new();
    for expression in term["matchExpressions"].as_array().into_iter().flatten() {
        // What cannot be read is not judged.
        let read = serde_json::from_value::<Requirement>(expression.clone()).ok();
        if let Some(one) = read.and_then(|one| of_planner(&one)) {
            by_key.entry(one.key.clone()).or_default().push(one);
        }
    }
    by_key.into_iter().find(|(_, all)| planner::rules::contradiction(all).is_some()).map(|(key, _)| key)
}

/// Returns the requirement as the planner has it; `None` if its values are wrong, which is a problem of its own.
fn of_planner(one: &Requirement) -> Option<planner::Requirement> {
    let values = || one.values.iter().cloned().collect();
    let bound = || one.values.first().and_then(|text| text.parse().ok());
    let operator = match one.operator {
        Operator::In => planner::Operator::In(values()),
        Operator::NotIn => planner::Operator::NotIn(values()),
        Operator::Exists => planner::Operator::Exists,
        Operator::DoesNotExist => planner::Operator::DoesNotExist,
        Operator::Gt => planner::Operator::Gt(bound()?),
        Operator::Gte => planner::Operator::Gte(bound()?),
        Operator::Lt => planner::Operator::Lt(bound()?),
        Operator::Lte => planner::Operator::Lte(bound()?),
    };
    Some(planner::Requirement { key: one.key.clone(), operator })
}
