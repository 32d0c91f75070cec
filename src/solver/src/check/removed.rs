//! Rule: the plan removes only removable nodes, places no pod on them, and stays within the disruption budget.

use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let mut evictions = 0u64;
    for index in &solution.removed {
        let node = &problem.existing[*index as usize];
        match &node.removal {
            None => violations.push(Violation::NotRemovable { node: node.name.clone() }),
            Some(removal) => {
                evictions += removal.pods.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
            }
        }
        if solution.on_existing.binary_search_by_key(index, |used| used.node).is_ok() {
            violations.push(Violation::RemovedAndUsed { node: node.name.clone() });
        }
    }
    let mut budget = |what: &'static str, used: u64, budget: Option<u32>| {
        if let Some(budget) = budget
            && used > u64::from(budget)
        {
            violations.push(Violation::OverBudget { what, used, budget });
        }
    };
    budget("evictions", evictions, problem.disruption.evictions);
    budget("removals of nodes", solution.removed.len() as u64, problem.disruption.nodes);
}
