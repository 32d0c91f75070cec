//! Consolidation: decides which removable nodes stay with their pods and which are emptied, so that the total cost of new
//! nodes, staying nodes and disruption is lowest. It also gives the order of the steps.
//!
//! Prices of pods on new nodes rank the nodes by the saving per moved pod. Pods fill free room of the staying nodes
//! first. Branch and price places the rest on new nodes like any other demand. So one node can be replaced by several,
//! and several by fewer or by others. Where few nodes are removable, the search tries every combination.

mod bound;
mod cluster;
mod frontier;
mod new_node_prices;
mod residual;
mod rooms;
mod search;
mod steps;
mod subsets;

pub use frontier::{FrontierPoint, frontier};
pub(crate) use residual::greedy;
pub(crate) use search::solve;

use crate::problem::Problem;

/// Returns whether `problem` has removable nodes.
pub(crate) fn concerns(problem: &Problem) -> bool {
    problem.existing.iter().any(|node| node.removal.is_some())
}
