//! The cost of nodes after commitments, by the rule in the documentation of [`crate::problem::Commitment`].

use crate::problem::{Commitment, Problem};

/// Returns the cost of `bought` nodes of each candidate, in micro-dollars, and the use of each commitment.
pub(crate) fn paid(problem: &Problem, bought: &[u64]) -> (u128, Vec<u64>) {
    let price = |candidate: usize| u128::from(problem.candidates[candidate].price.micros());
    let mut total: u128 =
        bought.iter().enumerate().map(|(index, count)| price(index) * u128::from(*count)).sum();
    let mut used = Vec::with_capacity(problem.commitments.len());
    for commitment in &problem.commitments {
        let (saved, use_of) = covered(problem, commitment, bought);
        total -= saved;
        used.push(use_of);
    }
    (total, used)
}

/// Returns the saving by one commitment on `bought` nodes, in micro-dollars, and the use of it.
fn covered(problem: &Problem, commitment: &Commitment, bought: &[u64]) -> (u128, u64) {
    let mut covers: Vec<(u128, u128, u128)> = commitment
        .rates
        .iter()
        .map(|(candidate, rate)| {
            let at = *candidate as usize;
            let price = problem.candidates[at].price.micros();
            (u128::from(price), u128::from(rate.micros()), u128::from(bought[at]))
        })
        .collect();
    // Highest price per rate first; the sort is stable, so equal ones stay in the order of their index.
    covers.sort_by(|(price, rate, _), (other, divided, _)| (other * rate).cmp(&(price * divided)));
    let before = u128::from(commitment.left.micros());
    let (mut left, mut saved) = (before, 0u128);
    for (price, rate, nodes) in covers {
        let whole = nodes.min(left / rate);
        left -= whole * rate;
        saved += whole * price;
        if whole < nodes {
            saved += price - (price * (rate - left)).div_ceil(rate);
            left = 0;
            break;
        }
    }
    (saved, u64::try_from(before - left).unwrap_or(u64::MAX))
}
