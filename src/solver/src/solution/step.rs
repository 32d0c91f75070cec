//! Moves from the nodes that are there to the nodes that are wanted.

use poolwright_catalog::UsdPerHour;
use serde::{Deserialize, Serialize};

/// One step of a consolidation: launch, wait until they are there, move, remove. After each the cluster is feasible: every
/// pod that ran runs, no node is overfull, and one may stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Step {
    /// Nodes to launch first: (index into [`super::Solution::new_nodes`], how many), ascending. Of a group, the nodes are
    /// launched in their order, from 0. Those that no step launches are for pods that wait: they are taken to be there, and
    /// paid, before the first step.
    pub launch: Vec<(u32, u32)>,
    /// Where the pods of the removed nodes go; sorted. Only to nodes that stay and to nodes launched in this step or before,
    /// and never more than the plan has there: what is on a node at any time is part of what it holds in the end.
    pub moves: Vec<Move>,
    /// Indices into [`crate::Problem::existing`] of nodes that are removed when they are empty, ascending.
    pub remove: Vec<u32>,
    /// What is paid less per hour after this step than before it, commitments counted; `None` for a step that alone saves
    /// nothing (it makes room for later ones).
    pub saving: Option<UsdPerHour>,
    /// Pods moved.
    pub evictions: u32,
}

/// Pods that move from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Move {
    /// Index into [`crate::Problem::existing`].
    pub from: u32,
    /// Where to.
    pub to: MoveTarget,
    /// Index into [`crate::Problem::classes`].
    pub class: u32,
    /// How many.
    pub count: u32,
}

/// Where pods move to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum MoveTarget {
    /// A node that stays: index into [`crate::Problem::existing`].
    Existing(u32),
    /// A new node: index into [`super::Solution::new_nodes`], and which of that group, from 0.
    New(u32, u32),
}
