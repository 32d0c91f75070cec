//! A bound from prices of resources alone, for solves that stop before the first relaxation. It holds because no node
//! provides more of a resource than its capacity. The bound takes milliseconds for any number of pods. It is loose by the
//! room that nodes must leave unused.

use crate::canonical::{Bin, Model};
use crate::dual_bound::{Ceiling, Certificate, Prices};
use crate::lp::{self, Ask, Seed};
use crate::units::UNITS;

/// The fixed-point bits of the resource prices.
const ONE: u32 = 40;

/// Returns a certificate with pod prices derived from their requests, at the resource prices with the best bound for
/// `demand`.
pub(crate) fn certificate(model: &Model, demand: &[u64], seed: Seed) -> Option<Certificate> {
    let rates = rates(model, demand, seed)?;
    let worth = |amounts: &[u64]| -> u64 {
        let each = amounts.iter().zip(&rates).map(|(amount, rate)| u128::from(*amount) * rate);
        u64::try_from(each.fold(0, u128::saturating_add) >> ONE).unwrap_or(u64::MAX)
    };
    // The worth of each pod is rounded down, so together pods are worth no more than the room they take.
    let mut prices = Prices {
        pods: model.classes.iter().map(|class| worth(&class.requests).min(MOST)).collect(),
        bins: vec![0; model.bins.len()],
        limits: vec![0; model.limits.len()],
    };
    // If some node has an unlimited resource, the worth of the node is unbounded, so pods get price zero.
    let ceilings: Vec<Ceiling> = (0..model.bins.len())
        .map(|bin| Ceiling { upper: worth(&model.bins[bin].capacity), settled: false })
        .collect();
    if ceilings.iter().any(|ceiling| ceiling.upper == u64::MAX) {
        prices.pods.fill(0);
    }
    Some(Certificate::new(model, &prices, &ceilings))
}

/// The maximum worth of a pod, as for other prices.
const MOST: u64 = 100_000_000_000_000_000;

/// Returns the prices of one unit of each resource in value units, in fixed point: the duals of the linear program that
/// covers the total requests with fractions of nodes.
fn rates(model: &Model, demand: &[u64], seed: Seed) -> Option<Vec<u128>> {
    let mut wanted = vec![0u128; model.dims];
    for (class, count) in model.classes.iter().zip(demand) {
        for (sum, request) in wanted.iter_mut().zip(&class.requests) {
            *sum += u128::from(*request) * u128::from(*count);
        }
    }
    let rows: Vec<usize> = (0..model.dims).filter(|dim| wanted[*dim] > 0).collect();
    let mut program = lp::new(seed);
    for _ in &rows {
        program.add_row(Ask::AtLeast(1.0));
    }
    let to_buy = |bin: &&Bin| !bin.is_existing() && bin.covered.is_none();
    for bin in model.bins.iter().filter(to_buy) {
        let share = |dim: usize| bin.capacity[dim] as f64 / wanted[dim] as f64;
        let entries: Vec<(usize, f64)> = rows
            .iter()
            .enumerate()
            .map(|(row, dim)| (row, share(*dim)))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        if !program.add_column(bin.price as f64, &entries) {
            return None;
        }
    }
    let point = program.solve(&mut |_| true)?;
    let mut rates = vec![0u128; model.dims];
    for (dim, dual) in rows.iter().zip(&point.duals) {
        // `as` saturates, so NaN and infinity cannot pass.
        let rate = dual.max(0.0) / wanted[*dim] as f64 * UNITS as f64 * (1u64 << ONE) as f64;
        rates[*dim] = rate.min(1e27) as u128;
    }
    Some(rates)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{candidate, class, problem};
    use crate::{NeverStop, exact, lp::Backend, meter::Meter};

    proptest! {
        #[test]
        fn the_bound_by_resources_is_never_above_the_optimum(
            classes in proptest::collection::vec(([1..=6u64, 0..=6u64, 0..=2u64], 1..=4u32, 1..=7u32), 1..=4),
            candidates in proptest::collection::vec((1..=40u64, [6..=12u64, 6..=12u64, 2..=4u64]), 3),
        ) {
            let classes = classes.into_iter().map(|(requests, count, admitted)| {
                let admitted: Vec<u32> = (0..3).filter(|bit| admitted >> bit & 1 == 1).collect();
                class("class", requests, count, &admitted)
            });
            let candidates = candidates.into_iter().map(|(price, capacity)| candidate("node", price * 10_000, capacity));
            let model = Model::new(&problem(classes.collect(), candidates.collect()));
            let demand = model.demand();
            let seed = Seed { backend: Backend::default(), number: 0 };
            let bound = certificate(&model, &demand, seed).expect("it can be covered").bound(&model, &demand);
            let mut signal = NeverStop;
            let mut meter = Meter::new(&mut signal, u64::MAX);
            if let Some((_, least)) = exact::solve(&model, &demand, &mut meter) {
                prop_assert!(bound <= least, "bound {} above the optimum {}", bound, least);
            }
        }
    }

    #[test]
    fn what_full_nodes_cost_is_the_bound_where_nodes_can_be_full() {
        let model = Model::new(&problem(
            vec![class("a", [1000, 1, 0], 40, &[0, 1])],
            vec![candidate("8", 8_000_000, [8000, 64, 0]), candidate("4", 5_000_000, [4000, 64, 0])],
        ));
        let seed = Seed { backend: Backend::default(), number: 0 };
        let certificate = certificate(&model, &[40], seed).expect("it can be covered");
        assert_eq!(certificate.bound(&model, &[40]), 40_000_000);
    }
}
