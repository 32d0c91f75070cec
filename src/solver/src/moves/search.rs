//! The search for the best choice of nodes, and the answer.

use super::cluster::Cluster;
use super::market::Market;
use super::residual::{self, Part, Target};
use super::rooms::{Rooms, Want};
use super::{bound, steps, subsets};
use crate::meter::Meter;
use crate::problem::Problem;
use crate::solution::{Proof, Solution, Stopped};
use crate::{Options, Watch};

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
    /// Options for a part of the work, in hundredths.
    pub fn part(&self, percent: u64) -> Options {
        Options { work: self.options.work / 100 * percent + 1, ..*self.options }
    }

    /// Takes `target` if it is better, and tells the caller.
    pub fn offer(&mut self, target: Target, watch: &mut dyn Watch) -> bool {
        if self.best.as_ref().is_some_and(|best| best.key() <= target.key()) {
            return false;
        }
        let told = self.answer(&target, 0);
        self.best = Some(target);
        watch.improved(&told);
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
    fn bound(&mut self, watch: &mut dyn Watch) -> u64 {
        let Some(best) = &self.best else { return 0 };
        let placed = placed(self.cluster, &best.solution);
        let mut part = Part(watch);
        let mut meter = Meter::new(&mut part, self.options.work / 8);
        let bound = bound::bound(self.cluster, &placed, &self.prices, &mut meter);
        self.bounded = placed;
        bound
    }

    /// Solves for a choice of nodes; where pods that run cannot be placed, their nodes stay.
    pub fn realise(
        &self,
        rooms: Rooms<'_>,
        options: &Options,
        watch: &mut dyn Watch,
    ) -> Result<Target, Vec<u32>> {
        let few = self.cluster.nodes.len() <= FEW;
        let plain = &self.cluster.plain;
        let none = Vec::new();
        let guests = if few { &none[..] } else { rooms.guests() };
        residual::solve(
            self.cluster,
            rooms.gone(),
            guests,
            &|class, _| few || !plain[class],
            (options, &self.prices),
            watch,
        )
    }

    /// Chooses nodes to empty at `prices`, which may take `choice` units of work, and solves for them.
    pub fn attempt(
        &mut self,
        prices: &[f64],
        want: Want,
        (options, choice): (&Options, u64),
        watch: &mut dyn Watch,
    ) -> Option<Target> {
        let mut kept: Vec<u32> = Vec::new();
        for _ in 0..4 {
            let mut rooms = Rooms::new(self.cluster, prices);
            rooms.keep(&kept);
            {
                let mut part = Part(&mut *watch);
                let mut meter = Meter::new(&mut part, choice);
                rooms.shut_likely(prices, &want);
                rooms.drain(prices, &want, &mut |work| meter.spend(work));
                rooms.open();
                rooms.fill();
                rooms.drain(prices, &want, &mut |work| meter.spend(work));
            }
            match self.realise(rooms, options, watch) {
                Ok(target) => return Some(target),
                Err(classes) if classes.is_empty() => return None,
                Err(classes) => kept.extend(classes),
            }
        }
        None
    }
}

/// Finds which nodes should stay, and the way there. `problem` must be valid and have removable nodes.
pub(crate) fn solve(problem: &Problem, options: &Options, watch: &mut dyn Watch) -> Solution {
    let cluster = Cluster::new(problem);
    let market = Market::new(&cluster);
    let prices = market.rough();
    let mut search =
        Search { cluster: &cluster, options, best: None, prices: prices.clone(), bounded: Vec::new() };
    // Nothing moves: what every other answer is compared with.
    let still = search.realise(Rooms::new(&cluster, &prices), &search.part(10), watch);
    match still {
        Ok(still) => {
            search.offer(still, watch);
        }
        // With nobody moved, nobody that runs can be stranded.
        Err(_) => return Solution::default(),
    }
    let mut proven;
    let settled = subsets::all(&mut search, watch);
    let exact = settled.is_some();
    if let Some(found) = settled {
        proven = found;
    } else {
        let want = Want::all(&cluster);
        // At rough prices and with the greedy alone: there is a plan early.
        let quick = Options { work: 1, ..*options };
        if let Some(target) = search.attempt(&prices, want, (&quick, options.work / 20), watch) {
            search.offer(target, watch);
        }
        let fine = {
            let mut part = Part(&mut *watch);
            let mut meter = Meter::new(&mut part, options.work / 4);
            market.fine(0.01, options.lp(), &mut meter)
        };
        if let Some(fine) = fine {
            search.prices = fine;
        }
        let prices = search.prices.clone();
        proven = search.bound(watch);
        if let Some(target) = search.attempt(&prices, want, (&search.part(25), options.work / 10), watch) {
            search.offer(target, watch);
        }
    }
    let Some(best) = search.best.take() else { return Solution::default() };
    if !exact && search.bounded != placed(&cluster, &best.solution) {
        // Other pods are left out than those the bound is for.
        search.best = Some(best.clone());
        proven = search.bound(watch);
    }
    let mut solution = search.answer(&best, proven);
    let (objective, bound) = (solution.objective().micros(), solution.bound.micros());
    let close = (objective - bound.min(objective)) as f64 <= options.gap_target * bound as f64;
    solution.stopped = if close {
        Stopped::GapReached
    } else if watch.should_stop() {
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
