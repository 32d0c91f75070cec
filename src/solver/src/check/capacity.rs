//! Rule: the pods of a node fit it in every resource.

use super::view::nodes;
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        for (dim, resource) in problem.resources.iter().enumerate() {
            let used: u128 = node
                .pods
                .iter()
                .map(|(class, count)| {
                    u128::from(problem.classes[*class as usize].requests[dim]) * u128::from(*count)
                })
                .sum();
            if used > u128::from(node.room[dim]) {
                violations.push(Violation::OverCapacity {
                    node: node.reference.clone(),
                    resource: resource.clone(),
                    used,
                    room: node.room[dim],
                });
            }
        }
    }
}
