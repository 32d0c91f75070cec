//! Rule: no part of the bought nodes is larger than its node share allows.

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
        let (part, of) = (nodes(&share.part), nodes(&share.of));
        let thousandths = u128::from(share.at_most_permille) * u128::from(of);
        let most = if share.round_up { thousandths.div_ceil(1000) } else { thousandths / 1000 };
        if u128::from(part) > most {
            violations.push(Violation::OverShare {
                share: share.name.clone(),
                part,
                of,
                most: u64::try_from(most).unwrap_or(u64::MAX),
            });
        }
    }
}
