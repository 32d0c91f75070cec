//! Every pod is placed once or left out once.

use super::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let mut placed = vec![0u64; problem.classes.len()];
    let mut unplaced = vec![0u64; problem.classes.len()];
    for group in &solution.new_nodes {
        for (class, count) in &group.pods {
            placed[*class as usize] += u64::from(*count) * u64::from(group.count);
        }
    }
    for used in &solution.on_existing {
        for (class, count) in &used.pods {
            placed[*class as usize] += u64::from(*count);
        }
    }
    for left in &solution.unplaced {
        unplaced[left.class as usize] += u64::from(left.count);
    }
    for ((class, placed), unplaced) in problem.classes.iter().zip(placed).zip(unplaced) {
        if placed + unplaced != u64::from(class.count) {
            violations.push(Violation::WrongCount {
                class: class.name.clone(),
                wanted: class.count,
                placed,
                unplaced,
            });
        }
    }
}
