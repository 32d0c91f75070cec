//! Static pools as a demand source: pools with a fixed number of nodes.

use crate::demand::forecast::NodesWanted;

use jiff::{SignedDuration, Timestamp};

use crate::demand::forecast::{ForecastBuilder, ForecastInput};
use crate::demand::source::{DemandSource, Mentions};
use crate::model::{Claim, Pool};

/// The time until the next check whether a pool has its number of nodes.
pub(super) const LOOK_AGAIN: SignedDuration = SignedDuration::from_secs(10);

pub(super) struct Replicas;

impl DemandSource for Replicas {
    fn name(&self) -> &'static str {
        "replicas of static pools"
    }

    fn foresee<'a>(&self, known: &ForecastInput<'a>, ahead: &mut ForecastBuilder<'a>) -> Option<Timestamp> {
        let (snapshot, now) = (known.snapshot, known.outlook.now);
        for pool in snapshot.pools.values().filter(|pool| is_usable(pool)) {
            let there = snapshot.claims.values().filter(|claim| is_replica(pool, claim)).count() as u64;
            let lacking = pool.replicas.unwrap_or(0).saturating_sub(there);
            if lacking > 0 {
                ahead.nodes.push(NodesWanted { pool: pool.clone(), there, lacking });
            }
        }
        let mut pools = snapshot.pools.values().filter(|pool| pool.replicas.is_some());
        pools.next().map(|_| now.checked_add(LOOK_AGAIN).unwrap_or(Timestamp::MAX))
    }

    fn mentions(&self) -> Mentions {
        Mentions::Everywhere
    }
}

fn is_usable(pool: &Pool) -> bool {
    pool.replicas.is_some() && !pool.deleting && pool.problem.is_none()
}

/// Returns whether a claim counts as one of the pool's replicas and is not disrupted.
pub(crate) fn is_replica(pool: &Pool, claim: &Claim) -> bool {
    claim.pool == pool.name && claim.deleting_since.is_none() && claim.leaving().is_none()
}
