//! Second thoughts: which pods a tier serves if a limit leaves some of them to their next choices.
//!
//! A tier alone serves the pods that cost least in it. So pods that cost little anywhere may take room that saves more for others.
//! In a second pass, a tier prefers pods that have no other choice. It serves as many of the others as it can, and of these the pods
//! whose next choice is dearest compared with this one. The better pass is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use poolwright_catalog::UsdPerHour;

use crate::plan::pack::solves::pass::Run;
use crate::plan::pack::solves::tiers::Tiers;
use crate::plan::place::preferences::estimates::share;

/// The number of steps by which the savings of pods are told apart.
const STEPS: u128 = 1000;
/// The number of pods with another choice that a pod without one may displace.
const DISPLACED: u64 = 16;

/// The pods that a pass leaves out, by priority, the highest first; then those that each of its rounds serves.
type Served = (Vec<usize>, Vec<Vec<Reverse<usize>>>);
/// What a pass leaves out and serves, then its cost and its nodes. Less is better.
type Rank = (Served, UsdPerHour, usize);

impl Run<'_, '_, '_, '_> {
    /// Returns the value of each class in a round, by which the solver chooses the pods that it leaves out. Zero everywhere if no pod
    /// has a further choice.
    pub(crate) fn worth(&self, tiers: &Tiers<'_>, round: usize) -> Vec<u64> {
        let mut worth = vec![0; self.queues.len()];
        let takes_part = |class: &usize| !self.queues[*class].is_empty() && tiers.takes_part(*class, round);
        let part: Vec<usize> = (0..self.queues.len()).filter(takes_part).collect();
        let further = part.iter().copied().filter(|class| tiers.has(*class, round + 1));
        let costs: Vec<(usize, u128, u128)> = further
            .map(|class| (class, self.estimate(tiers, class, round), self.estimate(tiers, class, round + 1)))
            .collect();
        if costs.is_empty() {
            return worth;
        }
        let most = costs.iter().map(|(_, now, _)| *now).max().unwrap_or(0);
        // What a class saves if it is served now, less the least that any could save.
        let saves = |(class, now, next): &(usize, u128, u128)| (*class, next.saturating_add(most - now));
        let saved: Vec<(usize, u128)> = costs.iter().map(saves).collect();
        let least = saved.iter().map(|(_, saved)| *saved).min().unwrap_or(0);
        let range = saved.iter().map(|(_, saved)| saved - least).max().unwrap_or(0).max(1);
        // One more pod is worth more than all savings.
        let pods: u64 = part.iter().map(|class| self.queues[*class].len() as u64).sum();
        let each = 1 + pods * STEPS as u64;
        for class in part {
            worth[class] = each * DISPLACED;
        }
        for (class, saved) in saved {
            worth[class] = each + ((saved - least).saturating_mul(STEPS) / range) as u64;
        }
        worth
    }

    /// Returns the estimated cost of a pod of a class in a round, in millionths of micro-dollars per hour: the price of a node times
    /// the pod's largest part of a resource.
    fn estimate(&self, tiers: &Tiers<'_>, class: usize, round: usize) -> u128 {
        let requests = &self.inputs.classes.classes[class].requests;
        let of = |at: usize| {
            let candidate = &tiers.candidates[at];
            let capacity = &self.inputs.supply.capacities[candidate.offer.capacity];
            share(requests, capacity) * u128::from(candidate.price.micros())
        };
        tiers.admitted(class, round).into_iter().map(of).min().unwrap_or(0)
    }

    /// Returns whether another choice of the pods served in a round might be better: of several classes, a limit left some that have
    /// a tier in it, and some have a further one.
    pub(crate) fn is_contested(&self, tiers: &Tiers<'_>, round: usize, served: &[usize]) -> bool {
        let queued = |class: &usize| self.queues[*class].len() + served[*class] > 0;
        let with_tier = |class: &usize| tiers.has(*class, round) && queued(class);
        let rivals: Vec<usize> = (0..self.queues.len()).filter(with_tier).collect();
        rivals.len() > 1
            && rivals.iter().any(|class| !self.queues[*class].is_empty())
            && rivals.iter().any(|class| tiers.has(*class, round + 1))
    }

    /// Returns how good the pass is.
    pub(crate) fn rank(&self) -> Rank {
        let mut left: BTreeMap<Reverse<i32>, usize> = BTreeMap::new();
        for (class, queue) in self.inputs.classes.classes.iter().zip(&self.queues) {
            *left.entry(Reverse(class.priority)).or_default() += queue.len();
        }
        let served = self.by_priority(&self.served).into_iter();
        let served = served.map(|rounds| rounds.into_iter().map(Reverse).collect::<Vec<_>>());
        ((left.into_values().collect(), served.collect()), self.outcome.objective, self.outcome.new.len())
    }

    /// Adds up the pods that each round serves by priority, the highest first. `served` is by round and class.
    pub(crate) fn by_priority(&self, served: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let mut levels: BTreeMap<Reverse<i32>, Vec<usize>> = BTreeMap::new();
        for (at, class) in self.inputs.classes.classes.iter().enumerate() {
            let level = levels.entry(Reverse(class.priority)).or_insert_with(|| vec![0; served.len()]);
            for (sum, of_round) in level.iter_mut().zip(served) {
                *sum += of_round[at];
            }
        }
        levels.into_values().collect()
    }
}
