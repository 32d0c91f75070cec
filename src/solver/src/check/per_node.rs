//! No node has more pods of a class than the class allows on one node.

use super::{Violation, nodes};
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        for (class, count) in node.pods {
            let class = &problem.classes[*class as usize];
            if let Some(ceiling) = class.max_per_node
                && *count > ceiling
            {
                violations.push(Violation::TooManyPerNode {
                    node: node.reference.clone(),
                    class: class.name.clone(),
                    count: *count,
                    ceiling,
                });
            }
        }
    }
}
