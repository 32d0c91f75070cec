//! Disruption budgets: computes how many more nodes of a pool, and of all pools together, may be disrupted now.

use std::sync::Arc;

use jiff::Timestamp;
use poolwright_terms::ConditionType;

use crate::model::{Cause, Claim, Disruption, DisruptionBudget, Pool, Snapshot, Window};
use crate::rules::format;

/// The number of nodes that disruption budgets allow now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// The number of further nodes that may be disrupted.
    pub left: u64,
    /// A description of the budget that allows no more.
    pub why: String,
}

/// Returns the number of nodes that the budgets of a pool allow for a cause. The most restrictive budget in force counts. Nodes
/// of the pool that are disrupted, being deleted or not ready are subtracted, for any cause.
pub(crate) fn allowance(snapshot: &Snapshot, pool: &Pool, cause: Cause, now: Timestamp) -> Allowance {
    let budgets = &pool.disruption.budgets;
    if budgets.is_empty() && cause == Cause::Empty {
        return Allowance { left: u64::MAX, why: String::new() };
    }
    let (nodes, disturbed) = count(snapshot, |claim| claim.pool == pool.name);
    let name = &pool.name;
    let mut least = least(budgets, nodes, cause, now, |at, budget, allowed| match &budget.window {
        Some(Window::Unreadable(why)) => {
            format!("a budget of pool `{name}` is invalid and allows nothing: {why}")
        }
        window => format!(
            "spec.disruption.budgets[{at}] of pool `{name}` allows {allowed} of {} at a time{}",
            of(nodes),
            window.as_ref().map(times).unwrap_or_default()
        ),
    });
    if budgets.is_empty() {
        let percent = Disruption::DEFAULT_PERCENT;
        let allowed = (u128::from(nodes) * u128::from(percent)).div_ceil(100);
        let why = format!(
            "pool `{name}` has no budgets, so it allows {percent} % of {} at a time, rounded up",
            of(nodes)
        );
        least = Some((u64::try_from(allowed).unwrap_or(u64::MAX), why));
    }
    left(least, disturbed)
}

/// Formats a number of nodes.
fn of(nodes: u64) -> String {
    format::count(usize::try_from(nodes).unwrap_or(usize::MAX), "node")
}

/// Returns the times at which a budget is in force, for messages.
fn times(window: &Window) -> String {
    match window {
        Window::Scheduled { schedule, length } => {
            format!(" for {length:#} from each time of `{schedule}` on")
        }
        Window::Unreadable(_) => String::new(),
    }
}

/// Returns the number of nodes that the budgets of all pools together allow for a cause.
pub(crate) fn allowance_over_all(snapshot: &Snapshot, cause: Cause, now: Timestamp) -> Allowance {
    let budgets = &snapshot.disruption_budgets;
    if budgets.is_empty() {
        return Allowance { left: u64::MAX, why: String::new() };
    }
    let (nodes, disturbed) = count(snapshot, |_| true);
    let least = least(budgets, nodes, cause, now, |at, _, allowed| {
        let number = at + 1;
        format!(
            "budget {number} over all pools (--disruption-budget) allows {allowed} of {} at a time",
            of(nodes)
        )
    });
    left(least, disturbed)
}

/// Returns the number of these nodes that are or were open, and how many of them are disrupted, being deleted or not ready.
fn count(snapshot: &Snapshot, concerned: impl Fn(&Claim) -> bool) -> (u64, u64) {
    let open = |claim: &&Arc<Claim>| claim.since(ConditionType::Initialized).is_some() && concerned(claim);
    let (mut nodes, mut disturbed) = (0u64, 0u64);
    for claim in snapshot.claims.values().filter(open) {
        nodes += 1;
        let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
        let gone = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
        disturbed += u64::from(gone || node.is_none_or(|node| !node.ready));
    }
    (nodes, disturbed)
}

/// Returns the most restrictive budget that is in force.
fn least(
    budgets: &[DisruptionBudget],
    nodes: u64,
    cause: Cause,
    now: Timestamp,
    why: impl Fn(usize, &DisruptionBudget, u64) -> String,
) -> Option<(u64, String)> {
    let in_force = budgets.iter().enumerate().filter(|(_, budget)| budget.concerns(cause, now));
    let allowed = in_force.map(|(at, budget)| (budget.allows(nodes), at, budget));
    allowed
        .min_by_key(|(allowed, ..)| *allowed)
        .map(|(allowed, at, budget)| (allowed, why(at, budget, allowed)))
}

fn left(least: Option<(u64, String)>, disturbed: u64) -> Allowance {
    let (allowed, why) = least.unwrap_or((u64::MAX, String::new()));
    let are = if disturbed == 1 { "is" } else { "are" };
    Allowance {
        left: allowed.saturating_sub(disturbed),
        why: format!("{why}, and {disturbed} {are} disrupted now"),
    }
}
