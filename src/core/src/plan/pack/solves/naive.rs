//! Baselines: simpler ways to buy for the pods that the plan buys for. They have the same offerings, prices, limits, commitments and
//! weights, and take the same steps.

use std::collections::{BTreeMap, VecDeque};

use poolwright_catalog::UsdPerHour;
use poolwright_solver::baseline::Simple;
use poolwright_solver::problem::risk;

use crate::model::Pod;
use crate::model::baseline::{Baseline, Baselines};
use crate::model::plan::CommitmentUse;
use crate::plan::pack::solves::Run;
use crate::plan::pack::solves::columns::{Columns, Source, Sources};
use crate::plan::pack::solves::inputs::ExistingNodes;
use crate::plan::pack::solves::tiers::Tiers;
use crate::supply::limits::Limits;

/// The state in which the plan began.
struct Start<'a> {
    queues: Vec<VecDeque<&'a Pod>>,
    limits: Limits,
    commitments: Vec<CommitmentUse>,
}

impl<'a> Run<'_, '_, 'a, '_> {
    /// Computes the baselines for the pods on new nodes with known prices. `limits` are those before the plan.
    pub(crate) fn baselines(&mut self, tiers: &Tiers<'_>, limits: Limits) {
        let mut bought: BTreeMap<usize, usize> = BTreeMap::new();
        for node in self.outcome.new.iter().filter(|node| node.offer.availability.price().is_some()) {
            for (class, count) in &node.content {
                *bought.entry(*class).or_default() += *count as usize;
            }
        }
        if bought.is_empty() {
            return;
        }
        // Any pods of a class stand for those on new nodes, because they are interchangeable.
        let pods = |class: usize| self.inputs.classes.classes[class].pods.iter().copied();
        let queue = |class: usize| pods(class).take(bought.get(&class).copied().unwrap_or(0)).collect();
        let unused = |of: &CommitmentUse| CommitmentUse { used: UsdPerHour::ZERO, ..of.clone() };
        let start = Start {
            queues: (0..self.queues.len()).map(queue).collect(),
            limits,
            commitments: self.outcome.commitments.iter().map(unused).collect(),
        };
        let queues = std::mem::take(&mut self.queues);
        let commitments = std::mem::take(&mut self.outcome.commitments);
        let limits = std::mem::take(self.limits);
        self.outcome.baselines = Baselines {
            one_pod_per_node: self.baseline(tiers, &start, false),
            first_fit: self.baseline(tiers, &start, true),
        };
        (self.queues, self.outcome.commitments, *self.limits) = (queues, commitments, limits);
    }

    /// Computes one baseline from its start: first fit if it `packs`, else one pod per node.
    fn baseline(&mut self, tiers: &Tiers<'_>, start: &Start<'a>, packs: bool) -> Baseline {
        let priced = tiers.candidates;
        self.queues.clone_from(&start.queues);
        self.outcome.commitments.clone_from(&start.commitments);
        *self.limits = start.limits.clone();
        let mut sum = Baseline::default();
        let mut over_time = self.outcome.room_cost;
        let mut mixes = self.inputs.spot_mixes.clone();
        for round in 0..tiers.rounds() {
            let (classes, homes): (Vec<usize>, Vec<Vec<usize>>) = (0..self.queues.len())
                .filter(|class| !self.queues[*class].is_empty())
                .map(|class| (class, tiers.admitted(class, round)))
                .filter(|(_, homes)| !homes.is_empty())
                .unzip();
            let sources: Vec<Sources<'_>> =
                homes.iter().map(|candidates| Sources { horizon: 0, candidates, rooms: &[] }).collect();
            let columns = Columns::new(priced.len(), 0, &sources);
            let mut problem = self.problem(priced, &classes, &columns, &ExistingNodes::default());
            let source = |column: u32| match columns.all[column as usize].source {
                Source::New(candidate) => Some(&priced[candidate]),
                Source::Room(_) => None,
            };
            // The costs of this moment count, not those over time.
            for (column, of) in (0..).zip(&mut problem.candidates) {
                if let Some(candidate) = source(column) {
                    (of.price, of.interruptions) = (candidate.price, candidate.interruptions);
                }
            }
            let simple = if packs { Simple::first_fit(&problem) } else { Simple::one_pod_per_node(&problem) };
            sum.breaks_min_values |= !simple.is_flexible(&problem);
            let (paid, used) = simple.paid(&problem);
            for (of, used) in self.outcome.commitments.iter_mut().zip(used) {
                of.used += used;
            }
            let mut counted = UsdPerHour::ZERO;
            for node in &simple.nodes {
                let Some(candidate) = source(node.candidate) else { continue };
                let supply = self.inputs.supply;
                let pool = supply.pools[candidate.pool].pool;
                if let Some(mix) = mixes.get_mut(&candidate.pool) {
                    mix.add(&supply.offering(candidate.pool, candidate.offer.offering).id, 1);
                }
                let longest = node
                    .pods
                    .iter()
                    .map(|(class, _)| self.inputs.classes.classes[classes[*class as usize]].horizon);
                let longest = longest.max().unwrap_or_default();
                let horizons = self.inputs.horizons;
                let rate = horizons.rate(candidate.interruptions, pool, longest);
                over_time += horizons.of_new(candidate.price, pool, longest);
                let mut pods: Vec<&Pod> = Vec::new();
                for (class, count) in &node.pods {
                    let class = classes[*class as usize];
                    let most = (*count as usize).min(self.queues[class].len());
                    pods.extend(self.queues[class].drain(..most));
                    pods.extend(self.inputs.classes.classes[class].with);
                }
                let loses = self.inputs.losses.together(self.inputs.options, pods);
                sum.risk += risk(loses, candidate.interruptions);
                over_time += risk(loses, rate);
                counted += candidate.price;
                sum.nodes += 1;
                // A raised price counts, and the real one is paid.
                let price = candidate.offer.availability.price().unwrap_or_default();
                sum.cost += price;
                sum.risk += candidate.price.saturating_sub(price);
                self.limits.take(&candidate.uses);
            }
            let covered = counted.saturating_sub(paid);
            sum.cost = sum.cost.saturating_sub(covered);
            over_time = over_time.saturating_sub(covered);
            for (class, left) in classes.iter().zip(&simple.left) {
                self.queues[*class].truncate(*left as usize);
            }
        }
        sum.breaks_spot_rules = self.break_spot_rules(&mixes);
        for (class, pods) in self.inputs.classes.classes.iter().zip(&self.queues) {
            let units = pods.iter().filter(|pod| pod.key.is_buffer()).count();
            sum.units_unplaced += units;
            sum.unplaced += pods.len() - units + pods.len() * class.with.len();
        }
        sum.over_time = self.outcome.is_over_time.then(|| self.inputs.horizons.amount(over_time));
        sum
    }
}
