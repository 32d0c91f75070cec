//! The independent checker. It runs before every launch, so it is linear in the plan, and it shares no code with the
//! solver: only the types of the problem and of the answer. One rule, one file.

mod admission;
mod availability;
mod capacity;
mod cost;
mod demand;
mod limits;
mod per_node;
mod shape;

use std::fmt;

use poolwright_catalog::{ResourceName, UsdPerHour};

use crate::problem::Problem;
use crate::solution::{Placement, Solution};

/// Which node of a plan a violation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeRef {
    /// Nodes to buy: the candidate's name, and the position of the group in the plan.
    New {
        /// The candidate's name.
        candidate: String,
        /// Position in [`Solution::new_nodes`].
        group: usize,
    },
    /// An existing node by name.
    Existing(String),
}

impl fmt::Display for NodeRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New { candidate, group } => write!(f, "new node `{candidate}` (group {group})"),
            Self::Existing(name) => write!(f, "existing node `{name}`"),
        }
    }
}

/// What is wrong with a plan. Any of these is a bug of the solver; nothing may be bought on such a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// The problem itself is malformed, so nothing can be checked against it.
    #[error("the problem is malformed: {0}")]
    BadProblem(String),
    /// An index points nowhere.
    #[error("{list} entry {position} names {what} number {index}, which does not exist")]
    UnknownIndex {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
        /// What the index should name.
        what: &'static str,
        /// The index.
        index: u32,
    },
    /// A list is not strictly ascending: an entry is out of order or there twice.
    #[error("{list} entry {position} is out of order or a duplicate")]
    OutOfOrder {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
    },
    /// A group of nodes, a node's content or a count is empty.
    #[error("{list} entry {position} is empty: nothing may be bought or left out for zero pods")]
    Empty {
        /// The list of the plan.
        list: &'static str,
        /// The entry.
        position: usize,
    },
    /// Pods of a class are on a kind of node they may not use.
    #[error("pods of class `{class}` may not use {node}")]
    NotAdmitted {
        /// The class's name.
        class: String,
        /// The node.
        node: NodeRef,
    },
    /// More on a node than it holds.
    #[error(
        "{node} holds {} of {resource}, but its pods take {}",
        resource.quantity(*room),
        match u64::try_from(*used) { Ok(used) => resource.quantity(used), Err(_) => used.to_string() }
    )]
    OverCapacity {
        /// The node.
        node: NodeRef,
        /// The resource.
        resource: ResourceName,
        /// What the pods take.
        used: u128,
        /// What there is.
        room: u64,
    },
    /// More pods of a class on one node than its ceiling.
    #[error("{node} has {count} pods of class `{class}`, which allows {ceiling} on one node")]
    TooManyPerNode {
        /// The node.
        node: NodeRef,
        /// The class's name.
        class: String,
        /// How many.
        count: u32,
        /// How many may be.
        ceiling: u32,
    },
    /// More nodes of a candidate than can be bought.
    #[error("{count} nodes of `{candidate}` are bought, but at most {available} can be")]
    TooManyNodes {
        /// The candidate's name.
        candidate: String,
        /// How many are bought.
        count: u64,
        /// How many can be.
        available: u32,
    },
    /// A limit is passed.
    #[error("limit `{limit}` has {bound} left, but the plan takes {used}")]
    OverLimit {
        /// The limit's name.
        limit: String,
        /// What the plan takes.
        used: u128,
        /// What is left.
        bound: u64,
    },
    /// Placed and left-out pods are not the demand.
    #[error("class `{class}` has {wanted} pods, but {placed} are placed and {unplaced} left out")]
    WrongCount {
        /// The class's name.
        class: String,
        /// How many there are.
        wanted: u32,
        /// How many the plan places.
        placed: u64,
        /// How many it says it leaves out.
        unplaced: u64,
    },
    /// The cost is not the sum of the prices.
    #[error("the plan says it costs {said} USD/h, but its nodes cost {sum} USD/h")]
    WrongCost {
        /// What the plan says.
        said: UsdPerHour,
        /// What its nodes cost.
        sum: UsdPerHour,
    },
    /// The lower bound is above the cost.
    #[error("the plan's lower bound of {bound} USD/h is above its cost of {cost} USD/h")]
    BoundAboveCost {
        /// The bound.
        bound: UsdPerHour,
        /// The cost.
        cost: UsdPerHour,
    },
}

/// Verifies that `solution` is a feasible plan for `problem` and that its cost is what it says.
///
/// The lower bound is verified only as far as it can be without solving: it is not above the cost.
///
/// # Errors
/// All violations, in the order of the rules.
pub fn check(problem: &Problem, solution: &Solution) -> Result<(), Vec<Violation>> {
    if let Err(error) = problem.validate() {
        return Err(vec![Violation::BadProblem(error.to_string())]);
    }
    let mut violations = Vec::new();
    shape::check(problem, solution, &mut violations);
    if !violations.is_empty() {
        // The other rules follow the indices.
        return Err(violations);
    }
    admission::check(problem, solution, &mut violations);
    capacity::check(problem, solution, &mut violations);
    per_node::check(problem, solution, &mut violations);
    availability::check(problem, solution, &mut violations);
    limits::check(problem, solution, &mut violations);
    demand::check(problem, solution, &mut violations);
    cost::check(problem, solution, &mut violations);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// One kind of node of the plan with what each such node offers and holds.
struct NodeView<'a> {
    reference: NodeRef,
    room: &'a [u64],
    pods: &'a [Placement],
    /// Candidate or existing index.
    index: u32,
    existing: bool,
}

/// Every group of bought nodes and every used existing node.
fn nodes<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = NodeView<'a>> {
    let new = solution.new_nodes.iter().enumerate().map(|(group, nodes)| {
        let candidate = &problem.candidates[nodes.candidate as usize];
        NodeView {
            reference: NodeRef::New { candidate: candidate.name.clone(), group },
            room: &candidate.capacity,
            pods: &nodes.pods,
            index: nodes.candidate,
            existing: false,
        }
    });
    let existing = solution.on_existing.iter().map(|used| {
        let node = &problem.existing[used.node as usize];
        NodeView {
            reference: NodeRef::Existing(node.name.clone()),
            room: &node.free,
            pods: &used.pods,
            index: used.node,
            existing: true,
        }
    });
    new.chain(existing)
}

#[cfg(test)]
mod tests;
