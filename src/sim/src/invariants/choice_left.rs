//! Launches let the cloud choose as much as their pool says.

use std::collections::BTreeSet;

use poolwright_core::PoolName;
use poolwright_terms::CapacityType;

use super::{Memory, Scene, offers};

pub(super) const RULE: &str =
    "each launch lets the cloud choose among as many values as minValues of its pool asks for";

/// The keys of the machines checked so far.
pub(super) type Seen = BTreeSet<String>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    for (key, machine) in scene.machines {
        if !memory.choices.insert(key.clone()) {
            continue;
        }
        let claim = scene.cluster.claims.get(&machine.instance.claim);
        let pool = claim.and_then(Scene::pool_of).map(|pool| PoolName(pool.clone()));
        let pool = pool.and_then(|pool| scene.cluster.view().pools.get(&pool));
        let Some(pool) = pool.filter(|pool| !pool.min_values.is_empty()) else { continue };
        // A reservation has one type and one zone.
        let is_reserved = machine.offered.first().is_none_or(|id| id.capacity_type == CapacityType::Reserved);
        let catalogue = scene.cluster.cloud.catalogue();
        let lacking = offers::lacking(pool, &catalogue, machine.offered.iter());
        if let Some((label, found)) = lacking.filter(|_| !is_reserved) {
            return Some(format!(
                "{} is launched for {}, and the cloud could choose among {found} values of {label}",
                machine.instance.offering, machine.instance.claim
            ));
        }
    }
    None
}
