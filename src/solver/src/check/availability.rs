//! Rule: the plan buys no more nodes of a candidate than there are.

use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

/// Returns the number of bought nodes of each candidate.
pub(super) fn bought(problem: &Problem, solution: &Solution) -> Vec<u64> {
    let mut bought = vec![0u64; problem.candidates.len()];
    for group in &solution.new_nodes {
        bought[group.candidate as usize] += u64::from(group.count);
    }
    bought
}

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for (candidate, count) in problem.candidates.iter().zip(bought(problem, solution)) {
        if let Some(available) = candidate.max_nodes
            && count > u64::from(available)
        {
            violations.push(Violation::TooManyNodes { candidate: candidate.name.clone(), count, available });
        }
    }
}
