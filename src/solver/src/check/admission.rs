//! Rule: pods are only on nodes that they may use.

use super::view::nodes;
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    for node in nodes(problem, solution) {
        for (class, _) in node.pods {
            let class = &problem.classes[*class as usize];
            let admitted = if node.existing { &class.existing } else { &class.candidates };
            if admitted.binary_search(&node.index).is_err() {
                violations
                    .push(Violation::NotAdmitted { class: class.name.clone(), node: node.reference.clone() });
            }
        }
    }
}
