//! Choices in the relaxation: the master mixes options, each a way to divide a group, and prices find new ones as they find
//! new contents of nodes. Afterwards an option is fixed for each choice, and what is left is a plain demand.

use std::collections::BTreeMap;

use crate::canonical::Model;
use crate::choice::Split;
use crate::master::Values;
use crate::plan::Plan;
use crate::pricing::UNITS;
use crate::relax::Relaxed;

/// An option of a choice.
pub(crate) type Choosing = (u32, Split);

/// What is asked of a relaxation that still has choices.
#[derive(Clone, Copy)]
pub(crate) struct Open<'a> {
    /// Pods, counted where their count is kept.
    pub totals: &'a [u64],
    /// Options to start with, such as those of a plan.
    pub known: &'a [Choosing],
}

/// Choices among `totals` that have something to choose.
fn choices<'m>(
    model: &'m Model,
    totals: &'m [u64],
) -> impl Iterator<Item = (u32, &'m crate::choice::Choice)> {
    model.choices.iter().enumerate().map(|(index, choice)| (index as u32, choice)).filter(|(_, choice)| {
        choice.is_open() && choice.parts.iter().any(|part| totals[part.owner as usize] > 0)
    })
}

/// The options that `plan` has taken.
pub(crate) fn taken(model: &Model, plan: &Plan) -> Vec<Choosing> {
    let placed = plan.placed(model);
    choices(model, &model.gathered(&placed))
        .map(|(index, choice)| (index, split(choice.cells(), &placed)))
        .collect()
}

fn split(cells: impl Iterator<Item = u32>, placed: &[u64]) -> Split {
    let mut split: Split =
        cells.map(|class| (class, placed[class as usize])).filter(|(_, count)| *count > 0).collect();
    split.sort_unstable();
    split
}

impl Open<'_> {
    /// Which choices need a row.
    pub fn asked(&self, model: &Model) -> Vec<bool> {
        let mut asked = vec![false; model.choices.len()];
        choices(model, self.totals).for_each(|(index, _)| asked[index as usize] = true);
        asked
    }

    /// What the rows of classes ask for by themselves: nothing, where an option says it.
    pub fn plain(&self, model: &Model) -> Vec<u64> {
        let mut plain = self.totals.to_vec();
        for (_, choice) in choices(model, self.totals) {
            for class in choice.cells() {
                plain[class as usize] = 0;
            }
        }
        plain
    }

    /// The cheapest option of each choice at `prices` in micro-dollars.
    pub fn cheapest(&self, model: &Model, prices: &[f64]) -> Vec<Choosing> {
        let units = |price: &f64| (price.max(0.0) * UNITS as f64).min(1e17) as u64;
        let prices: Vec<u64> = prices.iter().map(units).collect();
        let best = choices(model, self.totals).filter_map(|(index, choice)| {
            choice.cheapest(self.totals, &prices, None).map(|(_, split)| (index, split))
        });
        best.collect()
    }

    /// Options that would lower the master's objective: the cheapest at its own prices and at those that are priced with.
    pub fn improving(&self, model: &Model, values: &Values, pods: &[f64]) -> Vec<Choosing> {
        let mut found = self.cheapest(model, &values.pods);
        found.extend(self.cheapest(model, pods));
        found.sort_unstable();
        found.dedup();
        found.retain(|(choice, split)| {
            let cost: f64 =
                split.iter().map(|(class, count)| values.pods[*class as usize] * *count as f64).sum();
            let known = values.choices[*choice as usize];
            cost < known - 0.5 - known * 1e-9
        });
        found
    }
}

/// Other options that are tried after the ones the relaxation likes best.
const SWITCHES: usize = 6;

/// Plain demands to dive for: every choice as the relaxation likes it best, as `best` has it, then with single choices
/// switched to what the relaxation likes next.
pub(crate) fn fixings(model: &Model, totals: &[u64], relaxed: &Relaxed, best: &Plan) -> Vec<Vec<u64>> {
    let mut options: BTreeMap<u32, Vec<(f64, &Split)>> = BTreeMap::new();
    for (choice, split, value) in relaxed.options.iter().filter(|(.., value)| *value > 1e-6) {
        options.entry(*choice).or_default().push((*value, split));
    }
    for list in options.values_mut() {
        list.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    }
    let placed = best.placed(model);
    let put = |demand: &mut [u64], choice: u32, split: &Split| {
        for class in model.choices[choice as usize].cells() {
            demand[class as usize] = 0;
        }
        for (class, count) in split {
            demand[*class as usize] = *count;
        }
    };
    let mut first = placed.clone();
    for (choice, list) in &options {
        put(&mut first, *choice, list[0].1);
    }
    if model.gathered(&first) != totals {
        return vec![placed];
    }
    let mut next: Vec<(f64, u32, &Split)> = options
        .iter()
        .filter_map(|(choice, list)| list.get(1).map(|(value, split)| (*value, *choice, *split)))
        .collect();
    next.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut all = vec![first.clone(), placed];
    for (_, choice, split) in next.into_iter().take(SWITCHES) {
        let mut demand = first.clone();
        put(&mut demand, choice, split);
        all.push(demand);
    }
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for demand in all {
        if !seen.contains(&demand) {
            seen.push(demand);
        }
    }
    seen
}
