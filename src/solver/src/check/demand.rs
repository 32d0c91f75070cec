//! Rule: the plan places or leaves out every waiting pod once, and places every pod of a removed node once.

use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let mut placed = vec![0u64; problem.classes.len()];
    let mut unplaced = vec![0u64; problem.classes.len()];
    let mut wanted: Vec<u64> = problem.classes.iter().map(|class| u64::from(class.count)).collect();
    let add = |to: &mut u64, pods: u64| *to = to.saturating_add(pods);
    for group in &solution.new_nodes {
        for (class, count) in &group.pods {
            add(&mut placed[*class as usize], u64::from(*count) * u64::from(group.count));
        }
    }
    for used in &solution.on_existing {
        for (class, count) in &used.pods {
            add(&mut placed[*class as usize], u64::from(*count));
        }
    }
    for left in &solution.unplaced {
        add(&mut unplaced[left.class as usize], u64::from(left.count));
    }
    for node in &solution.removed {
        for (class, count) in
            problem.existing[*node as usize].removal.iter().flat_map(|removal| &removal.pods)
        {
            add(&mut wanted[*class as usize], u64::from(*count));
        }
    }
    for (index, class) in problem.classes.iter().enumerate() {
        let (placed, unplaced, wanted) = (placed[index], unplaced[index], wanted[index]);
        if placed.saturating_add(unplaced) != wanted {
            violations.push(Violation::WrongCount { class: class.name.clone(), wanted, placed, unplaced });
        } else if unplaced > u64::from(class.count) {
            violations.push(Violation::RunningLeftOut {
                class: class.name.clone(),
                unplaced,
                waiting: class.count,
            });
        }
    }
}
