//! The cost is the sum of the prices, and the bound is not above it.

use poolwright_catalog::UsdPerHour;

use super::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let sum: UsdPerHour = solution
        .new_nodes
        .iter()
        .map(|group| problem.candidates[group.candidate as usize].price.times(u64::from(group.count)))
        .sum();
    if sum != solution.cost {
        violations.push(Violation::WrongCost { said: solution.cost, sum });
    }
    if solution.bound > solution.cost {
        violations.push(Violation::BoundAboveCost { bound: solution.bound, cost: solution.cost });
    }
}
