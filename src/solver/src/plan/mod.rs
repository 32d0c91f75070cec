//! Plans over the canonical problem: nodes with their pods, repairs that never make a plan worse, and the translation to
//! the problem's own classes, candidates and nodes.

mod adjust;
mod gpus;
mod solution;
mod stock;

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;

use crate::canonical::{Model, Origin, Pattern};

pub(crate) use gpus::LaidOut;
pub(crate) use solution::charges;
pub(crate) use stock::Stock;

/// Returns the value and the number of pods left out when `placed` (by class) is placed, by descending priority. Less is
/// better.
pub(crate) fn left_out(model: &Model, placed: &[u64]) -> Vec<(u128, u64)> {
    let mut levels: BTreeMap<Reverse<i32>, (u128, u64)> = BTreeMap::new();
    let placed = model.gathered(placed);
    for ((class, wanted), placed) in model.classes.iter().zip(model.totals()).zip(placed) {
        let missing = wanted.saturating_sub(placed);
        let level = levels.entry(Reverse(class.priority)).or_default();
        level.0 += u128::from(class.value) * u128::from(missing);
        level.1 += missing;
    }
    levels.into_values().collect()
}

/// Nodes with their pods. Pods of the demand that are on no node are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// The number of nodes of each pattern.
    pub nodes: BTreeMap<Pattern, u64>,
}

impl Plan {
    /// Removes `count` nodes, which must exist.
    pub fn remove(&mut self, pattern: &Pattern, count: u64) {
        if let Some(have) = self.nodes.get_mut(pattern) {
            *have -= count;
            if *have == 0 {
                self.nodes.remove(pattern);
            }
        }
    }

    /// Adds `count` nodes.
    pub fn add(&mut self, pattern: Pattern, count: u64) {
        if count > 0 && !pattern.pods.is_empty() {
            *self.nodes.entry(pattern).or_default() += count;
        }
    }

    /// Returns the objective, in micro-dollars per hour: prices and penalties, minus the best coverage of these nodes by
    /// commitments.
    pub fn cost(&self, model: &Model) -> u64 {
        if model.commitments.is_empty() {
            let cost = |(pattern, count): (&Pattern, &u64)| {
                model.bins[pattern.bin as usize].cost(&pattern.pods).saturating_mul(*count)
            };
            return self.nodes.iter().map(cost).fold(0, u64::saturating_add);
        }
        let mut bought: BTreeMap<u32, u64> = BTreeMap::new();
        let mut cost = 0u64;
        for (pattern, count) in &self.nodes {
            let bin = &model.bins[pattern.bin as usize];
            let penalties = bin.cost(&pattern.pods) - bin.price;
            cost = cost.saturating_add(bin.list_price.saturating_add(penalties).saturating_mul(*count));
            if let Origin::Candidate(candidate) = bin.origin {
                *bought.entry(candidate).or_default() += count;
            }
        }
        let saved = |(saving, _): (u64, u64)| saving;
        let savings = model.commitments.iter().map(|covering| saved(covering.saving(&bought)));
        cost.saturating_sub(savings.fold(0, u64::saturating_add))
    }

    /// Returns the placed pods, by class.
    pub fn placed(&self, model: &Model) -> Vec<u64> {
        let mut placed = vec![0; model.classes.len()];
        for (pattern, nodes) in &self.nodes {
            for (class, count) in &pattern.pods {
                placed[*class as usize] += u64::from(*count) * nodes;
            }
        }
        placed
    }

    /// Returns the pods of `demand` that are not placed, by class.
    pub fn missing(&self, model: &Model, demand: &[u64]) -> Vec<u64> {
        self.placed(model).iter().zip(demand).map(|(placed, wanted)| wanted.saturating_sub(*placed)).collect()
    }

    /// Compares the pods left out first ([`left_out`]), then the cost.
    pub fn compare(&self, other: &Self, model: &Model) -> Ordering {
        let missing = |plan: &Self| left_out(model, &plan.placed(model));
        missing(self).cmp(&missing(other)).then_with(|| self.cost(model).cmp(&other.cost(model)))
    }
}
