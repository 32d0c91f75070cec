//! Dynamic programming: the cheapest way to place every multiset of the pods.

use super::multiset::Multisets;
use crate::canonical::{Model, Pattern};
use crate::meter::Meter;
use crate::plan::Plan;

/// The maximum number of multisets of pods.
const STATES: u64 = 1 << 14;
/// The maximum number of steps (multiset, bin).
const STEPS: u64 = 1 << 22;
/// The multisets that are compared with a bin in one unit of work.
const FITS_PER_UNIT: u64 = 8;
/// The multisets between two looks at the signal.
const ROW: usize = 64;

/// Returns the cheapest plan for `demand` and its cost, which is a lower bound. Returns `None` when the problem is too
/// large, when commitments cover nodes, or when it is undecided whether some pods fit a node: they may be in the cheapest plan.
///
/// The search ignores ceilings on bought nodes and all rows. The cost is a valid bound in any case. The plan is empty if
/// it does not respect them.
pub(crate) fn solve(model: &Model, demand: &[u64], meter: &mut Meter<'_>) -> Option<(Plan, u64)> {
    if !model.commitments.is_empty() {
        // The cost of a node depends on the other nodes.
        return None;
    }
    let sets = Multisets::new(demand, STATES)?;
    let states = sets.states;
    if states as u64 * model.bins.len() as u64 > STEPS {
        return None;
    }
    // The multisets that fit a node, by the first class in them, with the cheapest bin to buy for each.
    let mut contents: Vec<Vec<(usize, u64, u32)>> = vec![Vec::new(); sets.kinds()];
    let mut on_existing: Vec<(u32, Vec<usize>)> = Vec::new();
    let mut buyable: Vec<u32> =
        (0..model.bins.len() as u32).filter(|bin| !model.bins[*bin as usize].is_existing()).collect();
    buyable.sort_by_key(|bin| (model.bins[*bin as usize].price, *bin));
    let mut bought = 0;
    for state in 1..states {
        if meter.tick(1 + buyable.len() as u64 / FITS_PER_UNIT) {
            return None;
        }
        let pods = sets.pods(state);
        let mut best: Option<(u64, u32)> = None;
        for &bin in &buyable {
            if best.is_some_and(|(least, _)| least <= model.bins[bin as usize].price) {
                break;
            }
            let cost = model.bins[bin as usize].cost(&pods);
            if best.is_none_or(|(least, _)| cost < least) && Multisets::fits(model, bin, &pods)? {
                best = Some((cost, bin));
            }
        }
        bought += u64::from(best.is_some());
        contents[sets.lowest(state)].extend(best.map(|(cost, bin)| (state, cost, bin)));
    }
    for (index, bin) in model.bins.iter().enumerate().filter(|(_, bin)| bin.is_existing()) {
        if meter.tick(1 + states as u64 / FITS_PER_UNIT) {
            return None;
        }
        let mut held: Vec<usize> = Vec::new();
        for state in 1..states {
            if Multisets::fits(model, index as u32, &sets.pods(state))? {
                held.push(state);
            }
        }
        for _ in 0..bin.available.min(64) {
            on_existing.push((index as u32, held.clone()));
        }
        if bin.available > 64 {
            return None;
        }
    }
    let steps = on_existing.iter().map(|(_, held)| held.len() as u64).sum::<u64>() + bought;
    if steps * states as u64 > STEPS * 16 {
        return None;
    }

    // First without existing nodes: the node that holds the first pod, then the rest.
    let mut least: Vec<u64> = vec![u64::MAX; states];
    let mut choice: Vec<(usize, u32)> = vec![(0, 0); states];
    least[0] = 0;
    for state in 1..states {
        let kind = &contents[sets.lowest(state)];
        if meter.spend(1 + kind.len() as u64 / 200) {
            return None;
        }
        for (content, price, bin) in kind {
            if *content <= state && sets.within(*content, state) {
                let rest = least[state - content];
                if rest != u64::MAX && rest + price < least[state] {
                    least[state] = rest + price;
                    choice[state] = (*content, *bin);
                }
            }
        }
    }
    // Then each existing node may take some pods first.
    let mut taken: Vec<Vec<usize>> = Vec::new();
    for (_, held) in &on_existing {
        if meter.spend((held.len() * states) as u64 / 200 + 1) {
            return None;
        }
        let before = least.clone();
        let mut takes = vec![0; states];
        for state in 1..states {
            if state.is_multiple_of(ROW) && meter.tick((held.len() * ROW) as u64 / 200) {
                return None;
            }
            for &content in held {
                if content <= state && before[state - content] < least[state] && sets.within(content, state) {
                    least[state] = before[state - content];
                    takes[state] = content;
                }
            }
        }
        taken.push(takes);
    }
    let cost = least[states - 1];
    if cost == u64::MAX {
        return None;
    }
    let mut plan = Plan::default();
    let mut state = states - 1;
    for ((bin, _), takes) in on_existing.iter().zip(&taken).rev() {
        let taken = takes[state];
        if taken > 0 {
            plan.add(Pattern { bin: *bin, pods: sets.pods(taken) }, 1);
            state -= taken;
        }
    }
    while state > 0 {
        let (bought, bin) = choice[state];
        plan.add(Pattern { bin, pods: sets.pods(bought) }, 1);
        state -= bought;
    }
    if !plan.is_payable(model) {
        // The bound holds, but the plan exceeds a ceiling or a row.
        return Some((Plan::default(), cost));
    }
    Some((plan, cost))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NeverStop;
    use crate::stop::StopSignal;
    use crate::testing::{candidate, class, problem, undecided, undecided_on_existing};

    /// A signal that stops when it is asked for the fifth time.
    #[derive(Default)]
    struct Fifth {
        asked: u64,
        spent: u64,
    }

    impl StopSignal for Fifth {
        fn should_stop(&mut self) -> bool {
            self.asked += 1;
            self.asked >= 5
        }

        fn spent(&mut self, units: u64) {
            self.spent += units;
        }
    }

    #[test]
    fn the_cost_of_plans_without_contents_that_are_undecided_is_no_bound() {
        for problem in [undecided(), undecided_on_existing()] {
            let model = Model::new(&problem);
            let mut signal = NeverStop;
            let mut meter = Meter::new(&mut signal, u64::MAX);
            assert_eq!(solve(&model, &model.demand(), &mut meter), None);
        }
    }

    #[test]
    fn multisets_are_not_compared_with_bins_any_further_after_the_signal_says_stop() {
        let all: Vec<u32> = (0..40).collect();
        let classes = (0..12).map(|at| class("class", [1 + at, 13 - at, 0], 1, &all)).collect();
        let node = |at: u64| candidate("node", 10_000 * (at + 3) + at * at, [20 + at, 60 - at, 0]);
        let model = Model::new(&problem(classes, (0..40).map(node).collect()));
        let mut signal = Fifth::default();
        let mut meter = Meter::new(&mut signal, u64::MAX);
        assert!(solve(&model, &model.demand(), &mut meter).is_none());
        assert_eq!((signal.asked, signal.spent), (5, 0), "it stops before the part that spends work");
    }
}
