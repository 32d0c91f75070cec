//! The search for the best choice of nodes to remove, and its solution.

use super::cluster::Cluster;
use super::new_node_prices::NewNodePrices;
use super::residual::{self, Part, Target};
use super::rooms::{Rooms, Want};
use super::{bound, steps, subsets};
use crate::meter::Meter;
use crate::options::Options;
use crate::problem::Problem;
use crate::solution::{Proof, Solution, Stopped};
use crate::stages::SearchStage;
use crate::stop::StopSignal;

/// With at most so many nodes there, the engine decides about all free room itself.
const FEW: usize = 24;

/// The best answer so far.
pub(super) struct Search<'c> {
    pub cluster: &'c Cluster<'c>,
    pub options: &'c Options,
    pub best: Option<Target>,
    /// Prices by class, the best known.
    pub prices: Vec<f64>,
    /// Waiting pods that the bound is for, by class.
    pub bounded: Vec<u64>,
}

impl Search<'_> {
    /// Whether a stage is on.
    fn has(&self, stage: SearchStage) -> bool {
        self.options.stages.has(stage)
    }

    /// Options for a part of the work, in hundredths.
    pub fn part(&self, percent: u64) -> Options {
        Options { work: self.options.work / 100 * percent + 1, ..*self.options }
    }

    /// Takes `target` if it is better, and tells the caller.
    pub fn offer(&mut self, target: Target, signal: &mut dyn StopSignal) -> bool {
        if self.best.as_ref().is_some_and(|best| best.key() <= target.key()) {
            return false;
        }
        let told = self.answer(&target, 0);
        self.best = Some(target);
        signal.improved(&told);
        true
    }

    /// `target` as the caller sees it.
    fn answer(&self, target: &Target, bound: u64) -> Solution {
        let mut solution = target.solution.clone();
        let steps = steps::steps(self.cluster, &solution, &self.prices);
        solution.steps = steps.into_iter().map(|priced| priced.step).collect();
        solution.bound = poolwright_catalog::UsdPerHour::from_micros(bound).min(solution.objective());
        solution.proof = if solution.bound == solution.objective() { Proof::Exact } else { Proof::Truncated };
        solution.stopped = Stopped::WorkLimit;
        solution
    }

    /// What no choice can undercut that places the pods which the best so far places.
    fn bound(&mut self, signal: &mut dyn StopSignal) -> u64 {
        let Some(best) = &self.best else { return 0 };
        let placed = placed(self.cluster, &best.solution);
        let mut part = Part(signal);
        let mut meter = Meter::new(&mut part, self.options.work / 8);
        let bound = bound::bound(self.cluster, &placed, &self.prices, self.options.stages, &mut meter);
        self.bounded = placed;
        bound
    }

    /// Solves for a choice of nodes; where pods that run cannot be placed, their nodes stay.
    pub fn realise(
        &self,
        rooms: Rooms<'_>,
        options: &Options,
        signal: &mut dyn StopSignal,
    ) -> Result<Target, Vec<u32>> {
        let few = self.cluster.nodes.len() <= FEW && self.has(SearchStage::FewNodes);
        let plain = &self.cluster.plain;
        let none = Vec::new();
        let guests = if few { &none[..] } else { rooms.guests() };
        residual::solve(
            self.cluster,
            rooms.gone(),
            guests,
            &|class, _| few || !plain[class],
            (options, &self.prices),
            signal,
        )
    }

    /// Chooses nodes to empty at `prices`, which may take `choice` units of work, and solves for them.
    pub fn attempt(
        &mut self,
        prices: &[f64],
        want: Want,
        (options, choice): (&Options, u64),
        signal: &mut dyn StopSignal,
    ) -> Option<Target> {
        let mut kept: Vec<u32> = Vec::new();
        for _ in 0..4 {
            let mut rooms = Rooms::new(self.cluster, prices);
            rooms.keep(&kept);
            {
                let mut part = Part(&mut *signal);
                let mut meter = Meter::new(&mut part, choice);
                if self.has(SearchStage::ShutLikely) {
                    rooms.shut_likely(prices, &want);
                }
                rooms.drain(prices, &want, &mut |work| meter.spend(work));
                rooms.open();
                rooms.fill();
            }
            match self.realise(rooms, options, signal) {
                Ok(target) => return Some(target),
                Err(classes) if classes.is_empty() => return None,
                Err(classes) => kept.extend(classes),
            }
        }
        None
    }
}

/// Finds which nodes should stay, and the way there. `problem` must be valid and have removable nodes.
pub(crate) fn solve(problem: &Problem, options: &Options, signal: &mut dyn StopSignal) -> Solution {
    let cluster = Cluster::new(problem);
    let new_nodes = NewNodePrices::new(&cluster, options.stages);
    let prices = new_nodes.rough();
    let mut search =
        Search { cluster: &cluster, options, best: None, prices: prices.clone(), bounded: Vec::new() };
    // Nothing moves: what every other answer is compared with.
    let still = search.realise(Rooms::new(&cluster, &prices), &search.part(10), signal);
    match still {
        Ok(still) => {
            search.offer(still, signal);
        }
        // With nobody moved, nobody that runs can be stranded.
        Err(_) => return Solution::default(),
    }
    let mut proven;
    let has = |stage| options.stages.has(stage);
    let settled = if has(SearchStage::Subsets) { subsets::all(&mut search, signal) } else { None };
    let exact = settled.is_some();
    if let Some(found) = settled {
        proven = found;
    } else {
        let want = Want::all(&cluster);
        // At rough prices and with the greedy alone: there is a plan early.
        let quick = Options { work: 1, ..*options };
        if has(SearchStage::RoughMoves)
            && let Some(target) = search.attempt(&prices, want, (&quick, options.work / 20), signal)
        {
            search.offer(target, signal);
        }
        let fine = if has(SearchStage::FineMoves) {
            let mut part = Part(&mut *signal);
            let mut meter = Meter::new(&mut part, options.work / 4);
            new_nodes.fine(0.01, options.lp(), &mut meter)
        } else {
            None
        };
        if let Some(fine) = fine {
            search.prices = fine;
        }
        let prices = search.prices.clone();
        proven = search.bound(signal);
        if let Some(target) = search.attempt(&prices, want, (&search.part(25), options.work / 10), signal) {
            search.offer(target, signal);
        }
    }
    let Some(best) = search.best.take() else { return Solution::default() };
    if !exact && search.bounded != placed(&cluster, &best.solution) {
        // Other pods are left out than those the bound is for.
        search.best = Some(best.clone());
        proven = search.bound(signal);
    }
    let mut solution = search.answer(&best, proven);
    let (objective, bound) = (solution.objective().micros(), solution.bound.micros());
    let close = (objective - bound.min(objective)) as f64 <= options.gap_target * bound as f64;
    solution.stopped = if close {
        Stopped::GapReached
    } else if signal.should_stop() {
        Stopped::Asked
    } else {
        Stopped::WorkLimit
    };
    solution
}

/// Waiting pods that `solution` places, by class.
fn placed(cluster: &Cluster<'_>, solution: &Solution) -> Vec<u64> {
    let mut placed: Vec<u64> =
        (0..cluster.problem.classes.len()).map(|class| cluster.waiting(class)).collect();
    for left in &solution.unplaced {
        let placed = &mut placed[left.class as usize];
        *placed = placed.saturating_sub(u64::from(left.count));
    }
    placed
}
