//! The branch-and-bound tree, which closes the gap that dives leave.

use std::collections::{BTreeMap, BTreeSet};

use super::{DEEP, Run};
use crate::branch::{Branch, Ranges};
use crate::canonical::{Pattern, UNLIMITED};
use crate::column_generation::{self, Center, Goal, Relaxed, Task};
use crate::dive;
use crate::greedy;
use crate::meter::Meter;
use crate::open::{self, Open};
use crate::plan::{Plan, Stock};
use crate::pricing::Pricer;
use crate::solution::Proof;

/// A node of the tree: the plans whose node counts are in `ranges`.
#[derive(Clone)]
struct Leaf {
    ranges: Ranges,
    /// The bin to branch on, and the number of whole nodes of it beyond the lower bound.
    choice: Option<(u32, u64)>,
    columns: Vec<Pattern>,
    center: Center,
    /// The proof of its bound.
    proof: Proof,
}

impl Leaf {
    fn new(ranges: Ranges, branch: &Branch, relaxed: &Relaxed, proof: Proof) -> Self {
        let columns: BTreeSet<Pattern> =
            dive::pool(&branch.model, relaxed, 0.1).iter().map(|pattern| branch.restored(pattern)).collect();
        Self {
            ranges,
            choice: branch.choice(relaxed),
            columns: columns.into_iter().collect(),
            center: branch.center(relaxed),
            proof,
        }
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
        while let Some((key, leaf)) = leaves.pop_first() {
            // Every plan is in this leaf or in one whose bound is not lower.
            self.raise(key.0, leaf.proof);
            let Some((bin, least)) = leaf.choice else { return };
            if self.done() || meter.stopped() {
                return;
            }
            let (low, high) = leaf.ranges.get(&bin).copied().unwrap_or((0, UNLIMITED));
            for range in [(low, low + least), (low + least + 1, high)] {
                let mut ranges = leaf.ranges.clone();
                ranges.insert(bin, range);
                made += 1;
                let Some(branch) = Branch::new(self.model, &self.demand, &ranges) else { continue };
                let (bound, next) = self.explore(&branch, ranges, &leaf, key.0, exchanges, meter);
                if meter.stopped() {
                    return;
                }
                leaves.insert((bound, made), next);
            }
        }
        // Every branch was infeasible, so no plan is cheaper than the current one.
        self.raise(self.best.cost(self.model), Proof::Complete);
    }

    /// Returns the bound of a branch, and the leaf for its own branches.
    fn explore(
        &mut self,
        branch: &Branch,
        ranges: Ranges,
        parent: &Leaf,
        known: u64,
        exchanges: &[(u32, u32)],
        meter: &mut Meter<'_>,
    ) -> (u64, Leaf) {
        let stop = &mut |units| meter.tick(units);
        let Some(mut pricer) = Pricer::until(&branch.model, self.options.threads, stop) else {
            return (known, Leaf { choice: None, ..parent.clone() });
        };
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
            let Some(found) = column_generation::run(&mut pricer, task, goal, meter) else {
                return (known, Leaf { choice: None, ..parent.clone() });
            };
            let settled =
                found.missing < 1e-6 || found.bound.saturating_add(branch.sunk) >= cost || meter.stopped();
            columns = dive::pool(&branch.model, &found, 0.1);
            center = (found.pods.clone(), found.bins.clone(), found.limits.clone());
            relaxed = Some(found);
            if settled {
                break;
            }
        }
        let Some(relaxed) = relaxed else { return (known, parent.clone()) };
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
        (bound, Leaf::new(ranges, branch, &relaxed, proof))
    }
}
