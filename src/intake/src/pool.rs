//! NodePools.

use std::collections::BTreeMap;

use poolwright_api::{self as api, Amount, Expiry};
use poolwright_catalog::{ResourceName, UsdPerHour};
use poolwright_core::{Deadlines, Pool, PoolLimits, PoolName, PoolProblem, Requirement, quantity};

use crate::convert::{core_deadlines, core_taints, duration_problem, key_segment, node_class_ref};
use crate::error::Problem;
use crate::pod::uid_of;
use crate::rules::operator;

/// The key of the limit on nodes.
const NODES: &str = "nodes";
/// The key of the limit on money.
const USD_PER_HOUR: &str = "usdPerHour";

/// A NodePool as decisions see it. Never fails: what is wrong with it is in [`Pool::problem`], so that it shows as a
/// condition of the pool and the pool buys nothing.
pub fn node_pool(from: &api::NodePool) -> Pool {
    let (mut pool, problems) = convert(from);
    pool.problem = all(&problems);
    pool
}

/// A pool and what is wrong with it, each with a stable reason.
pub(crate) fn convert(from: &api::NodePool) -> (Pool, Vec<(&'static str, Problem)>) {
    let (meta, spec, template) = (&from.metadata, &from.spec, &from.spec.template);
    let mut problems = Vec::new();
    let limits = limits(&spec.limits).unwrap_or_else(|problem| {
        problems.push(("InvalidQuantity", problem));
        PoolLimits::default()
    });
    let requirements = requirements(&template.spec.requirements).unwrap_or_else(|problem| {
        problems.push(("InvalidRequirement", problem));
        Vec::new()
    });
    let deadlines =
        core_deadlines("spec.template.spec.deadlines", &template.spec.deadlines).unwrap_or_else(|problem| {
            problems.push(("InvalidDuration", problem));
            Deadlines::default()
        });
    let scale_to_zero_after = match spec.scale_to_zero.after.parse() {
        Ok(Expiry::After(idle)) => Some(idle),
        Ok(Expiry::Never) => None,
        Err(error) => {
            problems.push(("InvalidDuration", duration_problem("spec.scaleToZero.after", &error)));
            None
        }
    };
    let pool = Pool {
        name: PoolName(meta.name.clone().unwrap_or_default()),
        uid: uid_of(meta),
        labels: template.metadata.labels.clone(),
        annotations: template.metadata.annotations.clone(),
        taints: core_taints(&template.spec.taints),
        startup_taints: core_taints(&template.spec.startup_taints),
        requirements,
        node_class: node_class_ref(&template.spec.node_class_ref),
        weight: u32::try_from(spec.weight).unwrap_or(0),
        limits,
        allow_unknown_price: spec.allow_unknown_prices.iter().map(|name| name.as_str().into()).collect(),
        scale_to_zero_after,
        deadlines,
        deleting: meta.deletion_timestamp.is_some(),
        problem: None,
    };
    (pool, problems)
}

/// All problems as one, under the reason of the first.
fn all(problems: &[(&'static str, Problem)]) -> Option<PoolProblem> {
    let (reason, _) = problems.first()?;
    let sentence = |(_, problem): &(_, Problem)| {
        let separator = if problem.next_step.is_empty() { "" } else { "; " };
        format!("{}: {}{separator}{}", problem.path, problem.cause, problem.next_step)
    };
    let message = problems.iter().map(sentence).collect::<Vec<_>>().join(". ");
    Some(PoolProblem { reason: (*reason).to_owned(), message })
}

fn limits(from: &BTreeMap<String, Amount>) -> Result<PoolLimits, Problem> {
    let mut limits = PoolLimits::default();
    for (name, amount) in from {
        let path = || format!("spec.limits{}", key_segment(name));
        let text = amount.0.as_str();
        if name == USD_PER_HOUR {
            let money = text.parse::<UsdPerHour>().map_err(|error| {
                Problem::new(
                    path(),
                    error.to_string(),
                    "write a plain decimal number in quotes, such as \"40\"",
                )
            })?;
            limits.usd_per_hour = Some(money);
        } else if name == NODES {
            let nodes = text.parse::<u64>().map_err(|_| {
                Problem::new(path(), format!("`{text}` is not a number of nodes"), "write a whole number")
            })?;
            limits.nodes = Some(nodes);
        } else {
            let amount = quantity::amount(name, text).map_err(|error| Problem::quantity(path(), &error))?;
            limits.resources.insert(ResourceName::new(name.as_str()), amount);
        }
    }
    Ok(limits)
}

fn requirements(from: &[api::Requirement]) -> Result<Vec<Requirement>, Problem> {
    let convert = |(at, requirement): (usize, &api::Requirement)| {
        let (name, next_step) = match requirement.operator {
            api::Operator::In => ("In", "give it one value or more"),
            api::Operator::NotIn => ("NotIn", "give it one value or more"),
            api::Operator::Exists => ("Exists", ""),
            api::Operator::DoesNotExist => ("DoesNotExist", ""),
            api::Operator::Gt => ("Gt", "give it exactly one whole number"),
            api::Operator::Lt => ("Lt", "give it exactly one whole number"),
            api::Operator::Gte => ("Gte", "give it exactly one whole number"),
            api::Operator::Lte => ("Lte", "give it exactly one whole number"),
        };
        let operator = operator(name, requirement.values.clone()).ok_or_else(|| {
            Problem::new(
                format!("spec.template.spec.requirements[{at}]"),
                format!("{} {name} {:?} makes no sense", requirement.key, requirement.values),
                next_step,
            )
        })?;
        Ok(Requirement { key: requirement.key.clone(), operator })
    };
    from.iter().enumerate().map(convert).collect()
}
