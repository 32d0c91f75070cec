//! The independent checker. It runs before every launch, so it is linear in the plan. It shares only the types of the
//! problem and the solution, and the catalogue's table of MIG placements, with the solver. The one exception is a search that gives
//! up: it may take a layout from the solver, which a rule then checks. Each rule has one file, which restates the rule from the
//! documentation of [`crate::problem`].

mod admission;
mod availability;
mod capacity;
mod charges;
pub(crate) mod commitments;
mod conflicts;
mod cost;
mod demand;
mod flexibility;
mod gangs;
mod gpu;
mod gpu_fault;
mod limits;
mod packing;
mod per_node;
mod ports;
mod removed;
mod shape;
mod shares;
mod spreads;
mod step_fault;
mod steps;
mod view;
mod violation;

pub(crate) use commitments::paid;
pub(crate) use flexibility::leave_choice;
pub use gpu_fault::GpuFault;
pub(crate) use packing::packs;
pub use step_fault::StepFault;
pub use view::NodeRef;
pub(crate) use view::value;
pub use violation::Violation;

use crate::problem::Problem;
use crate::solution::Solution;

/// Verifies that `solution` is a feasible plan for `problem` with the cost that it states.
///
/// It cannot verify the lower bound without solving. It only verifies that the bound is not above the objective.
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
        // The other rules need valid indices.
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

/// Returns whether the problem is well-formed and every index of the solution exists.
pub(crate) fn well_shaped(problem: &Problem, solution: &Solution) -> bool {
    let mut violations = Vec::new();
    if problem.validate().is_ok() {
        shape::check(problem, solution, &mut violations);
        return violations.is_empty();
    }
    false
}

#[cfg(test)]
mod tests;
