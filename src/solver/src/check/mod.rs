//! The independent checker. It runs before every launch, so it is linear in the plan, and it shares no code with the
//! solver: only the types of the problem and of the answer, and the catalogue's table of MIG placements. One rule, one
//! file; each restates its rule from the documentation of [`crate::problem`].

mod admission;
mod availability;
mod capacity;
mod charges;
mod commitments;
mod conflicts;
mod cost;
mod demand;
mod flexibility;
mod gangs;
mod gpu;
mod limits;
mod packing;
mod per_node;
mod ports;
mod removed;
mod shape;
mod shares;
mod spreads;
mod steps;
mod violation;

pub(crate) use commitments::paid;
pub use gpu::GpuFault;
pub(crate) use packing::packs;
pub use steps::StepFault;
pub use violation::{NodeRef, Violation};

use crate::problem::Problem;
use crate::solution::{GpuLayout, Placement, Solution};

/// Verifies that `solution` is a feasible plan for `problem` and that its cost is what it says.
///
/// The lower bound is verified only as far as it can be without solving: it is not above the objective.
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
    for rule in [
        admission::check,
        capacity::check,
        per_node::check,
        conflicts::check,
        ports::check,
        gpu::check,
        availability::check,
        limits::check,
        shares::check,
        flexibility::check,
        removed::check,
        demand::check,
        gangs::check,
        spreads::check,
        cost::check,
        charges::check,
        steps::check,
    ] {
        rule(problem, solution, &mut violations);
    }
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

/// Whether the problem is well-formed and every index of the solution exists.
pub(crate) fn well_shaped(problem: &Problem, solution: &Solution) -> bool {
    let mut violations = Vec::new();
    if problem.validate().is_ok() {
        shape::check(problem, solution, &mut violations);
        return violations.is_empty();
    }
    false
}

/// One kind of node of the plan with what each such node offers and holds.
struct NodeView<'a> {
    reference: NodeRef,
    room: &'a [u64],
    /// What the plan places on each of these nodes.
    pods: &'a [Placement],
    /// Pods that ran on a removable node and stay; `room` is without what they take.
    staying: &'a [Placement],
    layout: &'a [GpuLayout],
    domains: &'a [(u32, u32)],
    /// Candidate or existing index.
    index: u32,
    existing: bool,
    /// How many such nodes.
    count: u32,
}

impl NodeView<'_> {
    /// The value that these nodes have of a topology.
    fn value(&self, topology: u32) -> Option<u32> {
        value(self.domains, topology)
    }
}

/// The value of a topology among a node's.
pub(crate) fn value(domains: &[(u32, u32)], topology: u32) -> Option<u32> {
    domains.binary_search_by_key(&topology, |(of, _)| *of).ok().map(|at| domains[at].1)
}

/// The name of a topology's value.
fn value_name(problem: &Problem, topology: u32, value: u32) -> String {
    problem.topologies[topology as usize].values[value as usize].clone()
}

/// Every group of bought nodes and every used existing node.
fn nodes<'a>(problem: &'a Problem, solution: &'a Solution) -> impl Iterator<Item = NodeView<'a>> {
    let new = solution.new_nodes.iter().enumerate().map(|(group, nodes)| {
        let candidate = &problem.candidates[nodes.candidate as usize];
        NodeView {
            reference: NodeRef::New { candidate: candidate.name.clone(), group },
            room: &candidate.capacity,
            pods: &nodes.pods,
            staying: &[],
            layout: &nodes.gpus,
            domains: &candidate.domains,
            index: nodes.candidate,
            existing: false,
            count: nodes.count,
        }
    });
    let existing = solution.on_existing.iter().map(|used| {
        let node = &problem.existing[used.node as usize];
        NodeView {
            reference: NodeRef::Existing(node.name.clone()),
            room: &node.free,
            pods: &used.pods,
            staying: node.removal.as_ref().map_or(&[], |removal| &removal.pods),
            layout: &used.gpus,
            domains: &node.domains,
            index: used.node,
            existing: true,
            count: 1,
        }
    });
    new.chain(existing)
}

/// The pods that ran on removable nodes and stay: the nodes' domains, and the pods.
fn staying<'a>(
    problem: &'a Problem,
    solution: &'a Solution,
) -> impl Iterator<Item = (&'a [(u32, u32)], &'a [Placement])> {
    problem.existing.iter().enumerate().filter_map(|(index, node)| {
        let removal = node.removal.as_ref()?;
        let stays = solution.removed.binary_search(&(index as u32)).is_err();
        stays.then_some((&node.domains[..], &removal.pods[..]))
    })
}

/// How many of `class` are among `pods`, which ascend by class.
fn count_of(pods: &[Placement], class: u32) -> u32 {
    pods.binary_search_by_key(&class, |(of, _)| *of).map_or(0, |at| pods[at].1)
}

#[cfg(test)]
mod tests;
