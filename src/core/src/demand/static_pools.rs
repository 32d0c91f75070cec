//! Static pools: which claims count towards the nodes that a pool always has.

use crate::model::{Claim, Pool};

/// Whether a claim is one of the pool's replicas, and will be.
pub(crate) fn stays(pool: &Pool, claim: &Claim) -> bool {
    claim.pool == pool.name && claim.deleting_since.is_none() && claim.leaving().is_none()
}
