//! No offering with an unknown price is bought.

use super::{Memory, Scene};

pub(super) const RULE: &str = "no offering with an unknown price is bought";

pub(super) fn check(scene: &Scene<'_>, _: &mut Memory) -> Option<String> {
    let found = scene.machines.iter().find(|(_, machine)| machine.price.is_none())?;
    Some(format!("{} is {}", found.1.instance.provider_id, found.1.instance.offering))
}
