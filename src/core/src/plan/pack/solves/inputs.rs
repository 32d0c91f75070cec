//! The inputs of the solver calls.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::PlanOptions;
use crate::plan::pack::classes::PodClasses;
use crate::plan::pack::horizon::Horizons;
use crate::plan::place::spread_hosts::Hosts;
use crate::rules;
use crate::rules::colocation::Colocation;
use crate::supply::interruption_risk::Losses;
use crate::supply::offerings::{Admissions, Supply};
use crate::supply::rooms::Room;
use crate::supply::spot_mix::SpotMix;

pub(crate) struct SolveInputs<'s, 'a> {
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub classes: &'s PodClasses<'a>,
    pub colocation: &'s Colocation<'a>,
    /// Returns the existing nodes and claims.
    pub hosts: &'s dyn Fn() -> Hosts<'s>,
    pub horizons: &'s Horizons,
    /// Whether room is kept free for pods without a cheaper home.
    pub keeps_room: bool,
    pub losses: &'s Losses,
    pub options: &'s PlanOptions,
    /// Offerings that leave no choice within the limits, as indices of the pool and of the offering.
    pub unlistable: &'s BTreeSet<(usize, usize)>,
    /// The nodes of each pool with rules on spot nodes, by index of the pool.
    pub spot_mixes: &'s BTreeMap<usize, SpotMix>,
}

impl SolveInputs<'_, '_> {
    /// Returns whether a room admits pods of a signature.
    pub fn admits(&self, room: &Room<'_>, signature: usize) -> bool {
        let (spec, pin) = self.classes.signatures[signature];
        rules::admits(spec, &room.labels, &room.taints).is_ok()
            && pin.iter().all(|requirement| rules::matches(requirement, &room.labels))
    }
}

/// Existing nodes, in the solver's numbering.
#[derive(Debug, Default)]
pub(crate) struct ExistingNodes {
    /// The indices of rooms. Indices above those of all rooms are nodes bought so far.
    pub nodes: Vec<usize>,
    /// The existing nodes that fit each participating class.
    pub homes: Vec<Vec<u32>>,
    /// The rooms that fit each participating class and whose use costs money, ascending. They are not in `nodes`.
    pub at_a_cost: Vec<Vec<usize>>,
}
