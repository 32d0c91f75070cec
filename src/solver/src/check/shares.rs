//! Rule: no part of the nodes is larger than its node share allows, unless it was so before and the plan adds nothing.

use super::availability;
use super::violation::Violation;
use crate::problem::Problem;
use crate::solution::Solution;

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    if problem.node_shares.is_empty() {
        return;
    }
    let bought = availability::bought(problem, solution);
    let nodes = |candidates: &[u32]| -> u64 {
        candidates.iter().map(|candidate| bought[*candidate as usize]).fold(0, u64::saturating_add)
    };
    for share in &problem.node_shares {
        let running = (u64::from(share.running_part), u64::from(share.running_of));
        let part = nodes(&share.part).saturating_add(running.0);
        let of = nodes(&share.of).saturating_add(running.1);
        // The part beyond its ceiling, in thousandths of a node.
        let beyond = |part: u64, of: u64| {
            1000 * i128::from(part) - i128::from(share.at_most_permille) * i128::from(of)
        };
        let rounding = if share.round_up { 999 } else { 0 };
        let allowed = beyond(running.0, running.1).max(rounding);
        if beyond(part, of) > allowed {
            let most = (i128::from(share.at_most_permille) * i128::from(of) + allowed) / 1000;
            violations.push(Violation::OverShare {
                share: share.name.clone(),
                part,
                of,
                most: u64::try_from(most).unwrap_or(u64::MAX),
            });
        }
    }
}
