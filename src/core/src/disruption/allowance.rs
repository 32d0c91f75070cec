//! How many more nodes of a pool may be disturbed now.

use std::sync::Arc;

use jiff::Timestamp;

use crate::action::ConditionType;
use crate::model::{Cause, Claim, Disruption, Pool, Snapshot, Window};

/// What the budgets of a pool leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowance {
    /// How many more nodes.
    pub left: u64,
    /// What allows no more, in words.
    pub why: String,
}

/// What the budgets of a pool leave for a cause: the most restrictive that is in force counts, and every node of the pool that is
/// disturbed, on its way out or not ready, for whatever cause.
pub(crate) fn allowance(snapshot: &Snapshot, pool: &Pool, cause: Cause, now: Timestamp) -> Allowance {
    let budgets = &pool.disruption.budgets;
    if budgets.is_empty() && cause == Cause::Empty {
        return Allowance { left: u64::MAX, why: String::new() };
    }
    let of_pool =
        |claim: &&Arc<Claim>| claim.pool == pool.name && claim.since(ConditionType::Initialized).is_some();
    let (mut nodes, mut disturbed) = (0u64, 0u64);
    for claim in snapshot.claims.values().filter(of_pool) {
        nodes += 1;
        let node = claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
        let gone = claim.deleting_since.is_some() || claim.since(ConditionType::Disrupting).is_some();
        disturbed += u64::from(gone || node.is_none_or(|node| !node.ready));
    }
    let mut least: Option<(u64, String)> = None;
    let mut add = |allowed: u64, why: &dyn Fn() -> String| {
        if least.as_ref().is_none_or(|(least, _)| allowed < *least) {
            least = Some((allowed, why()));
        }
    };
    for (at, budget) in budgets.iter().enumerate().filter(|(_, budget)| budget.concerns(cause, now)) {
        let allowed = budget.allows(nodes);
        add(allowed, &|| match &budget.window {
            Some(Window::Unreadable(why)) => {
                format!("a budget of pool `{}` makes no sense and so allows nothing: {why}", pool.name)
            }
            _ => format!(
                "spec.disruption.budgets[{at}] of pool `{}` allows {allowed} of {nodes} nodes at a time",
                pool.name
            ),
        });
    }
    if budgets.is_empty() {
        let allowed = (u128::from(nodes) * u128::from(Disruption::DEFAULT_PERCENT)).div_ceil(100);
        let allowed = u64::try_from(allowed).unwrap_or(u64::MAX);
        add(allowed, &|| {
            let percent = Disruption::DEFAULT_PERCENT;
            format!(
                "pool `{}` has no budgets, so that {percent} % of its {nodes} nodes are disturbed at a time",
                pool.name
            )
        });
    }
    let (allowed, why) = least.unwrap_or((u64::MAX, String::new()));
    Allowance { left: allowed.saturating_sub(disturbed), why: format!("{why}, and {disturbed} are now") }
}
