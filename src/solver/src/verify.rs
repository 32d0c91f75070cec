//! Verification of the best prices. Bins whose search was cut off with a loose upper bound are searched once more, as
//! hard as the budget allows. This can only raise the lower bound. If no bin stays loose, the pricing behind the bound is
//! complete.

use crate::column_generation::EFFORTS;
use crate::dual_bound::{Ceiling, Certificate};
use crate::meter::Meter;
use crate::pricing::{NOT_ASKED, Pricer};

/// The number of bins that are searched before the budget is checked again.
const CHUNK: usize = 16;
/// The number of times that loose bins are searched again, harder.
const PASSES: usize = 3;

/// Tightens the loose upper bounds of `certificate`, until about `budget` units are spent or the meter stops. Returns
/// `None` if nothing improved. `demand` is the demand that pricing used.
pub(crate) fn verify(
    pricer: &mut Pricer<'_>,
    certificate: &Certificate,
    demand: &[u64],
    budget: u64,
    meter: &mut Meter<'_>,
) -> Option<Certificate> {
    let model = pricer.model();
    let prices = certificate.given();
    let mut ceilings = certificate.ceilings().to_vec();
    let charges: Vec<u64> = (0..ceilings.len()).map(|bin| prices.charge(model, bin)).collect();
    let mut tried = vec![0; ceilings.len()];
    let mut spent = 0;
    let mut better = false;
    // Each settled bin leaves more of the budget to the others.
    for _ in 0..PASSES {
        let mut loose: Vec<usize> = (0..ceilings.len()).filter(|bin| !ceilings[*bin].settled).collect();
        // The bins furthest above their charge hold the bound down most.
        let excess = |bin: usize| ceilings[bin].upper as f64 / charges[bin].max(1) as f64;
        loose.sort_by(|a, b| excess(*b).total_cmp(&excess(*a)).then(a.cmp(b)));
        for chunk in loose.chunks(CHUNK) {
            let each = budget.saturating_sub(spent) / chunk.len() as u64;
            let level =
                EFFORTS.iter().rposition(|effort| effort.units() <= each).map_or(0, |level| level + 1);
            let chunk: Vec<usize> = chunk.iter().copied().filter(|bin| tried[*bin] < level).collect();
            let mut tasks = vec![(NOT_ASKED, EFFORTS[level.saturating_sub(1)]); ceilings.len()];
            for &bin in &chunk {
                tasks[bin].0 = charges[bin];
                tried[bin] = level;
            }
            if chunk.is_empty() {
                continue;
            }
            if meter.stopped() {
                break;
            }
            let all = pricer.price_all(&prices.pods, demand, &tasks, meter);
            let work = all.iter().map(|priced| priced.work).sum();
            for bin in chunk {
                let again = Ceiling::new(all[bin].upper, charges[bin], all[bin].known());
                // A search that was stopped may have proven less than is known.
                let known = ceilings[bin];
                if again.upper < known.upper || again.upper == known.upper && again.settled {
                    ceilings[bin] = again;
                    better = true;
                }
            }
            spent += work;
            meter.spend(work);
        }
    }
    better.then(|| Certificate::new(model, prices, &ceilings))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::canonical::Model;
    use crate::dual_bound::Prices;
    use crate::knapsack::Effort;
    use crate::testing::{candidate, class, problem};
    use crate::{NeverStop, exact};

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_a_cut_search_left_open_is_closed_and_the_bound_does_not_fall(
            kinds in proptest::collection::vec(([1..30u64, 1..30u64, 0..5u64], 1..4u32, 1..900_000u64), 5..9),
            prices in [300_000..2_000_000u64, 300_000..2_000_000u64],
        ) {
            let classes = kinds.iter().map(|(requests, count, _)| class("class", *requests, *count, &[0, 1])).collect();
            let model = Model::new(&problem(
                classes,
                vec![candidate("small", prices[0], [31, 37, 6]), candidate("large", prices[1], [63, 61, 9])],
            ));
            prop_assume!(!model.classes.is_empty());
            let demand = model.demand();
            let pods: Vec<f64> = model.classes.iter().map(|class| kinds[class.members[0].0 as usize].2 as f64).collect();
            let given = Prices::new(&model, &pods, &vec![0.0; model.bins.len()], &[]);
            let mut signal = NeverStop;
            let mut meter = Meter::new(&mut signal, u64::MAX);
            let mut pricer = Pricer::new(&model, 1);
            let charges: Vec<u64> = (0..model.bins.len()).map(|bin| given.charge(&model, bin)).collect();
            let tasks: Vec<(u64, Effort)> = charges.iter().map(|charge| (*charge, Effort { bits: 4, nodes: 1 })).collect();
            let all = pricer.price_all(&given.pods, &demand, &tasks, &mut meter);
            let cut: Vec<Ceiling> =
                all.iter().zip(&charges).map(|(priced, charge)| Ceiling::new(priced.upper, *charge, priced.known())).collect();
            let cut = Certificate::new(&model, &given, &cut);
            let whole = verify(&mut pricer, &cut, &demand, u64::MAX, &mut meter);
            prop_assert!(whole.is_some() || cut.is_complete());
            let whole = whole.unwrap_or_else(|| cut.clone());
            prop_assert!(whole.is_complete());
            prop_assert!(whole.bound(&model, &demand) >= cut.bound(&model, &demand));
            if let Some((_, least)) = exact::solve(&model, &demand, &mut meter) {
                prop_assert!(whole.bound(&model, &demand) <= least);
            }
            // Without work to spend, nothing changes.
            prop_assert!(verify(&mut pricer, &cut, &demand, 0, &mut meter).is_none());
        }
    }
}
