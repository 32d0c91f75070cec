//! Baselines: simpler ways to buy for the pods that the plan buys for. They have the same offerings, prices, limits, commitments and
//! weights, and take the same steps.

use std::collections::{BTreeMap, VecDeque};

use poolwright_catalog::UsdPerHour;
use poolwright_solver::baseline::Simple;
use poolwright_solver::problem::risk;

use crate::model::Pod;
use crate::model::baseline::{Baseline, Baselines};
use crate::model::plan::CommitmentUse;
use crate::plan::pack::solves::columns::{Column, Columns, Source, Sources};
use crate::plan::pack::solves::further::Sizes;
use crate::plan::pack::solves::inputs::ExistingNodes;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::{Tiers, WayNode};
use crate::supply::limits::Limits;

/// A simpler way to buy.
pub(crate) struct Way {
    pub baseline: Baseline,
    /// The pods that each round serves, by class.
    pub served: Vec<Vec<usize>>,
    /// The nodes that each round buys.
    pub nodes: Vec<Vec<WayNode>>,
}

/// The state in which the plan began.
struct Start<'a> {
    queues: Vec<VecDeque<&'a Pod>>,
    limits: Limits,
    commitments: Vec<CommitmentUse>,
}

impl<'a> Run<'_, '_, 'a, '_> {
    /// Computes the baselines for the pods on new nodes with known prices. `limits` are those before the plan.
    pub(crate) fn baselines(&mut self, tiers: &Tiers<'_>, limits: Limits) {
        if let Some([alone, first_fit]) = self.ways(tiers, limits) {
            self.outcome.baselines =
                Baselines { one_pod_per_node: alone.baseline, first_fit: first_fit.baseline };
        }
    }

    /// Returns one pod per node, and first fit, for the pods on new nodes with known prices; `None` if there are no such pods. `limits`
    /// are those before the plan.
    pub(crate) fn ways(&mut self, tiers: &Tiers<'_>, mut limits: Limits) -> Option<[Way; 2]> {
        let mut bought: BTreeMap<usize, usize> = BTreeMap::new();
        for node in &self.outcome.new {
            if node.offer.availability.price().is_none() {
                // The plan has this node beside any other way, too.
                limits.take(&node.uses);
                continue;
            }
            for (class, count) in &node.content {
                *bought.entry(*class).or_default() += *count as usize;
            }
        }
        if bought.is_empty() {
            return None;
        }
        let in_rooms = self.in_rooms();
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
        let mut ways = [false, true].map(|packs| self.way(tiers, &start, packs));
        (self.queues, self.outcome.commitments, *self.limits) = (queues, commitments, limits);
        for way in &mut ways {
            (way.baseline.serves_later, way.baseline.defers_priorities) =
                self.serves_later(&in_rooms, &way.served);
        }
        Some(ways)
    }

    /// Returns the number of pods that the plan places on existing nodes, by class.
    pub(crate) fn in_rooms(&self) -> Vec<usize> {
        let classes = self.inputs.classes.classes.iter().zip(&self.queues);
        let mut pods: Vec<usize> = classes.map(|(class, left)| class.pods.len() - left.len()).collect();
        for (class, count) in self.outcome.new.iter().flat_map(|node| &node.content) {
            pods[*class] = pods[*class].saturating_sub(*count as usize);
        }
        pods
    }

    /// Returns whether the first round in which another way serves other numbers of pods than the plan serves fewer, if the highest
    /// priority with such a round decides; and whether that holds although it does not for the pods of all priorities together.
    fn serves_later(&self, in_rooms: &[usize], served: &[Vec<usize>]) -> (bool, bool) {
        let mut served = served.to_vec();
        if let Some(first) = served.first_mut() {
            for (pods, more) in first.iter_mut().zip(in_rooms) {
                *pods += more;
            }
        }
        let is_later = self.by_priority(&served) < self.by_priority(&self.served);
        let in_all =
            |served: &[Vec<usize>]| -> Vec<usize> { served.iter().map(|round| round.iter().sum()).collect() };
        (is_later, is_later && in_all(&served) >= in_all(&self.served))
    }

    /// Computes one way from its start: first fit if it `packs`, else one pod per node.
    fn way(&mut self, tiers: &Tiers<'_>, start: &Start<'a>, packs: bool) -> Way {
        let priced = tiers.candidates;
        self.queues.clone_from(&start.queues);
        self.outcome.commitments.clone_from(&start.commitments);
        *self.limits = start.limits.clone();
        let mut sum = Baseline::default();
        let mut over_time = self.outcome.room_cost;
        let mut mixes = self.inputs.spot_mixes.clone();
        let sizes = Sizes::new(self.inputs.classes);
        let mut served = Vec::with_capacity(tiers.rounds());
        let mut bought = Vec::with_capacity(tiers.rounds());
        for round in 0..tiers.rounds() {
            let before: Vec<usize> = self.queues.iter().map(VecDeque::len).collect();
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
                Source::New(candidate) => Some(candidate),
                Source::Room(_) => None,
            };
            // The costs of this moment count, not those over time.
            for class in &mut problem.classes {
                class.preferences.clear();
            }
            for (column, of) in (0..).zip(&mut problem.candidates) {
                if let Some(candidate) = source(column).map(|at| &priced[at]) {
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
            let mut nodes = Vec::with_capacity(simple.nodes.len());
            for node in &simple.nodes {
                let Some(at) = source(node.candidate) else { continue };
                let candidate = &priced[at];
                let own = |(class, count): &(u32, u32)| (classes[*class as usize], *count);
                nodes.push(WayNode { candidate: at, pods: node.pods.iter().map(own).collect() });
                let supply = self.inputs.supply;
                let pool = supply.pools[candidate.pool].pool;
                if let Some(mix) = mixes.get_mut(&candidate.pool) {
                    mix.add(&supply.offering(candidate.pool, candidate.offer.offering).id, 1);
                }
                let group = |class: u32| self.inputs.classes.classes[classes[class as usize]].horizon;
                let longest = node.pods.iter().map(|(class, _)| group(*class)).max().unwrap_or_default();
                let together = node.pods.iter().filter(|(class, _)| group(*class) == longest);
                let together: u64 = together.map(|(_, count)| u64::from(*count)).sum();
                let horizons = self.inputs.horizons;
                let rate = horizons.rate(candidate.interruptions, pool, longest);
                over_time += horizons.of_new(candidate.price, pool, longest);
                let column = Column { source: Source::New(at), horizon: longest };
                over_time += self.of_further(&sizes, priced, column).times(together.saturating_sub(1));
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
            bought.push(nodes);
            served.push(before.iter().zip(&self.queues).map(|(before, left)| before - left.len()).collect());
        }
        sum.breaks_spot_rules = self.break_spot_rules(&mixes);
        for (class, pods) in self.inputs.classes.classes.iter().zip(&self.queues) {
            let units = pods.iter().filter(|pod| pod.key.is_buffer()).count();
            sum.units_unplaced += units;
            sum.unplaced += pods.len() - units + pods.len() * class.with.len();
        }
        sum.over_time = self.outcome.is_over_time.then(|| self.inputs.horizons.amount(over_time));
        Way { baseline: sum, served, nodes: bought }
    }
}
