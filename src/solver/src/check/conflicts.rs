//! Rule: classes in conflict do not share a node. A pair that already runs on a removable node that stays is allowed.
//! A pair with a newly placed pod is not.

use super::view::{count_of, nodes};
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let mut partners: Vec<Vec<u32>> = vec![Vec::new(); problem.classes.len()];
    for (i, j) in &problem.conflicts {
        partners[*i as usize].push(*j);
        partners[*j as usize].push(*i);
    }
    for node in nodes(problem, solution) {
        let conflict = |one: u32, other: u32, violations: &mut Vec<Violation>| {
            let name = |class: u32| problem.classes[class as usize].name.clone();
            violations.push(Violation::Conflict {
                node: node.reference.clone(),
                first: name(one.min(other)),
                second: name(one.max(other)),
            });
        };
        for (class, _) in node.pods {
            for partner in &partners[*class as usize] {
                let new = count_of(node.pods, *partner) > 0;
                // A pair of two new classes appears twice, and is reported once.
                if (new && class < partner) || (!new && count_of(node.staying, *partner) > 0) {
                    conflict(*class, *partner, violations);
                }
            }
        }
    }
}
