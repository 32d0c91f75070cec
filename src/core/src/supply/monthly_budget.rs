//! The monthly budget of a pool, by the nodes that it has.

use std::sync::Arc;

use jiff::Timestamp;

use crate::model::{BudgetOutlook, Claim, MonthSpend, PaidNode, Pool, Snapshot};

/// Returns what the month of a pool will cost; `None` if it has no budget.
pub fn outlook(pool: &Pool, snapshot: &Snapshot, now: Timestamp) -> Option<BudgetOutlook> {
    let budget = pool.monthly_budget?;
    let claims = snapshot.claims.values().map(Arc::as_ref);
    let claims: Vec<&Claim> = claims.filter(|claim| claim.pool == pool.name).collect();
    let nodes: Vec<PaidNode> = claims.iter().filter_map(|claim| PaidNode::of(claim)).collect();
    let spend = MonthSpend::continued(budget.spend, &nodes, now);
    Some(BudgetOutlook::after(budget, spend, claims.iter().map(|claim| claim.current_offering().price)))
}

/// Returns the outlook of a pool that buys nothing because its budget is spent. A static pool never stops.
pub(crate) fn stopped(pool: &Pool, snapshot: &Snapshot, now: Timestamp) -> Option<BudgetOutlook> {
    let outlook = outlook(pool, snapshot, now).filter(|_| pool.replicas.is_none());
    outlook.filter(BudgetOutlook::stops_buying)
}
