//! Steps from the existing nodes to the planned ones.

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

/// One step of a consolidation: launch nodes, wait for them, move pods, remove nodes. After each step all running pods still run,
/// and no node is overfull, so you can stop there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Nodes to launch first, as ascending pairs (index into [`super::Solution::new_nodes`], count). The nodes of a
    /// group launch in their order, from 0. Nodes that no step launches are for waiting pods: they run, and are paid,
    /// before the first step.
    pub launch: Vec<(u32, u32)>,
    /// The moves of the removed nodes' pods, sorted. Pods move only to nodes that stay, or that this or an earlier step launches.
    /// A node never gets more pods than the plan has there.
    pub moves: Vec<Move>,
    /// The nodes to remove when they are empty: indices into [`crate::Problem::existing`], ascending.
    pub remove: Vec<u32>,
    /// The saving of the step per hour, after commitments. `None` for a step that saves nothing alone but makes room for later
    /// ones.
    pub saving: Option<UsdPerHour>,
    /// The number of pods that it moves.
    pub evictions: u32,
}

/// Pods that move from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Move {
    /// Index into [`crate::Problem::existing`].
    pub from: u32,
    /// The node to move to.
    pub to: MoveTarget,
    /// Index into [`crate::Problem::classes`].
    pub class: u32,
    /// The number of pods.
    pub count: u32,
}

/// The target of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MoveTarget {
    /// A node that stays: index into [`crate::Problem::existing`].
    Existing(u32),
    /// A new node: index into [`super::Solution::new_nodes`], and its number in that group, from 0.
    New(u32, u32),
}
