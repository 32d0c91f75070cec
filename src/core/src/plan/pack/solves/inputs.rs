//! What the solves work with.

use crate::model::PlanOptions;
use crate::plan::pack::classes::PodClasses;
use crate::rules::colocation::Colocation;
use crate::supply::offerings::{Admissions, Supply};

pub(crate) struct SolveInputs<'s, 'a> {
    pub supply: &'s Supply<'a>,
    pub admissions: &'s Admissions,
    pub classes: &'s PodClasses<'a>,
    pub colocation: &'s Colocation<'a>,
    pub options: &'s PlanOptions,
}

/// What is there, as the solver numbers it.
#[derive(Debug, Default)]
pub(crate) struct ExistingNodes {
    /// Rooms; from the number of rooms on, nodes that were bought by now.
    pub nodes: Vec<usize>,
    /// By class that takes part: which of them hold a pod of it.
    pub homes: Vec<Vec<u32>>,
}
