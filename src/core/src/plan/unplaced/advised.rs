//! The rules of unplaced pods on labels as they would be if the advice about them were followed.

use crate::model::{Operator, PodSpec, Requirement};
use crate::plan::unplaced::label_hint::near_value;
use crate::plan::unplaced::labels::{translated, values};
use crate::plan::unplaced::wants::{Want, met, wants};
use crate::supply::offerings::Supply;

/// Returns the rules on labels that pods would have if they followed the advice for a pool: those that its offerings meet, and those
/// that are advised instead of others. A label that the pool is advised to have is none of them, because all its nodes would have it.
pub(crate) fn advised(spec: &PodSpec, at: usize, supply: &Supply<'_>) -> Vec<Requirement> {
    let alternatives = wants(spec);
    let unmet = |wants: &&Vec<Want<'_>>| wants.iter().filter(|want| !met(want, at, supply)).count();
    let nearest = alternatives.iter().min_by_key(unmet);
    nearest.into_iter().flatten().filter_map(|want| advised_for(want, at, supply)).collect()
}

fn advised_for(want: &Want<'_>, at: usize, supply: &Supply<'_>) -> Option<Requirement> {
    if met(want, at, supply) {
        return Some(want.requirement.clone());
    }
    let near = || {
        let has = values(want.key, at, supply);
        let (_, near) = near_value(&want.requirement, &has)?;
        Some(Requirement { key: want.key.to_owned(), operator: Operator::In([near.to_owned()].into()) })
    };
    translated(&want.requirement, at, supply).or_else(near)
}
