//! The memory of a solve for the next solve of a similar problem.
//!
//! It keeps patterns and pod prices by the names of candidates and classes, so that they survive when pods, classes and
//! candidates come and go. Entries that no longer fit are dropped. A wrong memory costs time, never correctness: the next
//! solve tests every pattern again, and proves its bound from the new problem alone.

use std::collections::BTreeMap;

use crate::canonical::{Content, Model, Origin, Pattern};
use crate::column_generation::Relaxed;
use crate::dive;
use crate::greedy;
use crate::plan::{Plan, Stock};
use crate::problem::Problem;

/// Patterns and pod prices from an earlier solve, see [`crate::solve_from`].
#[derive(Clone, Debug, Default)]
pub struct Warm {
    contents: Vec<Kept>,
    prices: BTreeMap<String, f64>,
}

/// One pattern.
#[derive(Clone, Debug)]
struct Kept {
    candidate: String,
    covered: bool,
    pods: Vec<(String, u32)>,
    /// The number of the plan's nodes with this pattern.
    count: u64,
}

/// Patterns are kept whose relative reduced cost is at most this.
const SLACK: f64 = 0.001;

impl Warm {
    /// Stores the patterns and prices of `plan` and the last relaxation. It leaves out pods of choices, whose prices
    /// belong to one division.
    pub(crate) fn of(problem: &Problem, model: &Model, plan: &Plan, relaxed: Option<&Relaxed>) -> Self {
        let class = |index: u32| {
            let class = &model.classes[index as usize];
            let (member, _) = class.members.first().filter(|_| class.choice.is_none())?;
            Some(problem.classes[*member as usize].name.clone())
        };
        let mut counts: BTreeMap<Pattern, u64> = plan.nodes.clone();
        let mut prices = BTreeMap::new();
        if let Some(relaxed) = relaxed {
            for pattern in dive::pool(model, relaxed, SLACK) {
                counts.entry(pattern).or_default();
            }
            prices = (0..model.classes.len())
                .filter_map(|index| Some((class(index as u32)?, relaxed.pods[index])))
                .collect();
        }
        let contents = counts
            .into_iter()
            .filter_map(|(pattern, count)| {
                let bin = &model.bins[pattern.bin as usize];
                let Origin::Candidate(candidate) = bin.origin else { return None };
                Some(Kept {
                    candidate: problem.candidates[candidate as usize].name.clone(),
                    covered: bin.covered.is_some(),
                    pods: pattern
                        .pods
                        .iter()
                        .map(|(index, pods)| Some((class(*index)?, *pods)))
                        .collect::<Option<_>>()?,
                    count,
                })
            })
            .collect();
        Self { contents, prices }
    }

    /// Returns the patterns that this problem's nodes can hold, with their node counts, and the prices of its classes.
    pub(crate) fn recall(&self, problem: &Problem, model: &Model) -> (BTreeMap<Pattern, u64>, Vec<f64>) {
        let mut classes: BTreeMap<&str, u32> = BTreeMap::new();
        for (index, class) in model.classes.iter().enumerate().filter(|(_, class)| class.choice.is_none()) {
            for (member, _) in &class.members {
                classes.insert(&problem.classes[*member as usize].name, index as u32);
            }
        }
        let bins: BTreeMap<(&str, bool), u32> = model
            .bins
            .iter()
            .enumerate()
            .filter_map(|(index, bin)| match bin.origin {
                Origin::Candidate(candidate) => {
                    let name = problem.candidates[candidate as usize].name.as_str();
                    Some(((name, bin.covered.is_some()), index as u32))
                }
                Origin::Existing(_) => None,
            })
            .collect();
        let mut patterns = BTreeMap::new();
        for kept in &self.contents {
            let Some(&bin) = bins.get(&(kept.candidate.as_str(), kept.covered)) else { continue };
            let mut pods: BTreeMap<u32, u32> = BTreeMap::new();
            for (name, count) in &kept.pods {
                // A pattern stays without pods of classes that no longer exist.
                if let Some(&class) = classes.get(name.as_str()) {
                    let slot = pods.entry(class).or_default();
                    *slot = slot.saturating_add(*count);
                }
            }
            let pods: Vec<(u32, u32)> = pods.into_iter().collect();
            if !pods.is_empty() && Content::allows(model, bin, &pods) {
                *patterns.entry(Pattern { bin, pods }).or_default() += kept.count;
            }
        }
        let demand: Vec<u64> = model.classes.iter().map(|class| class.demand).collect();
        let mut prices = greedy::share(model, &demand);
        for (name, class) in classes {
            if let Some(price) = self.prices.get(name) {
                prices[class as usize] = *price;
            }
        }
        (patterns, prices)
    }
}

/// Returns a plan with the remembered nodes, as far as `demand` still fills them, and further nodes for the rest. Leaves out pods when
/// `stop`, which gets units of work, returns true.
pub(crate) fn plan(
    model: &Model,
    demand: &[u64],
    known: &BTreeMap<Pattern, u64>,
    prices: &[f64],
    stop: &mut dyn FnMut(u64) -> bool,
) -> Plan {
    let mut plan = Plan::default();
    let mut left = demand.to_vec();
    let mut stock = Stock::full(model);
    let mut open = |pattern: Pattern, count: u64, left: &mut Vec<u64>| {
        let count = count.min(stock.left(model, pattern.bin));
        for (class, pods) in &pattern.pods {
            left[*class as usize] -= u64::from(*pods) * count;
        }
        stock.take(model, pattern.bin, count);
        plan.add(pattern, count);
        count
    };
    let mut partial = Vec::new();
    for (pattern, count) in known.iter().filter(|(_, count)| **count > 0) {
        let opened = open(pattern.clone(), pattern.copies(&left).min(*count), &mut left);
        if opened < *count {
            partial.push((pattern, *count - opened));
        }
    }
    // A node that lost some of its pods stays if the rest is worth most of its price.
    for (pattern, count) in partial {
        for _ in 0..count {
            let pods: Vec<(u32, u32)> = pattern
                .pods
                .iter()
                .map(|(class, pods)| (*class, u64::from(*pods).min(left[*class as usize]) as u32))
                .filter(|(_, pods)| *pods > 0)
                .collect();
            let worth: f64 =
                pods.iter().map(|(class, pods)| prices[*class as usize] * f64::from(*pods)).sum();
            if pods.is_empty() || worth < 0.9 * model.bins[pattern.bin as usize].price as f64 {
                break;
            }
            open(Pattern { bin: pattern.bin, pods }, 1, &mut left);
        }
    }
    plan.fill(model, &mut left, &greedy::by_value(prices), stop);
    greedy::complete(model, &mut plan, left, prices, stop);
    plan.trim(model, demand);
    plan.downgrade(model, stop);
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::{SearchStage, Stages};
    use crate::testing::{candidate, class, problem};
    use crate::{NeverStop, Options, branch_and_price};

    #[test]
    fn a_solve_that_ends_with_its_first_relaxation_leaves_prices() {
        let problem = problem(
            vec![class("a", [1000, 1, 0], 40, &[0, 1])],
            vec![candidate("8", 8_000_000, [8000, 64, 0]), candidate("4", 5_000_000, [4000, 64, 0])],
        );
        // The exact methods for small problems need no prices.
        let stages = Stages::default().without(SearchStage::SmallExact).without(SearchStage::ExactProgram);
        let options = Options { stages, threads: 1, ..Options::default() };
        let (_, warm) = branch_and_price::solve_from(&problem, &options, &Warm::default(), &mut NeverStop);
        assert_eq!(warm.prices.keys().collect::<Vec<_>>(), ["a"]);
    }
}
