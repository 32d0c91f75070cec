//! Each claim gets at most one instance.

use std::collections::BTreeMap;

use super::{Memory, Scene};

pub(super) const RULE: &str = "no claim ever has two instances";

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let mut by_claim: BTreeMap<&str, &str> = BTreeMap::new();
    scene.machines.iter().find_map(|(_, machine)| {
        let instance = &machine.instance;
        let other = by_claim.insert(&instance.claim, &instance.provider_id)?;
        Some(format!("claim {} has {other} and {}", instance.claim, instance.provider_id))
    })
}
