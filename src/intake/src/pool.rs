//! NodePools.

use std::collections::BTreeMap;

use poolwright_api::strict::read;
use poolwright_api::{
    self as api, Amount, ConsolidationPolicy, DisruptionReason, Expiry, FieldProblem, Idle,
    NodeConditionStatus, RetirePolicy, key_segment,
};
use poolwright_catalog::{ResourceName, UsdPerHour, quantity};
use poolwright_core::{
    Buffer, Cause, CountOrPercent, Deadlines, Disruption, DisruptionBudget, Pool, PoolLimits, PoolName,
    PoolProblem, RepairRule, Requirement, ScaleToZero, Schedule, Window,
};
use poolwright_terms::Reason;

use crate::convert::{amounts, core_deadlines, is_kept};
use crate::error::quantity_problem;
use crate::manifest::documents;
use crate::pod::uid_of;
use crate::rules::operator;

/// The key of the limit on nodes.
const NODES: &str = "nodes";
/// The key of the limit on money.
const USD_PER_HOUR: &str = "usdPerHour";

/// Converts a NodePool. Never fails: a problem goes into [`Pool::problem`]. It then shows as a
/// condition of the pool, and the pool buys nothing.
pub fn node_pool(from: &api::NodePool) -> Pool {
    let (mut pool, problems) = convert(from);
    pool.problem = all(&problems);
    pool
}

/// A pool and its problems, each with a stable reason.
pub(crate) fn convert(from: &api::NodePool) -> (Pool, Vec<(Reason, FieldProblem)>) {
    let (meta, spec, template) = (&from.metadata, &from.spec, &from.spec.template);
    let mut problems = Vec::new();
    let limits = limits(&spec.limits).unwrap_or_else(|problem| {
        problems.push((Reason::InvalidQuantity, problem));
        PoolLimits::default()
    });
    let requirements = requirements(&template.spec.requirements).unwrap_or_else(|problem| {
        problems.push((Reason::InvalidRequirement, problem));
        Vec::new()
    });
    let deadlines =
        core_deadlines("spec.template.spec.deadlines", &template.spec.deadlines).unwrap_or_else(|problem| {
            problems.push((Reason::InvalidDuration, problem));
            Deadlines::default()
        });
    let scale_to_zero = match spec.scale_to_zero.after.parse() {
        Ok(Idle::After(time)) => ScaleToZero::After(time),
        Ok(Idle::Never) => ScaleToZero::Never,
        Ok(Idle::Auto) => ScaleToZero::Auto,
        Err(error) => {
            let cause = format!("`{}` is not a duration, `Never` or `auto`", error.text);
            let problem = FieldProblem::new(
                "spec.scaleToZero.after",
                cause,
                "write such as `90s`, `5m` or `1h30m`, or one of these words",
            );
            problems.push((Reason::InvalidDuration, problem));
            ScaleToZero::Never
        }
    };
    let disruption = disruption(from).unwrap_or_else(|problem| {
        problems.push((Reason::InvalidDuration, problem));
        // The intent of an invalid policy is unknown, so the node is kept.
        Disruption { do_not_disrupt: true, ..Disruption::default() }
    });
    let buffer = buffer(&spec.buffer).unwrap_or_else(|problem| {
        problems.push((Reason::InvalidBuffer, problem));
        Vec::new()
    });
    if spec.replicas.is_some_and(|replicas| replicas < 0) {
        let cause = "it is negative";
        problems
            .push((Reason::InvalidReplicas, FieldProblem::new("spec.replicas", cause, "write 0 or more")));
    }
    let pool = Pool {
        name: PoolName(meta.name.clone().unwrap_or_default()),
        uid: uid_of(meta),
        labels: template.metadata.labels.clone(),
        annotations: template.metadata.annotations.clone(),
        taints: template.spec.taints.clone(),
        startup_taints: template.spec.startup_taints.clone(),
        readiness_gates: template
            .spec
            .readiness_gates
            .iter()
            .map(|gate| gate.condition_type.clone())
            .collect(),
        requirements,
        min_values: min_values(&template.spec.requirements),
        node_class: template.spec.node_class_ref.clone(),
        weight: u32::try_from(spec.weight).unwrap_or(0),
        limits,
        allow_unknown_price: spec.allow_unknown_prices.iter().map(|name| name.as_str().into()).collect(),
        scale_to_zero,
        replicas: spec.replicas.map(|replicas| u64::try_from(replicas).unwrap_or(0)),
        buffer,
        disruption,
        deadlines,
        deleting: meta.deletion_timestamp.is_some(),
        problem: None,
    };
    (pool, problems)
}

fn disruption(from: &api::NodePool) -> Result<Disruption, FieldProblem> {
    let said = &from.spec.disruption;
    let expiry = |path: &str, text: &api::ExpiryText| match text.parse() {
        Ok(Expiry::After(length)) => Ok(Some(length)),
        Ok(Expiry::Never) => Ok(None),
        Err(error) => Err(FieldProblem::duration(path, &error)),
    };
    let payback = said.payback_within.parse();
    Ok(Disruption {
        consolidates: said.consolidation_policy == ConsolidationPolicy::WhenEmptyOrUnderutilized,
        consolidate_after: expiry("spec.disruption.consolidateAfter", &said.consolidate_after)?,
        payback: payback.map_err(|error| FieldProblem::duration("spec.disruption.paybackWithin", &error))?,
        retires: said.retire == RetirePolicy::WhenCheaper,
        budgets: said
            .budgets
            .iter()
            .enumerate()
            .map(|(at, budget)| node_budget(&format!("spec.disruption.budgets[{at}]"), budget))
            .collect(),
        expire_after: expiry("spec.template.spec.expireAfter", &from.spec.template.spec.expire_after)?,
        do_not_disrupt: is_kept(&from.metadata),
        repair: repair_rules(&said.repair)?,
    })
}

fn repair_rules(from: &[api::RepairRule]) -> Result<Vec<RepairRule>, FieldProblem> {
    let rule = |(at, rule): (usize, &api::RepairRule)| {
        let after = rule.after.parse();
        let after = after
            .map_err(|error| FieldProblem::duration(format!("spec.disruption.repair[{at}].after"), &error))?;
        let status = match rule.status {
            NodeConditionStatus::True => "True",
            NodeConditionStatus::False => "False",
            NodeConditionStatus::Unknown => "Unknown",
        };
        Ok(RepairRule { condition: rule.condition.clone(), status: status.to_owned(), after })
    };
    from.iter().enumerate().map(rule).collect()
}

/// Reads a disruption budget of a pool from YAML: `{nodes: 10%, reasons: [Drifted]}`.
///
/// # Errors
/// A sentence about the problem.
pub fn disruption_budget(text: &str) -> Result<DisruptionBudget, String> {
    let sentence = |problem: &FieldProblem| {
        let at = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("{at}{}; {}", problem.cause, problem.next_step)
    };
    let documents = documents(text).map_err(|problem| sentence(&problem))?;
    let [document] = documents.as_slice() else { return Err("write exactly one budget".to_owned()) };
    if !document.is_object() {
        return Err("not a budget; write a map such as {nodes: 10%}".to_owned());
    }
    let read: api::DisruptionBudget =
        read(document).map_err(|problems| problems.iter().map(sentence).collect::<Vec<_>>().join(". "))?;
    let budget = node_budget("", &read);
    match budget.window {
        Some(Window::Unreadable(why)) => Err(why),
        _ => Ok(budget),
    }
}

/// The path of a field of an object, which has no path if it is the whole document.
fn field(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// An invalid budget allows nothing, because a budget exists to forbid. The pool can still buy.
fn node_budget(path: &str, from: &api::DisruptionBudget) -> DisruptionBudget {
    let percent = from.nodes.strip_suffix('%');
    let number = percent.unwrap_or(&from.nodes).parse::<u64>().ok();
    let nodes = number.map(|number| {
        if percent.is_some() { CountOrPercent::Percent(number) } else { CountOrPercent::Count(number) }
    });
    let cause = |reason: &DisruptionReason| match reason {
        DisruptionReason::Empty => Cause::Empty,
        DisruptionReason::Underutilized => Cause::Underutilized,
        DisruptionReason::Drifted => Cause::Drifted,
        DisruptionReason::Expired => Cause::Expired,
    };
    let window = window(path, from.schedule.as_ref(), from.time_zone.as_ref(), from.duration.as_ref());
    let wrong = || {
        let (nodes, said) = (field(path, "nodes"), &from.nodes);
        Window::Unreadable(format!("{nodes}: `{said}` is neither a number nor a percentage; write 3 or 10%"))
    };
    DisruptionBudget {
        nodes: nodes.unwrap_or(CountOrPercent::Count(0)),
        causes: from.reasons.iter().map(cause).collect(),
        window: if nodes.is_none() { Some(wrong()) } else { window },
    }
}

/// A duration from each time of a schedule; `None` for always.
fn window(
    path: &str,
    schedule: Option<&String>,
    zone: Option<&String>,
    duration: Option<&api::DurationText>,
) -> Option<Window> {
    match (schedule, duration) {
        (None, None) => None,
        (Some(schedule), Some(duration)) => {
            let zone = zone.map_or("UTC", String::as_str);
            let read =
                Schedule::parse(schedule, zone).map_err(|why| format!("{}: {why}", field(path, "schedule")));
            let length = duration.parse().map_err(|error| format!("{}: {error}", field(path, "duration")));
            Some(match read.and_then(|schedule| Ok((schedule, length?))) {
                Ok((schedule, length)) => Window::Scheduled { schedule, length },
                Err(why) => Window::Unreadable(why),
            })
        }
        (schedule, _) => {
            let (has, lacks) =
                if schedule.is_some() { ("schedule", "duration") } else { ("duration", "schedule") };
            Some(Window::Unreadable(format!(
                "{}: it needs `{lacks}` too; add it, or remove `{has}`",
                field(path, has)
            )))
        }
    }
}

fn buffer(from: &[api::BufferUnits]) -> Result<Vec<Buffer>, FieldProblem> {
    let convert = |(at, units): (usize, &api::BufferUnits)| {
        let path = format!("spec.buffer[{at}]");
        let window =
            window(&path, units.schedule.as_ref(), units.time_zone.as_ref(), units.duration.as_ref());
        if let Some(Window::Unreadable(why)) = window {
            let (path, cause) = why.split_once(": ").unwrap_or((&path, &why));
            return Err(FieldProblem::new(path, cause, ""));
        }
        let mut requests = amounts(&format!("{path}.requests"), &units.requests)?;
        requests.set("pods", 1);
        Ok(Buffer { units: u64::try_from(units.units).unwrap_or(0), requests, window })
    };
    from.iter().enumerate().map(convert).collect()
}

/// All problems as one, with the reason of the first.
fn all(problems: &[(Reason, FieldProblem)]) -> Option<PoolProblem> {
    let (reason, _) = problems.first()?;
    let sentence = |(_, problem): &(_, FieldProblem)| {
        let separator = if problem.next_step.is_empty() { "" } else { "; " };
        format!("{}: {}{separator}{}", problem.path, problem.cause, problem.next_step)
    };
    let message = problems.iter().map(sentence).collect::<Vec<_>>().join(". ");
    Some(PoolProblem { reason: *reason, message })
}

fn limits(from: &BTreeMap<String, Amount>) -> Result<PoolLimits, FieldProblem> {
    let mut limits = PoolLimits::default();
    for (name, amount) in from {
        let path = || format!("spec.limits{}", key_segment(name));
        let text = amount.0.as_str();
        if name == USD_PER_HOUR {
            let money = text.parse::<UsdPerHour>().map_err(|error| {
                FieldProblem::new(
                    path(),
                    error.to_string(),
                    "write a plain decimal number in quotes, such as \"40\"",
                )
            })?;
            limits.usd_per_hour = Some(money);
        } else if name == NODES {
            let nodes = text.parse::<u64>().map_err(|_| {
                FieldProblem::new(
                    path(),
                    format!("`{text}` is not a number of nodes"),
                    "write a whole number",
                )
            })?;
            limits.nodes = Some(nodes);
        } else {
            let amount = quantity::amount(name, text).map_err(|error| quantity_problem(path(), &error))?;
            limits.resources.insert(ResourceName::new(name.as_str()), amount);
        }
    }
    Ok(limits)
}

fn requirements(from: &[api::Requirement]) -> Result<Vec<Requirement>, FieldProblem> {
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
            FieldProblem::new(
                format!("spec.template.spec.requirements[{at}]"),
                format!("{} {name} {:?} is not valid", requirement.key, requirement.values),
                next_step,
            )
        })?;
        Ok(Requirement { key: requirement.key.clone(), operator })
    };
    from.iter().enumerate().map(convert).collect()
}

/// The largest `minValues` of each key.
fn min_values(from: &[api::Requirement]) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    for requirement in from {
        if let Some(least) = requirement.min_values.and_then(|least| u32::try_from(least).ok()) {
            let most: &mut u32 = all.entry(requirement.key.clone()).or_default();
            *most = least.max(*most);
        }
    }
    all
}

/// A pool that the API server would accept, by the CEL rules of its CRD too.
pub(crate) fn checked(from: &api::NodePool) -> Result<Pool, Vec<FieldProblem>> {
    let (pool, problems) = convert(from);
    if !problems.is_empty() {
        return Err(problems.into_iter().map(|(_, problem)| problem).collect());
    }
    if let Err(errors) = from.validate_cel() {
        let problem =
            |error: kube::core::cel::ValidationError| FieldProblem::new(error.field_path, error.message, "");
        return Err(errors.into_iter().map(problem).collect());
    }
    // The API server accepts such a budget. In a cluster it allows nothing, and events of the pool give the reason.
    let unreadable = |budget: &DisruptionBudget| match &budget.window {
        Some(Window::Unreadable(why)) => {
            let (path, cause) = why.split_once(": ").unwrap_or(("spec.disruption.budgets", why));
            Some(FieldProblem::new(path, cause, ""))
        }
        _ => None,
    };
    let unreadable: Vec<FieldProblem> = pool.disruption.budgets.iter().filter_map(unreadable).collect();
    if unreadable.is_empty() { Ok(pool) } else { Err(unreadable) }
}
