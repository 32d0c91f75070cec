//! Choices in the relaxation. The master mixes options (ways to divide a group), and the prices generate new options as
//! they generate new patterns. Afterwards each choice is fixed to one option, and the rest is a plain demand.

use crate::canonical::Model;
use crate::flow::Split;
use crate::master::Values;
use crate::plan::Plan;
use crate::units::UNITS;

/// A choice and one of its options.
pub(crate) type Choosing = (u32, Split);

/// The demand of a relaxation with open choices.
#[derive(Clone, Copy)]
pub(crate) struct Open<'a> {
    /// The number of pods, by the class that keeps their count.
    pub totals: &'a [u64],
    /// Options to start with, such as those of a plan.
    pub known: &'a [Choosing],
}

/// Returns the choices with pods in `totals` and more than one option.
fn choices<'m>(
    model: &'m Model,
    totals: &'m [u64],
) -> impl Iterator<Item = (u32, &'m crate::choice::Choice)> {
    model.choices.iter().enumerate().map(|(index, choice)| (index as u32, choice)).filter(|(_, choice)| {
        choice.is_open() && choice.parts.iter().any(|part| totals[part.owner as usize] > 0)
    })
}

/// Returns the options that `plan` has taken.
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
    /// Returns which choices need a row.
    pub fn asked(&self, model: &Model) -> Vec<bool> {
        let mut asked = vec![false; model.choices.len()];
        choices(model, self.totals).for_each(|(index, _)| asked[index as usize] = true);
        asked
    }

    /// Returns the demand of the class rows themselves: 0 where an option sets it.
    pub fn plain(&self, model: &Model) -> Vec<u64> {
        let mut plain = self.totals.to_vec();
        for (_, choice) in choices(model, self.totals) {
            for class in choice.cells() {
                plain[class as usize] = 0;
            }
        }
        plain
    }

    /// Returns the cheapest option of each choice at `prices` in micro-dollars.
    pub fn cheapest(&self, model: &Model, prices: &[f64]) -> Vec<Choosing> {
        let units = |price: &f64| (price.max(0.0) * UNITS as f64).min(1e17) as u64;
        let prices: Vec<u64> = prices.iter().map(units).collect();
        let best = choices(model, self.totals).filter_map(|(index, choice)| {
            choice.cheapest(self.totals, &prices, None).map(|(_, split)| (index, split))
        });
        best.collect()
    }

    /// Returns options that would lower the master's objective: the cheapest at the master's own prices and at the
    /// smoothed prices.
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
