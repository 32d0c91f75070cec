//! Rule: the cost is the price of the bought nodes minus the part covered by commitments, plus the price of the removable
//! nodes that stay. The bound is not above the objective.

use poolwright_catalog::UsdPerHour;

use super::violation::Violation;
use super::{availability, commitments};
use crate::problem::Problem;
use crate::solution::Solution;

/// Converts to money, capped at its largest amount.
pub(super) fn usd(micros: u128) -> UsdPerHour {
    UsdPerHour::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

pub(super) fn check(problem: &Problem, solution: &Solution, violations: &mut Vec<Violation>) {
    let (paid, used) = commitments::paid(problem, &availability::bought(problem, solution));
    let staying: u128 = problem
        .existing
        .iter()
        .enumerate()
        .filter(|(index, _)| solution.removed.binary_search(&(*index as u32)).is_err())
        .filter_map(|(_, node)| node.removal.as_ref())
        .map(|removal| u128::from(removal.price.micros()))
        .sum();
    let sum = usd(paid + staying);
    if sum != solution.cost {
        violations.push(Violation::WrongCost { said: solution.cost, sum });
    }
    for ((commitment, used), said) in problem.commitments.iter().zip(used).zip(&solution.commitment_use) {
        let used = UsdPerHour::from_micros(used);
        if used != *said {
            let commitment = commitment.name.clone();
            violations.push(Violation::WrongCommitmentUse { commitment, said: *said, used });
        }
    }
    let charges = solution.charges;
    let parts = [solution.cost, charges.risk, charges.preferences, charges.disruption];
    let objective = usd(parts.iter().map(|part| u128::from(part.micros())).sum());
    if solution.bound > objective {
        violations.push(Violation::BoundAboveCost { bound: solution.bound, cost: objective });
    }
}
