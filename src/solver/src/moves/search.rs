//! The search for the best set of nodes to remove, and its solution.

use super::cluster::Cluster;
use super::new_node_prices::NewNodePrices;
use super::residual::{self, Part, Target};
use super::rooms::{Rooms, Want};
use super::{bound, steps, subsets};
use crate::meter::{Brake, Meter};
use crate::nothing::nothing;
use crate::options::Options;
use crate::problem::Problem;
use crate::solution::{Proof, Solution, Stopped};
use crate::stages::SearchStage;
use crate::stop::StopSignal;

/// The number of nodes up to which the main solver decides about all free room.
const FEW: usize = 24;

/// The search with its best solution so far.
pub(super) struct Search<'c> {
    pub cluster: &'c Cluster<'c>,
    pub options: &'c Options,
    pub best: Option<Target>,
    /// The best known prices, by class.
    pub prices: Vec<f64>,
    /// The waiting pods, by class, that the bound is for.
    pub bounded: Vec<u64>,
}

impl Search<'_> {
    /// Returns whether a stage is enabled.
    fn has(&self, stage: SearchStage) -> bool {
        self.options.stages.has(stage)
    }

    /// Returns options for a part of the work, in percent.
    pub fn part(&self, percent: u64) -> Options {
        Options { work: self.options.work / 100 * percent + 1, ..*self.options }
    }

    /// Takes `target` if it is better, and reports it to the caller.
    pub fn offer(&mut self, target: Target, signal: &mut dyn StopSignal) -> bool {
        if self.best.as_ref().is_some_and(|best| best.key() <= target.key()) {
            return false;
        }
        let told = self.answer(&target, 0);
        self.best = Some(target);
        signal.improved(&told);
        true
    }

    /// Returns `target` as a solution for the caller.
    fn answer(&self, target: &Target, bound: u64) -> Solution {
        let mut solution = target.solution.clone();
        let steps = steps::steps(self.cluster, &solution, &self.prices);
        solution.steps = steps.into_iter().map(|priced| priced.step).collect();
        solution.bound = poolwright_catalog::UsdPerHour::from_micros(bound).min(solution.objective());
        solution.proof = if solution.bound == solution.objective() { Proof::Exact } else { Proof::Truncated };
        solution.stopped = Stopped::WorkLimit;
        solution
    }

    /// Returns a lower bound for all sets of nodes to remove, if the plan places the same waiting pods as the best one so
    /// far.
    fn bound(&mut self, signal: &mut dyn StopSignal) -> u64 {
        let Some(best) = &self.best else { return 0 };
        let placed = placed(self.cluster, &best.solution);
        let mut part = Part(signal);
        let mut meter = Meter::new(&mut part, self.options.work / 8);
        let bound = bound::bound(self.cluster, &placed, &self.prices, self.options.stages, &mut meter);
        self.bounded = placed;
        bound
    }

    /// Solves for a set of nodes to remove. If running pods cannot be placed, the error lists their classes.
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

    /// Chooses the nodes to empty at `prices`, with up to `choice` units of work, and solves for them.
    pub fn attempt(
        &mut self,
        prices: &[f64],
        want: Want,
        (options, choice): (&Options, u64),
        signal: &mut dyn StopSignal,
    ) -> Option<Target> {
        let mut kept: Vec<u32> = Vec::new();
        for _ in 0..4 {
            let mut part = Part(&mut *signal);
            let mut meter = Meter::new(&mut part, choice);
            let mut rooms = Rooms::new(self.cluster, prices, &mut |units| meter.tick(units));
            rooms.keep(&kept);
            if self.has(SearchStage::ShutLikely) {
                rooms.shut_likely(prices, &want);
            }
            rooms.drain(prices, &want, &mut |work| meter.spend(work));
            rooms.open();
            rooms.fill(&mut |units| meter.tick(units));
            // The solve would make a first plan in any case.
            if meter.asked() {
                return None;
            }
            match self.realise(rooms, options, signal) {
                Ok(target) => return Some(target),
                Err(classes) if classes.is_empty() || signal.should_stop() => return None,
                Err(classes) => kept.extend(classes),
            }
        }
        None
    }
}

/// Finds the nodes to keep, and the steps to get there. `problem` must be valid and have removable nodes.
pub(crate) fn solve(problem: &Problem, options: &Options, signal: &mut dyn StopSignal) -> Solution {
    let cluster = Cluster::new(problem);
    let mut part = Part(&mut *signal);
    let mut meter = Meter::new(&mut part, u64::MAX);
    let stop = &mut |units| meter.gives_up(units);
    let Some(new_nodes) = NewNodePrices::new(&cluster, options.stages, stop) else { return nothing(problem) };
    let prices = new_nodes.rough();
    let rooms = Rooms::new(&cluster, &prices, stop);
    let mut search =
        Search { cluster: &cluster, options, best: None, prices: prices.clone(), bounded: Vec::new() };
    // The solution without moves, the baseline for all others.
    let still = search.realise(rooms, &search.part(10), signal);
    match still {
        Ok(still) => {
            search.offer(still, signal);
        }
        // Without moves, no running pod can lose its node.
        Err(_) => return nothing(problem),
    }
    let mut proven;
    let has = |stage| options.stages.has(stage);
    let settled = if has(SearchStage::Subsets) { subsets::all(&mut search, signal) } else { None };
    let exact = settled.is_some();
    if let Some(found) = settled {
        proven = found;
    } else {
        let want = Want::all(&cluster);
        // At rough prices and with the greedy heuristic alone, a plan is found early.
        let quick = Options { work: 1, ..*options };
        // Each part makes a first plan in any case, so no part begins after the signal asked to stop.
        if has(SearchStage::RoughMoves)
            && !signal.should_stop()
            && let Some(target) = search.attempt(&prices, want, (&quick, options.work / 20), signal)
        {
            search.offer(target, signal);
        }
        let fine = if has(SearchStage::FineMoves) && !signal.should_stop() {
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
        proven = if signal.should_stop() { 0 } else { search.bound(signal) };
        if !signal.should_stop()
            && let Some(target) = search.attempt(&prices, want, (&search.part(25), options.work / 10), signal)
        {
            search.offer(target, signal);
        }
    }
    let Some(best) = search.best.take() else { return nothing(problem) };
    if !exact && search.bounded != placed(&cluster, &best.solution) && !signal.should_stop() {
        // The best plan leaves out other pods than the bound assumes.
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

/// Returns the waiting pods that `solution` places, by class.
fn placed(cluster: &Cluster<'_>, solution: &Solution) -> Vec<u64> {
    let mut placed: Vec<u64> =
        (0..cluster.problem.classes.len()).map(|class| cluster.waiting(class)).collect();
    for left in &solution.unplaced {
        let placed = &mut placed[left.class as usize];
        *placed = placed.saturating_sub(u64::from(left.count));
    }
    placed
}
