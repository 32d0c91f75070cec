//! Reservations are used before anything is paid for, and never beyond their size.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_catalog::{OfferingId, UsdPerHour};
use poolwright_core::{Claim, Pod, PodKey, PodPhase};
use poolwright_terms::CapacityType;

use super::{Memory, Scene, offers, pool_limits};
use crate::cloud::Reservation;

pub(super) const KEPT: &str = "no more instances run on a reservation than it has";
pub(super) const USED: &str = "no node is paid for if its only pod could have an instance of a reservation that was free for 15 minutes without a failure";

/// Catalogues are read every five minutes, and an offering is held back for up to ten minutes after a failure.
const FREE_FOR: Duration = Duration::from_mins(15);
/// The claims of one decision are written one after the other, within this time.
const WRITTEN_WITHIN: Duration = Duration::from_secs(30);

/// The memory of these rules.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Since when the reservation has an instance that no claim will use.
    free_since: Option<Duration>,
    /// UIDs of the claims seen so far.
    claims: BTreeSet<String>,
    /// Claims that could have used the reservation, and since when they exist.
    suspects: BTreeMap<String, Duration>,
}

pub(super) fn kept(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let Reservation { offering, instances, .. } = scene.cluster.cloud.reservation()?;
    let there = scene.machines.iter().filter(|(_, machine)| machine.instance.offering == offering).count();
    (there > instances as usize)
        .then(|| format!("{there} instances of {offering} are there, and it has {instances}"))
}

pub(super) fn used(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let reservation = scene.cluster.cloud.reservation()?;
    let Seen { free_since, claims, suspects } = &mut memory.reservation;
    let models = scene.cluster.claims.values().filter_map(|claim| poolwright_intake::node_claim(claim).ok());
    let on_order = models.filter(|claim| claim.launched.is_none() && names(claim, &reservation.offering));
    let on_order = on_order.count();
    let machines = scene.machines.iter().map(|(_, machine)| machine);
    if reservation.free(machines, scene.now) as usize > on_order {
        free_since.get_or_insert(scene.now);
    } else {
        *free_since = None;
    }
    for (name, claim) in &scene.cluster.claims {
        let is_new = claim.metadata.uid.as_ref().is_some_and(|uid| claims.insert(uid.clone()));
        if is_new && could_use(scene, claim, &reservation) {
            suspects.insert(name.clone(), scene.now);
        }
    }
    // Another claim of the same decision may use the last free instance, so each claim is judged a little later.
    let mut wrong = None;
    suspects.retain(|name, made| {
        if scene.now.saturating_sub(*made) <= WRITTEN_WITHIN {
            return true;
        }
        let was_free = free_since.is_some_and(|since| since + FREE_FOR < *made);
        if was_free && scene.last_failure().is_none_or(|last| last + FREE_FOR < *made) {
            wrong = Some(format!(
                "{name} is paid for, and {} has been free since {free_since:?}",
                reservation.offering
            ));
        }
        false
    });
    wrong
}

fn names(claim: &Claim, offering: &OfferingId) -> bool {
    claim.offerings.iter().any(|one| one.offering == *offering)
}

/// Returns whether a new claim is paid for, for one pod alone that the reservation could hold within the limits of the claim's pool.
/// More pods on one node may cost less than one of them on the reservation and the others elsewhere.
fn could_use(scene: &Scene<'_>, claim: &NodeClaim, reservation: &Reservation) -> bool {
    let all = scene.cluster.view();
    let Ok(model) = poolwright_intake::node_claim(claim) else { return false };
    let is_paid = |claim: &Claim| {
        claim.offerings.iter().all(|one| {
            one.offering.capacity_type != CapacityType::Reserved
                && one.price.is_some_and(|price| price > UsdPerHour::ZERO)
        })
    };
    let Some(pool) = all.pools.get(&model.pool) else { return false };
    let [PodKey::Existing(only)] = model.planned_pods.as_slice() else { return false };
    let waits = |pod: &Pod| matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
    let Some(pod) = all.pods.existing(only).filter(|pod| waits(pod)) else { return false };
    // Buffers and the choice of the cloud may need another node, and the pods of a gang need several.
    let is_simple = pool.buffer.is_empty() && pool.min_values.is_empty() && pod.group.is_none();
    let room = offers::room_for(scene, pool, &reservation.offering, pod);
    let is_within = room.is_some_and(|room| {
        pool_limits::held(scene, pool).with(UsdPerHour::ZERO, &room).passed(pool).is_none()
    });
    is_paid(&model) && is_simple && offers::is_alone(pod) && is_within
}
