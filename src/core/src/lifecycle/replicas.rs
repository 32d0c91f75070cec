//! Static pools with too many nodes: deletes the surplus claims.

use std::cmp::Reverse;
use std::sync::Arc;

use poolwright_terms::{ConditionType, Reason};

use crate::action::EventType;
use crate::demand::is_replica;
use crate::lifecycle::context::LifecycleContext;
use crate::model::{Claim, Pool};
use crate::rules::format;

/// Deletes surplus claims: first claims whose nodes are not open yet, then claims with the fewest pods, then the newest claims.
/// Their nodes are drained like the node of every deleted claim.
pub(crate) fn decide(context: &mut LifecycleContext<'_>) {
    let pools = context.snapshot.pools.values().map(Arc::as_ref);
    for pool in pools.filter(|pool| pool.replicas.is_some() && !pool.deleting && pool.problem.is_none()) {
        surplus(context, pool);
    }
}

fn surplus(context: &mut LifecycleContext<'_>, pool: &Pool) {
    let wanted = usize::try_from(pool.replicas.unwrap_or(0)).unwrap_or(usize::MAX);
    let claims = context.snapshot.claims.values().map(Arc::as_ref);
    let mut there: Vec<&Claim> =
        claims.filter(|claim| is_replica(pool, claim) && !claim.do_not_disrupt).collect();
    let kept = context
        .snapshot
        .claims
        .values()
        .filter(|claim| is_replica(pool, claim) && claim.do_not_disrupt)
        .count();
    there.sort_by_key(|claim| {
        let opened = claim.since(ConditionType::Initialized).is_some();
        (
            opened,
            context.work(claim).len() + context.expected(claim).len(),
            Reverse(claim.created),
            &claim.name,
        )
    });
    let surplus = (there.len() + kept).saturating_sub(wanted);
    for claim in there.into_iter().take(surplus) {
        let message = format!(
            "pool `{}` has more nodes than its {}, so this one is terminated",
            pool.name,
            format::count(wanted, "replica")
        );
        context.record_event(&claim.name, EventType::Normal, Reason::ScaledDown, message);
        context.delete(claim, false);
    }
}
