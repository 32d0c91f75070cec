//! What nodes that are there, or on their way, use of limits.

use poolwright_catalog::RankedOffering;

use crate::model::{Claim, PoolName, Snapshot};
use crate::supply::limits::kind::LimitKind;
use crate::supply::unclaimed::UnclaimedNode;

/// Returns the amount that the claims of a pool use, and its nodes without a claim; of all pools together for `None`.
pub(crate) fn held(
    snapshot: &Snapshot,
    unclaimed: &[UnclaimedNode],
    kind: &LimitKind,
    pool: Option<&PoolName>,
) -> u64 {
    let counts = |of: &PoolName| pool.is_none_or(|pool| pool == of);
    let claims = snapshot.claims.values().filter(|claim| counts(&claim.pool));
    let claims = claims.map(|claim| used(kind, claim).max(advertised(kind, claim, snapshot)));
    let nodes = unclaimed
        .iter()
        .filter(|node| counts(&node.pool))
        .map(|node| kind.of(&node.offering.allocatable, node.offering.price));
    claims.chain(nodes).fold(0, u64::saturating_add)
}

/// Returns the MIG instances of a kind that the node of a claim advertises. Nothing promises them, if others cut the GPUs of nodes.
fn advertised(kind: &LimitKind, claim: &Claim, snapshot: &Snapshot) -> u64 {
    let node = || claim.node_name.as_ref().and_then(|name| snapshot.nodes.get(name));
    kind.mig().and_then(|name| Some(node()?.allocatable.get(name.as_str()))).unwrap_or(0)
}

/// Returns the amount that a claim uses. Before launch, it is the largest amount of any offering that the claim may be launched
/// as.
fn used(kind: &LimitKind, claim: &Claim) -> u64 {
    let of = |ranked: &RankedOffering| kind.of(&ranked.allocatable, ranked.price);
    if claim.launched.is_some() {
        of(claim.current_offering())
    } else {
        claim.offerings.iter().map(of).max().unwrap_or(0)
    }
}
