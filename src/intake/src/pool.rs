//! NodePools.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use poolwright_api::strict::read;
use poolwright_api::{
    self as api, Amount, BudgetAction, ConsolidationPolicy, DisruptionReason, Expiry, FieldProblem, Idle,
    NodeConditionStatus, RetirePolicy, key_segment,
};
use poolwright_catalog::{ResourceName, Usd, UsdPerHour, quantity};
use poolwright_core::{
    Buffer, Cause, CountOrPercent, Deadlines, Disruption, DisruptionBudget, MonthSpend, MonthlyBudget, Pool,
    PoolLimits, PoolName, PoolProblem, RepairRule, Requirement, ScaleToZero, Schedule, SpotRules, Units,
    Window,
};
use poolwright_terms::Reason;

use crate::convert::{amounts, core_deadlines, is_kept};
use crate::error::{Keep, all_or_problems, quantity_problem};
use crate::manifest::documents;
use crate::pod::uid_of;
use crate::rules::operator;

/// The key of the limit on nodes.
const NODES: &str = "nodes";
/// The key of the limit on money.
const USD_PER_HOUR: &str = "usdPerHour";
/// The most units that `units: auto` of a buffer keeps, unless `maxUnits` says so.
const MAX_UNITS: u32 = 4;

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
    let mut problems: Vec<(Reason, FieldProblem)> = Vec::new();
    let mut tell = |reason: Reason, found: Vec<FieldProblem>| {
        problems.extend(found.into_iter().map(|problem| (reason, problem)));
    };
    let limits = limits(&spec.limits).unwrap_or_else(|found| {
        tell(Reason::InvalidQuantity, found);
        PoolLimits::default()
    });
    let monthly_budget = monthly_budget(from).unwrap_or_else(|found| {
        tell(Reason::InvalidQuantity, vec![found]);
        None
    });
    let requirements = requirements(&template.spec.requirements).unwrap_or_else(|found| {
        tell(Reason::InvalidRequirement, found);
        Vec::new()
    });
    let deadlines =
        core_deadlines("spec.template.spec.deadlines", &template.spec.deadlines).unwrap_or_else(|found| {
            tell(Reason::InvalidDuration, found);
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
            tell(Reason::InvalidDuration, vec![problem]);
            ScaleToZero::Never
        }
    };
    let disruption = disruption(from).unwrap_or_else(|found| {
        tell(Reason::InvalidDuration, found);
        // The intent of an invalid policy is unknown, so the node is kept.
        Disruption { do_not_disrupt: true, ..Disruption::default() }
    });
    let buffer = buffer(&spec.buffer).unwrap_or_else(|found| {
        tell(Reason::InvalidBuffer, found);
        Vec::new()
    });
    let spot = spot_rules(&spec.spot).unwrap_or_else(|found| {
        tell(Reason::InvalidSpot, found);
        SpotRules::default()
    });
    if spec.replicas.is_some_and(|replicas| replicas < 0) {
        let problem = FieldProblem::new("spec.replicas", "it is negative", "write 0 or more");
        tell(Reason::InvalidReplicas, vec![problem]);
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
        monthly_budget,
        spot,
        allow_unknown_price: spec.allow_unknown_prices.iter().map(|name| name.as_str().into()).collect(),
        scale_to_zero,
        replicas: spec.replicas.map(|replicas| u64::try_from(replicas).unwrap_or(0)),
        buffer,
        disruption,
        deadlines,
        deleting: meta.deletion_timestamp.is_some(),
        problem: None,
        is_implicit: false,
    };
    (pool, problems)
}

fn disruption(from: &api::NodePool) -> Result<Disruption, Vec<FieldProblem>> {
    let said = &from.spec.disruption;
    let mut problems = Vec::new();
    let mut expiry = |path: &str, text: &api::ExpiryText| match text.parse() {
        Ok(Expiry::After(length)) => Some(length),
        Ok(Expiry::Never) => None,
        Err(error) => {
            problems.push(FieldProblem::duration(path, &error));
            None
        }
    };
    let consolidate_after = expiry("spec.disruption.consolidateAfter", &said.consolidate_after);
    let expire_after = expiry("spec.template.spec.expireAfter", &from.spec.template.spec.expire_after);
    let payback = said.payback_within.parse().unwrap_or_else(|error| {
        problems.push(FieldProblem::duration("spec.disruption.paybackWithin", &error));
        SignedDuration::ZERO
    });
    let repair = repair_rules(&said.repair).unwrap_or_else(|found| {
        problems.extend(found);
        Vec::new()
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(Disruption {
        consolidates: said.consolidation_policy == ConsolidationPolicy::WhenEmptyOrUnderutilized,
        consolidate_after,
        payback,
        retires: said.retire == RetirePolicy::WhenCheaper,
        budgets: budgets(from).map(|(path, budget)| node_budget(&path, budget)).collect(),
        expire_after,
        do_not_disrupt: is_kept(&from.metadata),
        repair,
    })
}

/// Returns the disruption budgets of a pool with their paths.
fn budgets(from: &api::NodePool) -> impl Iterator<Item = (String, &api::DisruptionBudget)> {
    let all = from.spec.disruption.budgets.iter().enumerate();
    all.map(|(at, budget)| (format!("spec.disruption.budgets[{at}]"), budget))
}

fn repair_rules(from: &[api::RepairRule]) -> Result<Vec<RepairRule>, Vec<FieldProblem>> {
    let rule = |(at, rule): (usize, &api::RepairRule)| {
        let after = rule.after.parse();
        let after = after
            .map_err(|error| FieldProblem::duration(format!("spec.disruption.repair[{at}].after"), &error))?;
        let status = match rule.status {
            NodeConditionStatus::True => "True",
            NodeConditionStatus::False => "False",
            NodeConditionStatus::Unknown => "Unknown",
        };
        Ok::<_, FieldProblem>(RepairRule {
            condition: rule.condition.clone(),
            status: status.to_owned(),
            after,
        })
    };
    all_or_problems(from.iter().enumerate().map(rule))
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
    let cause = |reason: &DisruptionReason| match reason {
        DisruptionReason::Empty => Cause::Empty,
        DisruptionReason::Underutilized => Cause::Underutilized,
        DisruptionReason::Drifted => Cause::Drifted,
        DisruptionReason::Expired => Cause::Expired,
    };
    let (nodes, window) = match nodes_of(path, from) {
        Ok(nodes) => (nodes, window_of(path, from)),
        Err(why) => (CountOrPercent::Count(0), Some(Window::Unreadable(why))),
    };
    DisruptionBudget { nodes, causes: from.reasons.iter().map(cause).collect(), window }
}

/// Returns how many nodes a budget allows, or why it cannot be read.
fn nodes_of(path: &str, from: &api::DisruptionBudget) -> Result<CountOrPercent, String> {
    count_or_percent(&from.nodes).ok_or_else(|| {
        let (nodes, said) = (field(path, "nodes"), &from.nodes);
        format!("{nodes}: `{said}` is neither a number nor a percentage; write 3 or 10%")
    })
}

fn count_or_percent(text: &str) -> Option<CountOrPercent> {
    let percent = text.strip_suffix('%');
    let number = percent.unwrap_or(text).parse::<u64>().ok()?;
    Some(if percent.is_some() { CountOrPercent::Percent(number) } else { CountOrPercent::Count(number) })
}

fn spot_rules(from: &api::Spot) -> Result<SpotRules, Vec<FieldProblem>> {
    let mut problems = Vec::new();
    let mut problem = |name: &str, text: &str, what: &str| {
        let cause = format!("`{text}` is not {what}");
        problems.push(FieldProblem::new(format!("spec.spot.{name}"), cause, "write such as 20%"));
    };
    let mut rules = SpotRules::default();
    if let Some(text) = &from.on_demand_floor {
        match on_demand_floor(text) {
            Some(floor) => rules.set_floor(floor),
            None => problem("onDemandFloor", text, "a number or a percentage"),
        }
    }
    if let Some(text) = &from.max_share {
        match max_spot_share(text) {
            Some(most) => rules.set_max_share(most),
            None => problem("maxShare", text, "a percentage from 1% to 100%"),
        }
    }
    if problems.is_empty() { Ok(rules) } else { Err(problems) }
}

/// Reads `spot.onDemandFloor` of a pool: a number such as `3`, or a percentage such as `20%`.
pub fn on_demand_floor(text: &str) -> Option<CountOrPercent> {
    let is_possible = |floor: &CountOrPercent| match floor {
        CountOrPercent::Count(nodes) => *nodes < 1_000_000_000,
        CountOrPercent::Percent(percent) => *percent <= 100,
    };
    count_or_percent(text).filter(is_possible)
}

/// Reads `spot.maxShare` of a pool, in percent.
pub fn max_spot_share(text: &str) -> Option<u32> {
    text.strip_suffix('%')?.parse().ok().filter(|most| (1..=100).contains(most))
}

fn window_of(path: &str, from: &api::DisruptionBudget) -> Option<Window> {
    window(path, from.schedule.as_ref(), from.time_zone.as_ref(), from.duration.as_ref())
}

/// Returns the problems of a budget that the API server would accept. In a cluster such a budget allows nothing, and events of
/// the pool give the reason.
fn unreadable(path: &str, from: &api::DisruptionBudget) -> Vec<FieldProblem> {
    // A rule of the CRD tells of a schedule without a duration.
    let is_whole = from.schedule.is_some() == from.duration.is_some();
    let window = match window_of(path, from).filter(|_| is_whole) {
        Some(Window::Unreadable(why)) => Some(why),
        _ => None,
    };
    let problem = |why: String| {
        let (path, cause) = why.split_once(": ").unwrap_or((path, why.as_str()));
        FieldProblem::new(path, cause, "")
    };
    nodes_of(path, from).err().into_iter().chain(window).map(problem).collect()
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
            Some(match (read, length) {
                (Ok(schedule), Ok(length)) => Window::Scheduled { schedule, length },
                (Err(why), Ok(_)) | (Ok(_), Err(why)) => Window::Unreadable(why),
                (Err(why), Err(also)) => Window::Unreadable(format!("{why}. {also}")),
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

fn buffer(from: &[api::BufferUnits]) -> Result<Vec<Buffer>, Vec<FieldProblem>> {
    let convert = |(at, entry): (usize, &api::BufferUnits)| {
        let path = format!("spec.buffer[{at}]");
        let mut problems = Vec::new();
        let window =
            window(&path, entry.schedule.as_ref(), entry.time_zone.as_ref(), entry.duration.as_ref());
        if let Some(Window::Unreadable(why)) = &window {
            let (path, cause) = why.split_once(": ").unwrap_or((&path, why));
            problems.push(FieldProblem::new(path, cause, ""));
        }
        let units = units(&path, entry).keep(&mut problems);
        let requests = amounts(&format!("{path}.requests"), &entry.requests).keep(&mut problems);
        match (units, requests) {
            (Some(units), Some(mut requests)) if problems.is_empty() => {
                requests.set("pods", 1);
                Ok(Buffer { units, requests, window })
            }
            _ => Err(problems),
        }
    };
    all_or_problems(from.iter().enumerate().map(convert))
}

fn units(path: &str, from: &api::BufferUnits) -> Result<Units, FieldProblem> {
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    match &from.units {
        api::Units::Number(number) => Ok(Units::Fixed(count(*number))),
        api::Units::Word(word) if word == api::Units::AUTO => {
            Ok(Units::Auto { at_most: from.max_units.map_or(MAX_UNITS, count) })
        }
        api::Units::Word(word) => Err(FieldProblem::new(
            field(path, "units"),
            format!("`{word}` is neither a number nor `auto`"),
            "write a number from 1 to 100, or auto",
        )),
    }
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

fn limits(from: &BTreeMap<String, Amount>) -> Result<PoolLimits, Vec<FieldProblem>> {
    let mut limits = PoolLimits::default();
    let read = from.iter().map(|(name, amount)| limit(name, amount.0.as_str(), &mut limits));
    all_or_problems(read)?;
    Ok(limits)
}

/// Returns the monthly budget with what was spent of it, if there is one.
fn monthly_budget(from: &api::NodePool) -> Result<Option<MonthlyBudget>, FieldProblem> {
    let Some(budget) = &from.spec.monthly_budget else { return Ok(None) };
    let usd = Usd::read(&budget.usd.0).ok_or_else(|| {
        let cause = format!("`{}` is not an amount of US dollars", budget.usd);
        FieldProblem::new(
            "spec.monthlyBudget.usd",
            cause,
            "write a decimal number in quotes, such as \"1250.50\"",
        )
    })?;
    let spent = from.status.as_ref().and_then(|status| status.monthly_spend.as_ref());
    let spend = spent.and_then(|spent| {
        Some(MonthSpend {
            from: spent.counted_from.0,
            until: spent.counted_until.0,
            usd: Usd::read(&spent.usd)?,
        })
    });
    let stops_buying = budget.action == BudgetAction::StopBuying;
    Ok(Some(MonthlyBudget { usd, stops_buying, spend }))
}

/// Adds one limit.
fn limit(name: &str, text: &str, into: &mut PoolLimits) -> Result<(), FieldProblem> {
    let path = || format!("spec.limits{}", key_segment(name));
    if name == USD_PER_HOUR {
        let money = text.parse::<UsdPerHour>().map_err(|error| {
            FieldProblem::new(
                path(),
                error.to_string(),
                "write a plain decimal number in quotes, such as \"40\"",
            )
        })?;
        into.usd_per_hour = Some(money);
    } else if name == NODES {
        let nodes = text.parse::<u64>().map_err(|_| {
            FieldProblem::new(path(), format!("`{text}` is not a number of nodes"), "write a whole number")
        })?;
        into.nodes = Some(nodes);
    } else {
        let amount = quantity::amount(name, text).map_err(|error| quantity_problem(path(), &error))?;
        into.resources.insert(ResourceName::new(name), amount);
    }
    Ok(())
}

fn requirements(from: &[api::Requirement]) -> Result<Vec<Requirement>, Vec<FieldProblem>> {
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
        Ok::<_, FieldProblem>(Requirement { key: requirement.key.clone(), operator })
    };
    all_or_problems(from.iter().enumerate().map(convert))
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

/// A pool that the API server would accept, by the CEL rules of its CRD too; or all of its problems.
pub(crate) fn checked(from: &api::NodePool) -> Result<Pool, Vec<FieldProblem>> {
    let (pool, problems) = convert(from);
    let mut problems: Vec<FieldProblem> = problems.into_iter().map(|(_, problem)| problem).collect();
    let broken = from.validate_cel().err().into_iter().flatten();
    let untold = broken.filter(|error| !is_told(&problems, &error.field_path));
    let untold: Vec<FieldProblem> =
        untold.map(|error| FieldProblem::new(error.field_path, error.message, "")).collect();
    problems.extend(untold);
    for (path, budget) in budgets(from) {
        problems.extend(unreadable(&path, budget));
    }
    if problems.is_empty() { Ok(pool) } else { Err(problems) }
}

/// Returns whether a problem is already told when a rule of the CRD finds it. Rules on quantities name the map, not the key.
fn is_told(problems: &[FieldProblem], path: &str) -> bool {
    let is_of_quantities = [".limits", ".monthlyBudget", ".requests"].iter().any(|end| path.ends_with(end));
    let is_key = |rest: &str| is_of_quantities && rest.starts_with(['.', '[']);
    let mut rests = problems.iter().filter_map(|problem| problem.path.strip_prefix(path));
    rests.any(|rest| rest.is_empty() || is_key(rest))
}
