//! Tiers: the choices of each class, in their order. A pod is offered only the pools with the highest weight that fit it, with all
//! its preferences. Pods that limits leave unplaced go on to their next tier.

use std::collections::BTreeMap;
use std::rc::Rc;

use poolwright_catalog::UsdPerHour;

use crate::plan::pack::solves::candidates::{Homes, NodeCandidate};

/// The tiers of each class.
pub(crate) struct Tiers<'c> {
    pub candidates: &'c [NodeCandidate],
    /// The candidates that fit each class, for each of its signatures.
    holding: Vec<Homes>,
    /// The tiers of each class, as signatures and weights of pools; `None` for pools of all weights. The first tiers have all
    /// preferences, the last ones have none.
    of_classes: Vec<Vec<(usize, Option<u32>)>>,
}

/// A node of a simpler way to buy.
pub(crate) struct WayNode {
    /// Index into [`Tiers::candidates`].
    pub candidate: usize,
    /// The number of pods by class, ascending.
    pub pods: Vec<(usize, u32)>,
}

impl<'c> Tiers<'c> {
    /// Creates the tiers of classes. `holding` has the candidates that fit each class, for each of its signatures.
    pub fn new(candidates: &'c [NodeCandidate], holding: Vec<Homes>) -> Self {
        let of_signature = |(signature, homes): &(usize, Rc<[usize]>)| {
            // Candidates with the highest weight come first. Reclaimed offerings do not make a pool preferred, unless there are no
            // other offerings.
            let of = |with_reclaimed: bool| {
                let some = homes.iter().map(|at| &candidates[*at]);
                let some = some.filter(|one| with_reclaimed || !one.is_reclaimed);
                some.map(|candidate| candidate.weight).collect::<Vec<u32>>()
            };
            let mut weights = of(false);
            // Reclaimed offerings of pools with lower weight come after all other offerings.
            let lightest = weights.last().copied();
            weights.extend(of(true).into_iter().filter(|weight| lightest.is_none_or(|last| *weight < last)));
            weights.dedup();
            let signature = *signature;
            weights.into_iter().map(move |weight| (signature, Some(weight)))
        };
        let of_class =
            |asked: &Homes| -> Vec<(usize, Option<u32>)> { asked.iter().flat_map(of_signature).collect() };
        let of_classes = holding.iter().map(of_class).collect();
        Self { candidates, holding, of_classes }
    }

    /// Returns one tier for each class: pools of all weights, without preferences.
    pub fn together(&self) -> Self {
        let only = |asked: &Homes| -> Vec<(usize, Option<u32>)> {
            asked.last().map(|(signature, _)| (*signature, None)).into_iter().collect()
        };
        Self {
            candidates: self.candidates,
            holding: self.holding.clone(),
            of_classes: self.holding.iter().map(only).collect(),
        }
    }

    /// Returns one tier for each class: pools of all weights, without preferences. `candidates` are its own, then those of `more`.
    pub fn joined<'j>(&self, more: &Tiers<'_>, candidates: &'j [NodeCandidate]) -> Tiers<'j> {
        let first = self.candidates.len();
        let of = |(class, asked): (usize, &Homes)| -> Homes {
            let more = more.without_preferences(class).into_iter().map(|at| first + at);
            let homes: Rc<[usize]> = self.without_preferences(class).into_iter().chain(more).collect();
            asked.last().map(|(signature, _)| (*signature, homes)).into_iter().collect()
        };
        let holding = self.holding.iter().enumerate().map(of).collect();
        Tiers { candidates, holding, of_classes: Vec::new() }.together()
    }

    /// Returns the number of rounds in which all tiers have their turn; at least one.
    pub fn rounds(&self) -> usize {
        self.of_classes.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    /// Returns whether a class has a tier in a round.
    pub fn has(&self, class: usize, round: usize) -> bool {
        self.of_classes[class].len() > round
    }

    /// Returns whether a class takes part in a round. In the first round, every pod may use existing nodes. In later rounds, only
    /// pods with another tier take part.
    pub fn takes_part(&self, class: usize, round: usize) -> bool {
        round == 0 || self.has(class, round)
    }

    /// Returns the candidates of a class in a round.
    pub fn admitted(&self, class: usize, round: usize) -> Vec<usize> {
        let Some((signature, weight)) = self.of_classes[class].get(round) else { return Vec::new() };
        let asked = self.holding[class].iter().find(|(asked, _)| asked == signature);
        let homes = asked.map_or(&[][..], |(_, candidates)| candidates);
        let now = |at: &usize| {
            let candidate = &self.candidates[*at];
            let admits = |weight: u32| {
                candidate.weight == weight || (candidate.is_reclaimed && candidate.weight > weight)
            };
            weight.is_none_or(admits)
        };
        homes.iter().copied().filter(now).collect()
    }

    /// Returns the first round in which a class may use a candidate.
    pub fn first(&self, class: usize, candidate: usize) -> usize {
        let rounds = self.of_classes[class].len();
        let first = (0..rounds).find(|round| self.admitted(class, *round).contains(&candidate));
        first.unwrap_or(rounds.saturating_sub(1))
    }

    /// Returns what a pod of each class is charged on each candidate if all tiers are solved together: for each round before the first
    /// one with this candidate, more than the cheapest node of that round costs. So it is worth a node to serve the pod earlier.
    pub fn charges(&self) -> Vec<BTreeMap<usize, UsdPerHour>> {
        let of_class = |class: usize| {
            let mut charges = BTreeMap::new();
            let mut charge = UsdPerHour::ZERO;
            for round in 0..self.of_classes[class].len() {
                let admitted = self.admitted(class, round);
                for at in &admitted {
                    charges.entry(*at).or_insert(charge);
                }
                let cheapest = admitted.iter().map(|at| self.candidates[*at].price).min();
                charge += cheapest.unwrap_or_default() + UsdPerHour::from_micros(1);
            }
            charges
        };
        (0..self.of_classes.len()).map(of_class).collect()
    }

    /// Returns the candidates that fit a class without its preferences.
    pub fn without_preferences(&self, class: usize) -> Vec<usize> {
        // The own signature of a class comes last.
        self.holding[class].last().map_or_else(Vec::new, |(_, candidates)| candidates.to_vec())
    }

    /// Returns whether the tiers of a class have pools of different weights.
    pub fn differ_in_weight(&self, class: usize) -> bool {
        let mut weights = self.of_classes[class].iter().map(|(_, weight)| *weight);
        let first = weights.next();
        weights.any(|weight| Some(weight) != first)
    }

    /// Returns whether any candidate that fits a class meets a condition.
    pub fn any_home(&self, class: usize, is_met: impl Fn(&NodeCandidate) -> bool) -> bool {
        self.holding[class].iter().any(|(_, homes)| homes.iter().any(|at| is_met(&self.candidates[*at])))
    }
}
