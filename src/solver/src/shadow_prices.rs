//! The prices behind the bound, in terms of the problem.

use crate::canonical::{Model, Origin, Row};
use crate::dual_bound::{Certificate, LIMIT_ONE};
use crate::problem::Problem;
use crate::solution::ShadowPrices;
use crate::units::UNITS;

/// Rounds value units to whole micro-dollars, half up.
fn micros(units: u64) -> u64 {
    (units + UNITS / 2) / UNITS
}

/// Returns the shadow prices of classes, limits and candidates. The price is 0 for classes without pods or without a node
/// that holds them, for limits that no candidate uses, and for dominated candidates.
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
                // Per million units; without the fixed point and the value units.
                let million = price.saturating_mul(1_000_000) >> LIMIT_ONE;
                let units = u64::try_from(million).unwrap_or(u64::MAX - UNITS);
                limits[*limit as usize] = micros(units.min(u64::MAX - UNITS));
            }
            // Per node.
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
