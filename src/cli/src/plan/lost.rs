//! Objects of the files that are left out, because they cannot be read. To a plan they do not exist, but its messages must not say
//! so.

use std::collections::BTreeSet;

use poolwright_core::plan::{Plan, UnplacedReason};

use super::Input;
use crate::not_sold::first_of;

/// Returns the names of the NodePools that are left out.
pub fn pools(left_out: &BTreeSet<String>) -> impl Iterator<Item = &str> {
    left_out.iter().filter_map(|object| object.strip_prefix("NodePool "))
}

/// Says of pods without a node that what they lack is left out.
pub fn tell(plan: &mut Plan, input: &Input) {
    let names: Vec<&str> = pools(&input.left_out).collect();
    let lacks_pools = !names.is_empty() && input.snapshot.pools.is_empty();
    for left in &mut plan.unplaced {
        match left.reason {
            UnplacedReason::NoUsablePool if lacks_pools => {
                left.message = format!(
                    "every NodePool of the files is left out, because it cannot be read: {}; correct what the notes name",
                    first_of(&names)
                );
            }
            UnplacedReason::VolumeUnusable | UnplacedReason::PodGroupMissing => {
                if let Some(message) = reworded(&left.message, &input.left_out) {
                    left.message = message;
                }
            }
            _ => {}
        }
    }
}

/// Returns another message, if one says of an object that is left out that it does not exist.
fn reworded(message: &str, left_out: &BTreeSet<String>) -> Option<String> {
    let (before, _) = message.split_once(" does not exist")?;
    // It is looked up by its name: both the pods without a node and the objects that are left out may be many.
    let named = || {
        let (rest, name) = before.strip_suffix('`')?.rsplit_once(" `")?;
        Some(format!("{} {name}", rest.rsplit(' ').next()?))
    };
    let group = || {
        let (name, _) = before.split_once("PodGroup ")?.1.split_once(" (")?;
        // Of another scheduler's, the API group follows.
        Some(format!("PodGroup {}", name.split(' ').next()?))
    };
    let object = named().or_else(group)?;
    let is_lost = left_out.contains(&object);
    is_lost.then(|| format!("{before} is left out, because it cannot be read; correct what the notes name"))
}
