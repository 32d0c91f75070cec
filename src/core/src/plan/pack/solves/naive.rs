//! Baselines: the cost of naive planning for the same pods.

use std::collections::{BTreeMap, VecDeque};

use poolwright_catalog::UsdPerHour;
use poolwright_solver as solver;

use crate::model::plan::Baselines;
use crate::plan::pack::solves::Run;
use crate::plan::pack::solves::candidates::NodeCandidate;
use crate::plan::pack::solves::columns::{Columns, Sources};

impl Run<'_, '_, '_, '_> {
    /// Returns the candidates for naive planning of a class. Prepaid, limited and interruptible offerings are left out, unless
    /// there are no others.
    fn naively(&self, priced: &[NodeCandidate], class: usize) -> Vec<usize> {
        let plain = |at: &&usize| {
            let candidate = &priced[**at];
            let scarce = |(limit, _): &(u32, u64)| self.limits.is_stock(*limit);
            candidate.price > UsdPerHour::ZERO
                && candidate.interruptions == 0
                && !candidate.is_reclaimed
                && !candidate.uses.iter().any(scarce)
        };
        let all = &self.used[class];
        let plain: Vec<usize> = all.iter().filter(plain).copied().collect();
        if plain.is_empty() { all.iter().copied().collect() } else { plain }
    }

    /// Computes the cost of naive planning for the pods on new nodes with known prices.
    pub(crate) fn baselines(&mut self, priced: &[NodeCandidate]) {
        if !self.inputs.options.baselines || self.outcome.new.is_empty() {
            return;
        }
        let mut bought: BTreeMap<usize, u32> = BTreeMap::new();
        for node in self.outcome.new.iter().filter(|node| node.offer.availability.price().is_some()) {
            for (class, count) in &node.content {
                *bought.entry(*class).or_default() += count;
            }
        }
        let classes: Vec<usize> = bought.keys().copied().collect();
        let homes: Vec<Vec<usize>> = classes.iter().map(|class| self.naively(priced, *class)).collect();
        let sources: Vec<Sources<'_>> =
            homes.iter().map(|candidates| Sources { horizon: 0, candidates, rooms: &[] }).collect();
        let columns = Columns::new(priced.len(), 0, &sources);
        // The queues hold unplaced pods, but this problem is about placed pods.
        let left = std::mem::take(&mut self.queues);
        self.queues = vec![VecDeque::new(); left.len()];
        for (class, count) in &bought {
            self.queues[*class] =
                self.inputs.classes.classes[*class].pods.iter().copied().take(*count as usize).collect();
        }
        let mut problem = self.problem(priced, &classes, &columns, None);
        self.queues = left;
        problem.existing.clear();
        problem.commitments.clear();
        self.outcome.baselines = Baselines {
            one_pod_per_node: solver::baseline::one_pod_per_node(&problem),
            first_fit: solver::baseline::first_fit(&problem),
        };
    }
}
