//! Indices exist, lists ascend strictly, nothing is empty.

use super::Violation;
use crate::problem::Problem;
use crate::solution::{Placement, Solution};

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let classes = problem.classes.len();
    let pods = |list: &'static str, position: usize, pods: &[Placement], violations: &mut Vec<Violation>| {
        if pods.is_empty() || pods.iter().any(|(_, count)| *count == 0) {
            violations.push(Violation::Empty { list, position });
        }
        if pods.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            violations.push(Violation::OutOfOrder { list, position });
        }
        for (class, _) in pods {
            if *class as usize >= classes {
                violations.push(Violation::UnknownIndex { list, position, what: "class", index: *class });
            }
        }
    };
    for (position, group) in solution.new_nodes.iter().enumerate() {
        let list = "newNodes";
        if group.candidate as usize >= problem.candidates.len() {
            let index = group.candidate;
            violations.push(Violation::UnknownIndex { list, position, what: "candidate", index });
        }
        if group.count == 0 {
            violations.push(Violation::Empty { list, position });
        }
        if position > 0 {
            let before = &solution.new_nodes[position - 1];
            if (before.candidate, &before.pods) >= (group.candidate, &group.pods) {
                violations.push(Violation::OutOfOrder { list, position });
            }
        }
        pods(list, position, &group.pods, violations);
    }
    for (position, used) in solution.on_existing.iter().enumerate() {
        let list = "onExisting";
        if used.node as usize >= problem.existing.len() {
            violations.push(Violation::UnknownIndex {
                list,
                position,
                what: "existing node",
                index: used.node,
            });
        }
        if position > 0 && solution.on_existing[position - 1].node >= used.node {
            violations.push(Violation::OutOfOrder { list, position });
        }
        pods(list, position, &used.pods, violations);
    }
    for (position, left) in solution.unplaced.iter().enumerate() {
        let list = "unplaced";
        if left.class as usize >= classes {
            violations.push(Violation::UnknownIndex { list, position, what: "class", index: left.class });
        }
        if left.count == 0 {
            violations.push(Violation::Empty { list, position });
        }
        if position > 0 && solution.unplaced[position - 1] >= *left {
            violations.push(Violation::OutOfOrder { list, position });
        }
    }
}
