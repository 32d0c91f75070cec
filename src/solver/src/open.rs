//! Choices in the relaxation. The master mixes options, the ways to divide a group, and prices find new options as
//! they find new contents of nodes. Afterwards each choice gets one fixed option, and the rest is a plain demand.

use crate::canonical::Model;
use crate::flow::Split;
use crate::master::Values;
use crate::plan::Plan;
use crate::units::UNITS;

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
