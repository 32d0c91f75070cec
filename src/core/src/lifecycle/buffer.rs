//! Nodes that are kept for the buffers of their pool.
//!
//! Units go to the first node with room, in a stable order that starts with nodes that run pods. Once all units have a place,
//! nodes without units may be terminated. The remaining nodes hold all units, so the planner buys no replacement.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::SignedDuration;
use poolwright_catalog::ResourceList;
use poolwright_terms::ConditionType;

use crate::demand::{uses_buffers, wants_buffer};
use crate::lifecycle::context::{LifecycleContext, after};
use crate::model::{Buffer, Claim, ClaimName, Pool};

/// The interval between checks whether a schedule begins or ends, and how many units pay.
const LOOK: SignedDuration = SignedDuration::from_mins(1);

/// Returns the claims whose nodes are kept for buffers.
pub(crate) fn kept(context: &mut LifecycleContext<'_>) -> BTreeSet<ClaimName> {
    let mut kept = BTreeSet::new();
    // Pods come first, because buffers count against the limits that pods wait for.
    if !uses_buffers(context.snapshot) || context.snapshot.short_of_capacity {
        return kept;
    }
    let now = context.now;
    for pool in context.snapshot.pools.values().filter(|pool| wants_buffer(pool)) {
        if pool.buffer.iter().any(Buffer::varies) {
            context.wake(after(now, LOOK));
        }
        let mut rooms = rooms(context, pool);
        for units in &pool.buffer {
            for _ in 0..units.wanted(&pool.name, &context.snapshot.arrivals, now) {
                if let Some((claim, free)) = rooms.iter_mut().find(|(_, free)| units.requests.fits(free)) {
                    free.saturating_sub(&units.requests);
                    kept.insert(claim.name.clone());
                }
            }
        }
    }
    kept
}

/// Returns the free capacity of the nodes of a pool. Nodes with pods, or with pods planned for them, come first.
fn rooms<'a>(context: &LifecycleContext<'a>, pool: &Pool) -> Vec<(&'a Claim, ResourceList)> {
    let claims = context.snapshot.claims.values().map(Arc::as_ref).filter(|claim| {
        claim.pool == pool.name && claim.deleting_since.is_none() && claim.leaving().is_none()
    });
    let mut rooms: Vec<(bool, &Claim, ResourceList)> = claims
        .filter_map(|claim| {
            let mut free = free(context, claim)?;
            for pod in context.expected(claim) {
                free.saturating_sub(&pod.spec.requests);
            }
            let stays = !context.work(claim).is_empty() || !context.expected(claim).is_empty();
            Some((!stays, claim, free))
        })
        .collect();
    rooms.sort_by(|a, b| (a.0, a.1.created, &a.1.name).cmp(&(b.0, b.1.created, &b.1.name)));
    rooms.into_iter().map(|(_, claim, free)| (claim, free)).collect()
}

/// Returns the free capacity of a claim's node, or the promised capacity if the node is not open yet; `None` if pods cannot use
/// the node.
fn free(context: &LifecycleContext<'_>, claim: &Claim) -> Option<ResourceList> {
    if claim.since(ConditionType::Initialized).is_none() {
        return Some(claim.current_offering().allocatable.clone());
    }
    let node = context
        .node(claim)
        .filter(|node| node.ready && (!node.cordoned || node.cordoned_until_initialized))?;
    let mut free = node.allocatable.clone();
    if let Some(there) = context.snapshot.pods.on_node(&node.name) {
        free.saturating_sub(&there.requests);
    }
    Some(free)
}
