//! Rule: no limit is exceeded.

use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let mut used = vec![0u128; problem.limits.len()];
    for group in &solution.new_nodes {
        for (limit, amount) in &problem.candidates[group.candidate as usize].limit_use {
            used[*limit as usize] += u128::from(*amount) * u128::from(group.count);
        }
    }
    for (limit, used) in problem.limits.iter().zip(used) {
        if used > u128::from(limit.bound) {
            violations.push(Violation::OverLimit { limit: limit.name.clone(), used, bound: limit.bound });
        }
    }
}
