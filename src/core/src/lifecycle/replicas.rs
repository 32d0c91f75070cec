//! Static pools that have more nodes than they say: who goes.

use std::cmp::Reverse;
use std::sync::Arc;

use poolwright_terms::{ConditionType, Reason};

use crate::action::EventType;
use crate::demand::is_replica;
use crate::lifecycle::scene::Scene;
use crate::model::{Claim, Pool};

/// Deletes what is too much: those first that are not there yet, then those without work, then the newest. Their pods are asked to
/// go as those of every deleted claim.
pub(crate) fn decide(scene: &mut Scene<'_>) {
    let pools = scene.snapshot.pools.values().map(Arc::as_ref);
    for pool in pools.filter(|pool| pool.replicas.is_some() && !pool.deleting && pool.problem.is_none()) {
        surplus(scene, pool);
    }
}

fn surplus(scene: &mut Scene<'_>, pool: &Pool) {
    let wanted = usize::try_from(pool.replicas.unwrap_or(0)).unwrap_or(usize::MAX);
    let claims = scene.snapshot.claims.values().map(Arc::as_ref);
    let mut there: Vec<&Claim> = claims.filter(|claim| is_replica(pool, claim) && !claim.kept).collect();
    let kept = scene.snapshot.claims.values().filter(|claim| is_replica(pool, claim) && claim.kept).count();
    there.sort_by_key(|claim| {
        let opened = claim.since(ConditionType::Initialized).is_some();
        (opened, scene.work(claim).len() + scene.expected(claim).len(), Reverse(claim.created), &claim.name)
    });
    let surplus = (there.len() + kept).saturating_sub(wanted);
    for claim in there.into_iter().take(surplus) {
        let message =
            format!("pool `{}` has more nodes than its {wanted} replicas: it is given back", pool.name);
        scene.record_event(&claim.name, EventType::Normal, Reason::ScaledDown, message);
        scene.delete(claim, false);
    }
}
