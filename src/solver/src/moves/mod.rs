//! Keep or move: which removable nodes stay with their pods and which are emptied, so that new nodes, nodes that stay and
//! disruption cost least together; and in which order to get there.
//!
//! Prices of pods on new nodes rank the nodes by what emptying them saves for each pod moved; free room of the nodes that
//! stay is filled first; the engine places the rest on new nodes like any other demand. Replacing one node by several,
//! several by fewer or by others all come out of that. Few nodes are tried in every combination.

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

/// Whether `problem` asks for this.
pub(crate) fn concerns(problem: &Problem) -> bool {
    problem.existing.iter().any(|node| node.removal.is_some())
}
