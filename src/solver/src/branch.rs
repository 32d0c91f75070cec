//! Branching on the number of nodes of one kind. The relaxation buys a fraction of an expensive node, so its bound is far
//! below every integer plan.
//!
//! A branch is a smaller problem of the same form. *At most k nodes* is a ceiling. *At least k nodes* adds k paid nodes:
//! existing nodes whose price is a constant. So each branch has a certificate of [`crate::dual_bound`]. If the branches
//! cover all plans, their lowest bound is a bound.

use std::collections::BTreeMap;

use crate::canonical::{Bin, Model, Origin, Pattern, UNLIMITED};
use crate::column_generation::{Center, Relaxed};
use crate::plan::Plan;

/// The bounds on the number of nodes of some bins: `least` and `most`.
pub(crate) type Ranges = BTreeMap<u32, (u64, u64)>;

/// A problem with restricted node counts.
pub(crate) struct Branch {
    /// The restricted problem. Bins keep their indices; paid nodes follow.
    pub model: Model,
    /// The cost of the paid nodes, in micro-dollars.
    pub sunk: u64,
    /// The original bins of the paid nodes, in the order in which they follow the original bins.
    paid: Vec<u32>,
}

impl Branch {
    /// Builds the branch. Returns `None` when no plan that places `demand` satisfies the restriction.
    pub fn new(model: &Model, demand: &[u64], ranges: &Ranges) -> Option<Self> {
        let mut branch = Self { model: model.clone(), sunk: 0, paid: Vec::new() };
        let mut closed = vec![false; model.bins.len()];
        for (&index, &(least, most)) in ranges {
            let bin = &mut branch.model.bins[index as usize];
            let most = most.min(bin.available);
            if least > most {
                return None;
            }
            let paid = Bin {
                price: 0,
                list_price: 0,
                available: least,
                limit_use: Vec::new(),
                origin: Origin::Existing(Vec::new()),
                ..bin.clone()
            };
            branch.sunk = branch.sunk.checked_add(bin.price.checked_mul(least)?)?;
            bin.available = if most == UNLIMITED { UNLIMITED } else { most - least };
            for (row, amount) in &bin.limit_use {
                branch.model.limits[*row as usize] -= amount.checked_mul(i128::from(least))?;
            }
            if bin.available == 0 {
                bin.holds.clear();
                bin.penalties.clear();
                bin.classes.clear();
                closed[index as usize] = true;
            }
            if least > 0 {
                let position = branch.model.bins.len() as u32;
                for class in &paid.classes {
                    branch.model.classes[*class as usize].bins.push(position);
                }
                branch.model.bins.push(paid);
                branch.paid.push(index);
            }
        }
        if closed.contains(&true) {
            // The nodes that are paid already follow the bins of the problem, and are open.
            for class in &mut branch.model.classes {
                class.bins.retain(|bin| closed.get(*bin as usize).is_none_or(|closed| !closed));
            }
        }
        // Classes that the plan leaves out need no bin.
        let possible = branch
            .model
            .classes
            .iter()
            .zip(demand)
            .all(|(class, count)| *count == 0 || class.choice.is_some() || !class.bins.is_empty());
        let payable = branch.model.limits.iter().enumerate().all(|(row, left)| {
            // An overdrawn row needs nodes that make room in it.
            let gives =
                |bin: &Bin| bin.limit_use.iter().any(|(at, amount)| *at as usize == row && *amount < 0);
            *left >= 0 || branch.model.bins.iter().any(gives)
        });
        (possible && payable).then_some(branch)
    }

    /// Translates patterns of the original problem into patterns of this one.
    pub fn contents(&self, patterns: &[Pattern]) -> Vec<Pattern> {
        let bins = self.model.bins.len() - self.paid.len();
        let mut contents = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            if !self.model.bins[pattern.bin as usize].classes.is_empty() {
                contents.push(pattern.clone());
            }
            if let Some(at) = self.paid.iter().position(|bin| *bin == pattern.bin) {
                contents.push(Pattern { bin: (bins + at) as u32, pods: pattern.pods.clone() });
            }
        }
        contents
    }

    /// Returns the bin of the original problem.
    fn original(&self, bin: u32) -> u32 {
        let bins = self.model.bins.len() - self.paid.len();
        (bin as usize).checked_sub(bins).map_or(bin, |at| self.paid[at])
    }

    /// Translates a pattern into the original problem.
    pub fn restored(&self, pattern: &Pattern) -> Pattern {
        Pattern { bin: self.original(pattern.bin), pods: pattern.pods.clone() }
    }

    /// Translates a plan into the original problem.
    pub fn plan(&self, plan: &Plan) -> Plan {
        let mut restored = Plan::default();
        for (pattern, count) in &plan.nodes {
            restored.add(self.restored(pattern), *count);
        }
        restored
    }

    /// Translates the prices of a relaxation into the original problem.
    pub fn center(&self, relaxed: &Relaxed) -> Center {
        let bins = self.model.bins.len() - self.paid.len();
        (relaxed.pods.clone(), relaxed.bins[..bins].to_vec(), relaxed.limits.clone())
    }

    /// Translates prices into this problem. The scarcity price of paid nodes is unknown, so it starts at the price of
    /// their bin.
    pub fn around(&self, center: &Center) -> Center {
        let mut bins = center.1.clone();
        bins.extend(self.paid.iter().map(|bin| self.model.bins[*bin as usize].price as f64));
        (center.0.clone(), bins, center.2.clone())
    }

    /// Returns the bins to buy that have paid nodes, or of which the relaxation buys some, with the number of nodes beyond the paid
    /// ones. Meaningful where [`Self::choice`] is `None`.
    pub fn whole(&self, relaxed: &Relaxed) -> Vec<(u32, u64)> {
        let paid = self.paid.iter().map(|bin| (*bin, 0.0));
        let bought: BTreeMap<u32, f64> = paid.chain(self.bought(relaxed)).collect();
        bought
            .into_iter()
            .filter(|(bin, value)| *value > 0.5 || self.paid.contains(bin))
            .map(|(bin, value)| (bin, value.round() as u64))
            .collect()
    }

    /// Returns the number of nodes that the relaxation buys of each bin beyond the paid ones, where a branch can restrict it.
    fn bought(&self, relaxed: &Relaxed) -> BTreeMap<u32, f64> {
        let mut bought: BTreeMap<u32, f64> = BTreeMap::new();
        for (pattern, value) in &relaxed.columns {
            let bin = &self.model.bins[pattern.bin as usize];
            // A node covered in part is a fractional mixture of a bin and its twin. A branch on either would exclude it.
            let mixed = bin.covered.is_some() || self.model.commitments.iter().any(|one| one.covers(bin));
            if !bin.is_existing() && !mixed {
                *bought.entry(pattern.bin).or_default() += value;
            }
        }
        bought
    }

    /// Returns the bin to branch on, and the number of whole nodes that the relaxation buys of it beyond the paid ones;
    /// `None` when all counts are whole.
    pub fn choice(&self, relaxed: &Relaxed) -> Option<(u32, u64)> {
        let mut best: Option<(f64, u32, u64)> = None;
        for (bin, value) in self.bought(relaxed) {
            let part = value - value.floor();
            let score = self.model.bins[bin as usize].price as f64 * part.min(1.0 - part);
            if part.min(1.0 - part) > 1e-4 && best.is_none_or(|(most, ..)| score > most) {
                best = Some((score, bin, value.floor() as u64));
            }
        }
        best.map(|(_, bin, whole)| (bin, whole))
    }
}
