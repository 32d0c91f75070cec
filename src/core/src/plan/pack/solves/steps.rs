//! Plans in steps that cost more than a simpler way to buy, although this serves as many pods in each step.
//!
//! Each step of such a plan costs least, but other pods in the first steps would save more later. So the pods that the simpler way serves
//! in each step are served there, as cheaply as the solver can.

use std::collections::VecDeque;

use crate::model::Pod;
use crate::plan::pack::solves::naive::Way;
use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;
use crate::supply::limits::Limits;

/// With more pods on new nodes, the comparison would take too long.
const MOST_PODS: usize = 20_000;

impl Run<'_, '_, '_, '_> {
    /// Returns, for each simpler way that keeps all rules and costs less than the plan, the pods that it leaves to later rounds: their
    /// number by round and class. `limits` are those before the plan.
    pub(crate) fn cheaper_steps(&mut self, tiers: &Tiers<'_>, limits: Limits) -> Vec<Vec<Vec<usize>>> {
        if self.has_too_many() {
            return Vec::new();
        }
        let Some(ways) = self.ways(tiers, limits) else { return Vec::new() };
        let cheaper = ways.into_iter().filter(|way| self.is_beaten_by(way));
        let mut all: Vec<Vec<Vec<usize>>> =
            cheaper.map(|way| self.left_to_later(self.in_rooms(), &way.served)).collect();
        all.dedup();
        all
    }

    /// Returns whether the plan has too many pods on new nodes for a comparison with simpler ways.
    pub(crate) fn has_too_many(&self) -> bool {
        self.outcome.new.iter().map(|node| node.pods.len()).sum::<usize>() > MOST_PODS
    }

    /// Returns whether a simpler way keeps all rules of the plan, places all its pods, and costs less.
    pub(crate) fn is_beaten_by(&self, Way { baseline, .. }: &Way) -> bool {
        let is_alike = baseline.unplaced + baseline.units_unplaced == 0
            && !baseline.serves_later
            && !baseline.breaks_min_values
            && !baseline.breaks_spot_rules;
        let costs_less = match baseline.over_time {
            Some(over_time) => over_time < self.inputs.horizons.amount(self.cost()),
            None => baseline.cost + baseline.risk < self.cost(),
        };
        is_alike && costs_less
    }

    /// Returns the pods that are left to later rounds, by round and class. `placed` are those with a place before the first round, by
    /// class, and `served` those that each round serves.
    pub(crate) fn left_to_later(&self, mut placed: Vec<usize>, served: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let after = |served: &Vec<usize>| -> Vec<usize> {
            for (pods, more) in placed.iter_mut().zip(served) {
                *pods += more;
            }
            let classes = self.inputs.classes.classes.iter().zip(&placed);
            classes.map(|(class, placed)| class.pods.len().saturating_sub(*placed)).collect()
        };
        served.iter().map(after).collect()
    }
}

impl<'a> Run<'_, '_, 'a, '_> {
    /// Takes as many pods of each class out of the queues as the next solve must leave to later rounds.
    pub(crate) fn set_aside(&mut self, later: Option<Vec<usize>>) -> Vec<VecDeque<&'a Pod>> {
        let queues = self.queues.iter_mut().zip(later.into_iter().flatten());
        queues.map(|(queue, later)| queue.split_off(queue.len().saturating_sub(later))).collect()
    }

    /// Puts pods back into the queues.
    pub(crate) fn put_back(&mut self, aside: Vec<VecDeque<&'a Pod>>) {
        for (queue, pods) in self.queues.iter_mut().zip(aside) {
            queue.extend(pods);
        }
    }
}
