//! A bound from prices of resources alone, for solves that stop before the first relaxation. It holds because no node
//! provides more of a resource than its capacity. The bound takes milliseconds for any number of pods. It is loose by the
//! room that nodes must leave unused. If some nodes are free, limits and stock have prices too.

use crate::canonical::{Bin, Model, UNLIMITED};
use crate::dual_bound::{Ceiling, Certificate, LIMIT_ONE, Prices};
use crate::lp::{self, Ask, Seed};
use crate::units::UNITS;

/// The fixed-point bits of the resource prices.
const ONE: u32 = 40;

/// Prices of resources and of what is scarce.
struct Rates {
    /// The price of one unit of each resource in value units, in fixed point.
    resources: Vec<u128>,
    /// As [`Prices::bins`].
    bins: Vec<u64>,
    /// As [`Prices::limits`].
    limits: Vec<u128>,
}

/// Returns a certificate with pod prices derived from their requests, at the resource prices with the best bound for
/// `demand`.
pub(crate) fn certificate(model: &Model, demand: &[u64], seed: Seed) -> Option<Certificate> {
    let by_resources = rates(model, demand, seed, false).map(|rates| certified(model, rates));
    if by_resources.as_ref().is_some_and(|certificate| certificate.bound(model, demand) > 0) {
        return by_resources;
    }
    // If some nodes are free, such as reserved or committed ones, only their scarcity has a price.
    rates(model, demand, seed, true).map(|rates| certified(model, rates)).or(by_resources)
}

fn certified(model: &Model, Rates { resources, bins, limits }: Rates) -> Certificate {
    let worth = |amounts: &[u64]| -> u64 {
        let each = amounts.iter().zip(&resources).map(|(amount, rate)| u128::from(*amount) * rate);
        u64::try_from(each.fold(0, u128::saturating_add) >> ONE).unwrap_or(u64::MAX)
    };
    // The worth of each pod is rounded down, so together pods are worth no more than the room they take.
    let pods = model.classes.iter().map(|class| worth(&class.requests).min(MOST)).collect();
    let mut prices = Prices { pods, bins, limits };
    // If some node has an unlimited resource, the worth of the node is unbounded, so pods get price zero.
    let ceilings: Vec<Ceiling> = (0..model.bins.len())
        .map(|bin| Ceiling { upper: worth(&model.bins[bin].capacity), settled: false })
        .collect();
    if ceilings.iter().any(|ceiling| ceiling.upper == u64::MAX) {
        prices.pods.fill(0);
    }
    Certificate::new(model, &prices, &ceilings)
}

/// The maximum worth of a pod, as for other prices.
const MOST: u64 = 100_000_000_000_000_000;

/// Returns the duals of the linear program that covers the total requests with fractions of nodes, within limits and stock if it
/// `counts_scarcity`.
fn rates(model: &Model, demand: &[u64], seed: Seed, counts_scarcity: bool) -> Option<Rates> {
    let mut wanted = vec![0u128; model.dims];
    for (class, count) in model.classes.iter().zip(demand) {
        for (sum, request) in wanted.iter_mut().zip(&class.requests) {
            *sum += u128::from(*request) * u128::from(*count);
        }
    }
    let rows: Vec<usize> = (0..model.dims).filter(|dim| wanted[*dim] > 0).collect();
    let mut program = lp::new(seed);
    let mut count = 0;
    let mut add = |ask: Ask| {
        program.add_row(ask);
        count += 1;
        count - 1
    };
    for _ in &rows {
        add(Ask::AtLeast(1.0));
    }
    let scarce = |bin: &Bin| counts_scarcity && !bin.is_existing() && bin.available != UNLIMITED;
    let own_row = |bin: &Bin| scarce(bin).then(|| add(Ask::AtMost(bin.available as f64)));
    let bin_rows: Vec<Option<usize>> = model.bins.iter().map(own_row).collect();
    let limit_row = |(limit, bound): (usize, &i128)| {
        let (least, most) = amounts(model, limit)?;
        // Some nodes make room in such a row for others, so it has no price here.
        if least < 0 {
            return None;
        }
        // Some limits count bytes and some nodes.
        let scale = (*bound as f64 / 100.0).max(most as f64 / 1_000.0).max(1e-3);
        Some((add(Ask::AtMost(*bound as f64 / scale)), scale))
    };
    let limits = model.limits.iter().enumerate().filter(|_| counts_scarcity);
    let mut limit_rows: Vec<Option<(usize, f64)>> = limits.map(limit_row).collect();
    limit_rows.resize(model.limits.len(), None);
    let is_counted = |bin: &Bin| !bin.is_existing() && (counts_scarcity || bin.covered.is_none());
    for (bin, own) in model.bins.iter().zip(&bin_rows).filter(|(bin, _)| is_counted(bin)) {
        let share = |dim: usize| bin.capacity[dim] as f64 / wanted[dim] as f64;
        let mut entries: Vec<(usize, f64)> = rows
            .iter()
            .enumerate()
            .map(|(row, dim)| (row, share(*dim)))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        entries.extend(own.map(|row| (row, 1.0)));
        entries.extend(bin.limit_use.iter().filter_map(|(limit, amount)| {
            limit_rows[*limit as usize].map(|(row, scale)| (row, *amount as f64 / scale))
        }));
        if !program.add_column(bin.price as f64, &entries) {
            return None;
        }
    }
    let point = program.solve(&mut |_| true)?;
    let dual = |row: usize| point.duals.get(row).copied().unwrap_or(0.0);
    // `as` saturates, so NaN and infinity cannot pass.
    let mut resources = vec![0u128; model.dims];
    for (row, dim) in rows.iter().enumerate() {
        let rate = dual(row).max(0.0) / wanted[*dim] as f64 * UNITS as f64 * (1u64 << ONE) as f64;
        resources[*dim] = rate.min(1e27) as u128;
    }
    let scarcity = |row: usize| (-dual(row)).max(0.0) * UNITS as f64;
    let of_limit =
        |(row, scale): (usize, f64)| (scarcity(row) / scale * (1u64 << LIMIT_ONE) as f64).min(1e27) as u128;
    Some(Rates {
        resources,
        bins: bin_rows.iter().map(|row| row.map_or(0, |row| scarcity(row).min(1e17) as u64)).collect(),
        limits: limit_rows.iter().map(|row| row.map_or(0, of_limit)).collect(),
    })
}

/// Returns the least and the largest amount that a node uses of a row; `None` if none uses it.
fn amounts(model: &Model, limit: usize) -> Option<(i128, i128)> {
    let all = || {
        let uses = model.bins.iter().flat_map(|bin| &bin.limit_use);
        uses.filter(move |(of, _)| *of as usize == limit).map(|(_, amount)| *amount)
    };
    all().min().zip(all().max())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::problem::{Commitment, Limit};
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
    #[test]
    fn a_node_that_costs_nothing_lowers_the_bound_only_by_what_it_holds() {
        use poolwright_catalog::UsdPerHour;
        let mut stocked = problem(
            vec![class("a", [1000, 1, 0], 40, &[0, 1])],
            vec![candidate("8", 8_000_000, [8000, 64, 0]), candidate("reserved", 0, [8000, 64, 0])],
        );
        let mut limited = stocked.clone();
        stocked.candidates[1].max_nodes = Some(1);
        limited.candidates[1].limit_use = vec![(0, 1)];
        limited.limits = vec![Limit { name: "reserved".into(), bound: 1 }];
        let mut committed = limited.clone();
        committed.classes[0].candidates = vec![0];
        // It pays for one node.
        let paid = UsdPerHour::from_micros(8_000_000);
        committed.commitments = vec![Commitment { name: "plan".into(), left: paid, rates: vec![(0, paid)] }];
        for problem in [stocked, limited, committed] {
            let model = Model::new(&problem);
            let seed = Seed { backend: Backend::default(), number: 0 };
            let demand = model.demand();
            let certificate = certificate(&model, &demand, seed).expect("it can be covered");
            let bound = certificate.bound(&model, &demand);
            assert!((31_999_000..=32_000_000).contains(&bound), "four nodes for 32 pods: {bound}");
        }
    }
}
