//! Rule: no node has more pods of a class than the class allows, including pods that run there and stay.

use super::view::{count_of, nodes};
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        for (index, placed) in node.pods {
            let class = &problem.classes[*index as usize];
            let count = placed.saturating_add(count_of(node.staying, *index));
            if let Some(ceiling) = class.max_per_node
                && count > ceiling
            {
                violations.push(Violation::TooManyPerNode {
                    node: node.reference.clone(),
                    class: class.name.clone(),
                    count,
                    ceiling,
                });
            }
        }
    }
}
