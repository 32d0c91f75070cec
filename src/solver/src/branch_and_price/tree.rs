//! The branch-and-bound tree, which closes the gap that dives leave.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEEP, Run};
use crate::branch::{Branch, Ranges};
use crate::canonical::{Bin, Pattern, UNLIMITED};
use crate::column_generation::{self, Center, Goal, Relaxed, Task};
use crate::dive;
use crate::exact::{self, Packing};
use crate::greedy;
use crate::meter::Meter;
use crate::open::{self, Open};
use crate::plan::{Plan, Stock};
use crate::pricing::Pricer;
use crate::solution::Proof;

/// The work that follows after a leaf was given up, relative to the work before: one part in this many.
const BEYOND: u64 = 4;
/// Where the optimum is wanted, a leaf that was given up is tried again with this many times the work, up to this many times the work
/// of the first try.
const HARDER: u64 = 8;
const HARDEST: u64 = 64;

/// A node of the tree: the plans whose node counts are in `ranges`.
#[derive(Clone)]
struct Leaf {
    ranges: Ranges,
    /// The bin to branch on, and the number of whole nodes of it beyond the lower bound.
    choice: Option<(u32, u64)>,
    /// Where there is none: the bins with nodes, see [`Branch::whole`].
    whole: Vec<(u32, u64)>,
    columns: Vec<Pattern>,
    center: Center,
    /// The proof of its bound.
    proof: Proof,
    /// The work of [`Run::settle`], as a multiple of that of a first try.
    effort: u64,
}

impl Leaf {
    fn new(ranges: Ranges, branch: &Branch, relaxed: &Relaxed, proof: Proof) -> Self {
        let columns: BTreeSet<Pattern> =
            dive::pool(&branch.model, relaxed, 0.1).iter().map(|pattern| branch.restored(pattern)).collect();
        Self {
            ranges,
            choice: branch.choice(relaxed),
            whole: branch.whole(relaxed),
            columns: columns.into_iter().collect(),
            center: branch.center(relaxed),
            proof,
            effort: 1,
        }
    }

    /// Returns the parts of the leaf by the number of nodes of one bin; `None` where the numbers of all nodes are fixed that the
    /// relaxation buys.
    fn split(&self) -> Option<Vec<Ranges>> {
        let range = |bin: u32| self.ranges.get(&bin).copied().unwrap_or((0, UNLIMITED));
        let parts = |bin: u32, last: u64| {
            let (low, high) = range(bin);
            [(low, last), (last + 1, high)].map(|range| {
                let mut ranges = self.ranges.clone();
                ranges.insert(bin, range);
                ranges
            })
        };
        if let Some((bin, beyond)) = self.choice {
            return Some(parts(bin, range(bin).0 + beyond).to_vec());
        }
        // The relaxation satisfies one of the two parts, but the other part may be closed.
        let (bin, beyond) = *self.whole.iter().find(|(bin, _)| range(*bin).0 < range(*bin).1)?;
        let (low, high) = range(bin);
        let count = low + beyond;
        Some(parts(bin, if count < high { count } else { high - 1 }).to_vec())
    }
}

impl Run<'_> {
    /// Branches on node counts, the branch with the lowest bound first, until the gap is closed.
    pub(super) fn branch(&mut self, root: Relaxed, exchanges: &[(u32, u32)], meter: &mut Meter<'_>) {
        let ranges = Ranges::new();
        let Some(whole) = Branch::new(self.model, &self.demand, &ranges) else { return };
        let mut leaves = BTreeMap::new();
        leaves.insert((self.bound, 0), Leaf::new(ranges, &whole, &root, self.proof));
        let mut made = 0;
        // The lowest bound of a leaf that was given up: the tree proves no more than this.
        let mut floor = u64::MAX;
        // The leaves among these that are tried again with more work.
        let mut hard: BTreeMap<(u64, u64), Leaf> = BTreeMap::new();
        let persists = self.finishes || self.options.gap_target <= 0.0;
        // Beyond them, the search can only find cheaper plans. It goes on for a fraction of the work so far.
        let mut last = u64::MAX;
        loop {
            if leaves.is_empty() || meter.spent() >= last {
                if hard.is_empty() && !leaves.is_empty() {
                    return;
                }
                leaves.append(&mut hard);
                last = u64::MAX;
            }
            let Some((key, leaf)) = leaves.pop_first() else { break };
            let cost = self.best.cost(self.model);
            // Every cheaper plan is in this leaf, in one whose bound is not lower, or in one that was given up.
            let given_up = hard.keys().next().map_or(floor, |(bound, _)| floor.min(*bound));
            if key.0 <= given_up {
                self.raise(key.0.min(cost), leaf.proof);
                self.watch(meter);
            }
            if self.done() || meter.stopped() {
                return;
            }
            if key.0 >= cost {
                if hard.is_empty() {
                    return;
                }
                // No leaf that is left has a cheaper plan, except those to try again.
                leaves.clear();
                continue;
            }
            if given_up < u64::MAX {
                last = last.min(meter.spent() + meter.spent() / BEYOND);
            }
            let Some(parts) = leaf.split().or_else(|| self.settle(&leaf, meter)) else {
                if persists && leaf.effort < HARDEST {
                    hard.insert(key, Leaf { effort: leaf.effort * HARDER, ..leaf });
                } else {
                    floor = floor.min(key.0);
                }
                continue;
            };
            for ranges in parts {
                made += 1;
                let Some(branch) = Branch::new(self.model, &self.demand, &ranges) else { continue };
                let explored = self.explore(&branch, ranges, &leaf, key.0, exchanges, meter);
                if meter.stopped() {
                    return;
                }
                match explored {
                    Some((bound, next)) => _ = leaves.insert((bound, made), next),
                    None => floor = floor.min(key.0),
                }
            }
        }
        // Every branch was infeasible or settled, so no plan is cheaper than the current one, or than what was given up.
        let cost = self.best.cost(self.model);
        let proof = if cost <= floor { Proof::Complete } else { self.proof };
        self.raise(cost.min(floor), proof);
    }

    /// Decides a leaf in which the numbers of all nodes are fixed that its relaxation buys: packs the pods into these nodes. If they
    /// do not fit, every plan there has a further node, and the parts with one that is cheap enough are returned. Returns `None`
    /// if it gave up.
    fn settle(&mut self, leaf: &Leaf, meter: &mut Meter<'_>) -> Option<Vec<Ranges>> {
        // Where choices are open, the demand is not known. A commitment makes further nodes free.
        if self.open || !self.model.commitments.is_empty() {
            return None;
        }
        let Some(branch) = Branch::new(self.model, &self.demand, &leaf.ranges) else {
            return Some(Vec::new());
        };
        let is_there = |(_, bin): &(u32, &Bin)| bin.is_existing() && bin.available > 0;
        let there: Vec<(u32, u64)> =
            (0u32..).zip(&branch.model.bins).filter(is_there).map(|(at, bin)| (at, bin.available)).collect();
        let units = self.packing.saturating_mul(leaf.effort);
        match exact::pack(&branch.model, &self.demand, &there, units, meter) {
            Packing::Unknown => None,
            Packing::Fits(plan) => {
                self.offer(branch.plan(&plan), meter);
                // With penalties, another packing of the same nodes may cost less.
                (self.best.cost(self.model) <= branch.sunk).then(Vec::new)
            }
            Packing::Impossible => {
                let least = self.best.cost(self.model).saturating_sub(branch.sunk);
                let mut ranges = leaf.ranges.clone();
                let mut parts = Vec::new();
                for (at, bin) in (0u32..).zip(&branch.model.bins) {
                    if bin.is_existing() || bin.available == 0 {
                        continue;
                    }
                    let (low, high) = ranges.get(&at).copied().unwrap_or((0, UNLIMITED));
                    if bin.price < least {
                        let mut part = ranges.clone();
                        part.insert(at, (low + 1, high));
                        parts.push(part);
                    }
                    ranges.insert(at, (low, low));
                }
                Some(parts)
            }
        }
    }

    /// Returns the bound of a branch, and the leaf for its own branches; `None` when it was stopped, or when its program failed.
    fn explore(
        &mut self,
        branch: &Branch,
        ranges: Ranges,
        parent: &Leaf,
        known: u64,
        exchanges: &[(u32, u32)],
        meter: &mut Meter<'_>,
    ) -> Option<(u64, Leaf)> {
        let stop = &mut |units| meter.tick(units);
        let mut pricer = Pricer::until(&branch.model, self.options.threads, stop)?;
        let cost = self.best.cost(self.model);
        let stock = Stock::full(&branch.model);
        let mut center = branch.around(&parent.center);
        let mut columns = branch.contents(&parent.columns);
        let mut relaxed = None;
        let taken = open::taken(self.model, &self.best);
        // Moderate prices for pods left out keep the duals stable. If pods are still left out, the second round prices
        // them prohibitively.
        for factor in [4.0, 1_000.0] {
            let missing: Vec<f64> =
                greedy::alone(self.model, &self.demand).iter().map(|price| price * factor).collect();
            let task = Task {
                demand: &self.demand,
                stock: &stock,
                start: columns,
                exchanges,
                center: Some(center),
                seed: self.seed(),
                cutoff: Some((&missing, cost.saturating_sub(branch.sunk))),
                open: self.open.then_some(Open { totals: &self.totals, known: &taken }),
            };
            let goal = Goal { gap: 0.0005, rounds: 40, levels: (0, 4), prove: true };
            let found = column_generation::run(&mut pricer, task, goal, meter)?;
            let settled =
                found.missing < 1e-6 || found.bound.saturating_add(branch.sunk) >= cost || meter.stopped();
            columns = dive::pool(&branch.model, &found, 0.1);
            center = (found.pods.clone(), found.bins.clone(), found.limits.clone());
            relaxed = Some(found);
            if settled {
                break;
            }
        }
        let relaxed = relaxed?;
        let (mut bound, mut proof) = (known, parent.proof);
        if let Some(certificate) = &relaxed.certificate {
            let own = self.proven(&branch.model, certificate).saturating_add(branch.sunk);
            if own >= known {
                (bound, proof) = (own, certificate.proof());
            }
        }
        if bound < cost {
            let style = self.style(0.6, DEEP);
            let demand = self.fixings(&relaxed).swap_remove(0);
            let base = Plan::default();
            if let Some(plan) = dive::dive(&mut pricer, &demand, base, &relaxed, exchanges, style, meter) {
                let mut plan = branch.plan(&plan);
                plan.downgrade(self.model, &mut |units| meter.tick(units));
                self.offer(plan, meter);
            }
        }
        Some((bound, Leaf::new(ranges, branch, &relaxed, proof)))
    }
}
