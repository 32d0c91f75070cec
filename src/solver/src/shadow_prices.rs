//! The prices behind the bound, in terms of the problem.

use crate::canonical::{Model, Origin, Row};
use crate::dual_bound::{Certificate, LIMIT_ONE};
use crate::problem::Problem;
use crate::solution::ShadowPrices;
use crate::units::UNITS;

/// Value units as whole micro-dollars, rounded half up.
fn micros(units: u64) -> u64 {
    (units + UNITS / 2) / UNITS
}

/// What one more of each thing would change. Classes without pods or without a node that holds them, limits that nobody
/// takes of, and candidates that others stand in for have price 0.
pub(crate) fn prices(problem: &Problem, model: &Model, certificate: &Certificate) -> ShadowPrices {
    let mut classes: Vec<Option<u64>> = vec![None; problem.classes.len()];
    for (index, class) in model.classes.iter().enumerate() {
        let price = micros(certificate.price(index));
        for (member, _) in &class.members {
            let slot = &mut classes[*member as usize];
            *slot = Some(slot.map_or(price, |known| known.min(price)));
        }
    }
    let mut limits = vec![0; problem.limits.len()];
    let mut candidates = vec![0; problem.candidates.len()];
    for (row, price) in model.rows.iter().zip(certificate.rows()) {
        match row {
            Row::Limit(limit) => {
                // Per million units; fixed point and value units come off again.
                let million = price.saturating_mul(1_000_000) >> LIMIT_ONE;
                let units = u64::try_from(million).unwrap_or(u64::MAX - UNITS);
                limits[*limit as usize] = micros(units.min(u64::MAX - UNITS));
            }
            // One more node of it.
            Row::Stock(candidate) => {
                let units = u64::try_from(*price >> LIMIT_ONE).unwrap_or(u64::MAX);
                candidates[*candidate as usize] = micros(units.min(u64::MAX - UNITS));
            }
            Row::Share(_) | Row::Commitment(_) => {}
        }
    }
    for (bin, price) in model.bins.iter().zip(certificate.scarce()) {
        if let Origin::Candidate(candidate) = bin.origin
            && *price > 0
        {
            candidates[candidate as usize] = micros(*price);
        }
    }
    ShadowPrices { classes: classes.into_iter().map(Option::unwrap_or_default).collect(), limits, candidates }
}
