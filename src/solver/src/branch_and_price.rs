//! Branch and price for one problem, in this order: a first plan, column generation with its dual bound, dives to integer
//! plans, then branching or large neighbourhood search. This file also decides when to stop.

mod bounds;
mod dives;
mod fixings;
mod tree;

use crate::canonical::{Model, Pattern};
use crate::column_generation::{self, Center, End, Generation, Goal, Relaxed, Task};
use crate::dual_bound::{Certificate, Prices};
use crate::lp::Seed;
use crate::meter::{Brake, Meter};
use crate::nothing::nothing;
use crate::open::{self, Open};
use crate::options::Options;
use crate::plan::{Plan, Stock};
use crate::pricing::Pricer;
use crate::problem::Problem;
use crate::solution::{Proof, Solution, Stopped};
use crate::stages::SearchStage;
use crate::stop::StopSignal;
use crate::warm::{self, Warm};
use crate::{admit, exact, resource_bound, shadow_prices, small_exact};

/// Returns the first plan, without a bound.
pub(crate) fn greedy(problem: &Problem, options: &Options) -> Solution {
    let Some(model) = Model::until(problem, options.stages, &mut |_| false) else { return nothing(problem) };
    let plan = admit::plan(&model);
    plan.solution(problem, &model, 0, Stopped::WorkLimit)
}

/// Solves `problem`, which must be valid and have no removable nodes.
pub(crate) fn solve(problem: &Problem, options: &Options, signal: &mut dyn StopSignal) -> Solution {
    begin(problem, options, None, signal, |_| ()).0
}

/// Like [`solve`], with the memory of an earlier solve; also returns the memory of this one.
pub(crate) fn solve_from(
    problem: &Problem,
    options: &Options,
    warm: &Warm,
    signal: &mut dyn StopSignal,
) -> (Solution, Warm) {
    begin(problem, options, Some(warm), signal, |run| {
        run.map_or_else(Warm::default, |run| Warm::of(problem, run.model, &run.best, run.last.as_ref()))
    })
}

/// Solves `problem`, and returns what `leave` makes of the solve; of `None` if nobody waited for a plan.
fn begin<T>(
    problem: &Problem,
    options: &Options,
    warm: Option<&Warm>,
    signal: &mut dyn StopSignal,
    leave: impl FnOnce(Option<&Run<'_>>) -> T,
) -> (Solution, T) {
    let mut meter = Meter::new(signal, options.work);
    let Some(model) = Model::until(problem, options.stages, &mut |units| meter.gives_up(units)) else {
        return (nothing(problem), leave(None));
    };
    meter.about(model.classes.len(), model.bins.iter().filter(|bin| !bin.is_existing()).count());
    let mut plan = admit::plan_until(&model, &mut meter);
    if meter.gives_up(0) {
        return (nothing(problem), leave(None));
    }
    meter.improved(&plan.solution(problem, &model, 0, Stopped::WorkLimit));
    let mut proven = None;
    let exact = if options.stages.has(SearchStage::SmallExact) {
        small_exact::solve(&model, &model.totals(), &mut meter)
    } else {
        None
    };
    if let Some(better) = exact {
        if better.compare(&plan, &model).is_lt() {
            plan = better;
            meter.improved(&plan.solution(problem, &model, 0, Stopped::WorkLimit));
        }
        proven = Some(plan.cost(&model));
    } else if options.stages.has(SearchStage::AdmitByPrices)
        && !meter.stopped()
        && model.gathered(&plan.placed(&model)) != model.totals()
        && let Some(better) = admit::improve(&model, &plan, options.lp(), &mut meter)
    {
        plan = better;
        meter.improved(&plan.solution(problem, &model, 0, Stopped::WorkLimit));
    }
    let mut run = Run::new(problem, &model, options, plan);
    if let Some(cost) = proven {
        run.raise(cost, Proof::Complete);
    }
    run.recall(warm, &mut meter);
    run.search(&mut meter);
    if run.certificate.is_none() && options.stages.has(SearchStage::PriceProven) {
        run.price(&mut meter);
    }
    let is_unbounded = run.bound == 0 && !run.is_least();
    if is_unbounded && options.stages.has(SearchStage::ResourceBound) && !meter.gives_up(0) {
        // The solve stopped before any relaxation, so no pattern was priced.
        if let Some(certificate) = resource_bound::certificate(&model, &run.demand, options.lp()) {
            run.raise(run.proven(&model, &certificate), Proof::Truncated);
            meter.bound(run.bound);
        }
    }
    if !run.is_least()
        && !meter.stopped()
        && let Some(mut pricer) = Pricer::until(&model, options.threads, &mut |units| meter.tick(units))
    {
        run.verify(&mut pricer, &mut meter);
    }
    let solution = run.answer(&meter);
    let left = leave(Some(&run));
    (solution, left)
}

/// A solve in progress.
struct Run<'a> {
    problem: &'a Problem,
    model: &'a Model,
    options: &'a Options,
    /// The pods that the plan places, by the class that keeps their count. The bound holds for them.
    totals: Vec<u64>,
    /// The same by class; with open choices, the most pods that each class can have.
    demand: Vec<u64>,
    /// Whether there are open choices.
    open: bool,
    best: Plan,
    bound: u64,
    /// The proof of the bound, however close the plan is to it.
    proof: Proof,
    /// The known prices with the best bound.
    certificate: Option<Certificate>,
    /// Whether the search goes on below the gap target.
    finishes: bool,
    /// Whether it does so now.
    finishing: bool,
    /// Whether to try the exact methods for small problems first.
    small: bool,
    /// The work units of a first try to pack all pods into given nodes.
    packing: u64,
    /// The patterns and prices of an earlier solve.
    memory: Option<(Vec<Pattern>, Center)>,
    /// The last relaxation, for the memory of this solve.
    last: Option<Relaxed>,
}

/// The number of steps of a dive to the end.
const DEEP: u32 = 60;
/// Above this gap a relaxation is only good for a first plan.
const COARSE: f64 = 0.005;
/// The part of all work that goes into finishing a small problem whose plan is close: one in this many.
const FINISHING: u64 = 8;
/// The fraction from which a dive rounds up, and its number of steps.
type Dive = (f64, u32);

/// Stages of the relaxation: the gap to reach, the maximum number of rounds, and the dives that follow.
const SCHEDULE: &[(f64, u32, &[Dive])] = &[
    (0.05, 8, &[]),
    (0.02, 12, &[]),
    (0.006, 40, &[]),
    (0.002, 40, &[(0.6, DEEP)]),
    (0.001, 40, &[(0.6, DEEP), (0.8, DEEP)]),
    (0.0002, 300, &[(0.6, DEEP), (0.8, DEEP), (0.5, DEEP)]),
];

/// A dive of one step costs little more than the greedy heuristic. One runs each time the gap has fallen to this fraction
/// of the gap at the previous one.
const GLIMPSE: f64 = 0.7;
/// The gap at the first one-step dive.
const FIRST_GLIMPSE: f64 = 0.1;
/// Up to this gap, one runs in every round: each rounds other values, and the cheapest plan counts.
const EVERY_GLIMPSE: f64 = 0.05;
/// This holds for up to this many classes. With more, a dive takes longer than a round, and its time does not count as work.
const GLIMPSED: usize = 2_000;

/// Up to this many pods, branching follows as soon as the gap is below [`COARSE`].
const BRANCH_AT_ONCE: u64 = 2_000;

impl<'a> Run<'a> {
    fn new(problem: &'a Problem, model: &'a Model, options: &'a Options, best: Plan) -> Self {
        let totals = model.gathered(&best.placed(model));
        let pods = totals.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
        let (demand, open) = (model.most(&totals), model.is_open(&totals));
        Self {
            problem,
            model,
            options,
            totals,
            demand,
            open,
            best,
            bound: 0,
            proof: Proof::Truncated,
            certificate: None,
            finishes: pods <= options.finish_pods,
            finishing: false,
            small: true,
            packing: exact::UNITS,
            memory: None,
            last: None,
        }
    }
}

impl Run<'_> {
    /// Returns whether a stage is enabled.
    fn has(&self, stage: SearchStage) -> bool {
        self.options.stages.has(stage)
    }

    /// Returns the LP backend and a seed of 31 bits, as HiGHS requires.
    fn seed(&self) -> Seed {
        self.options.lp()
    }

    /// Returns whether the plan is as close to the bound as asked.
    fn is_close(&self) -> bool {
        let cost = self.best.cost(self.model);
        cost <= self.bound || (cost - self.bound) as f64 <= self.options.gap_target * self.bound as f64
    }

    fn done(&self) -> bool {
        if self.finishes { self.is_least() } else { self.is_close() }
    }

    /// Limits the work on a small problem, once the plan is close.
    fn watch(&mut self, meter: &mut Meter<'_>) {
        if self.finishes && !self.finishing && self.is_close() {
            self.finishing = true;
            meter.limit(self.options.work / FINISHING);
        }
    }

    /// Returns whether the plan is proven optimal.
    fn is_least(&self) -> bool {
        self.best.cost(self.model) <= self.bound
    }

    /// Returns the solution, with all that is known about it.
    fn answer(&self, meter: &Meter<'_>) -> Solution {
        let stopped = if meter.asked() {
            Stopped::Asked
        } else if meter.stopped() {
            Stopped::WorkLimit
        } else {
            Stopped::Exhausted
        };
        let mut solution = self.best.solution(self.problem, self.model, self.bound, stopped);
        // If no layout of some GPUs is found, the solution places fewer pods, and its bound is zero: then nothing is proven.
        if solution.bound.micros() == self.bound.min(self.best.cost(self.model)) {
            solution.proof = if self.is_least() { Proof::Exact } else { self.proof };
            if self.is_close() {
                solution.stopped = Stopped::GapReached;
            }
        }
        solution.prices = self
            .certificate
            .as_ref()
            .map(|certificate| shadow_prices::prices(self.problem, self.model, certificate));
        solution
    }

    /// Uses the memory of an earlier solve, where choices divide no pods.
    fn recall(&mut self, warm: Option<&Warm>, meter: &mut Meter<'_>) {
        let on = self.has(SearchStage::WarmStart) && !self.open;
        let Some(warm) = warm.filter(|_| on) else { return };
        let (known, prices) = warm.recall(self.problem, self.model);
        if known.is_empty() {
            return;
        }
        let stop = &mut |units| meter.tick(units);
        let plan = warm::plan(self.model, &self.demand, &known, &prices, stop);
        self.offer(plan, meter);
        let center = (prices, vec![0.0; self.model.bins.len()], vec![0.0; self.model.limits.len()]);
        self.memory = Some((known.into_keys().collect(), center));
    }

    /// Takes `plan` if it places the same pods for less.
    fn offer(&mut self, plan: Plan, meter: &mut Meter<'_>) -> bool {
        if plan.cost(self.model) >= self.best.cost(self.model)
            || !self.places(&plan)
            || !plan.is_payable(self.model)
        {
            return false;
        }
        self.best = plan;
        meter.improved(&self.best.solution(self.problem, self.model, self.bound, Stopped::WorkLimit));
        self.watch(meter);
        true
    }

    /// Returns whether `plan` places the required pods, divided as choices allow.
    fn places(&self, plan: &Plan) -> bool {
        let placed = plan.placed(self.model);
        self.model.gathered(&placed) == self.totals
            && self.model.choices.iter().all(|choice| choice.allows(&self.totals, &placed))
    }

    fn search(&mut self, meter: &mut Meter<'_>) {
        if self.done() || meter.poll() {
            return;
        }
        if self.small
            && !self.open
            && self.has(SearchStage::ExactProgram)
            && let Some((plan, cost)) = exact::solve(self.model, &self.demand, meter)
        {
            self.raise(cost, Proof::Complete);
            self.offer(plan, meter);
            if self.done() {
                return;
            }
        }
        let resources = self.resource_prices(meter);
        if let Some(certificate) = &resources {
            self.refine_vast(certificate, meter);
            if self.done() || meter.stopped() {
                return;
            }
        }
        let stop = &mut |units| meter.tick(units);
        let Some(mut pricer) = Pricer::until(self.model, self.options.threads, stop) else { return };
        let exchanges = column_generation::exchanges(self.model, &mut |units| meter.tick(units));
        if meter.poll() {
            return;
        }
        let stock = Stock::full(self.model);
        let (known, center) = self.memory.take().unzip();
        // The master needs one feasible combination, which the plan is, and moderate prices from the start.
        let mut start = known.unwrap_or_else(|| {
            column_generation::plain_columns(self.model, &self.demand, &mut |units| meter.tick(units))
        });
        start.extend(self.best.nodes.keys().cloned());
        let (demand, totals) = (self.demand.clone(), self.totals.clone());
        let known = open::taken(self.model, &self.best);
        let task = Task {
            demand: &demand,
            stock: &stock,
            start,
            exchanges: &exchanges,
            center,
            seed: self.seed(),
            cutoff: None,
            open: self.open.then_some(Open { totals: &totals, known: &known }),
        };
        let resources = resources.filter(|_| task.center.is_none());
        let mut generation = Generation::new(self.model, task, meter);
        if let Some(certificate) = resources {
            let bound = self.proven(self.model, &certificate);
            generation.start_from(certificate, bound);
        }
        let mut next = FIRST_GLIMPSE;
        let every = if self.model.classes.len() <= GLIMPSED { EVERY_GLIMPSE } else { 0.0 };
        for (gap, rounds, styles) in SCHEDULE {
            let mut left = *rounds;
            loop {
                let goal = Goal { gap: *gap, rounds: left.min(1), levels: (0, 5), prove: true };
                let end = generation.run(&mut pricer, goal, meter);
                self.prove(generation.certificate(), meter);
                if self.done() || meter.stopped() {
                    self.last = self.last.take().or_else(|| generation.relaxed());
                    return;
                }
                if let Some(relaxed) = generation.relaxed().filter(|relaxed| relaxed.gap() <= next.max(every))
                    && self.has(SearchStage::Glimpses)
                {
                    next = relaxed.gap() * GLIMPSE;
                    self.glimpse(&mut pricer, &relaxed, &exchanges, meter);
                    if self.done() || meter.stopped() {
                        self.last = self.last.take().or_else(|| generation.relaxed());
                        return;
                    }
                }
                left = left.saturating_sub(1);
                if end != End::Rounds || left == 0 {
                    break;
                }
            }
            let Some(relaxed) = generation.relaxed() else { return };
            self.last = Some(relaxed.clone());
            for (at, style) in styles.iter().enumerate() {
                if !self.has(if at == 0 { SearchStage::DeepDives } else { SearchStage::MoreDives }) {
                    continue;
                }
                self.dive(&mut pricer, &relaxed, &exchanges, *style, meter);
                if self.done() || meter.stopped() {
                    return;
                }
            }
            if *gap < COARSE && self.has(SearchStage::ExactSearch) && self.enumerate(&relaxed, meter) {
                return;
            }
            if *gap < COARSE
                && self.has(SearchStage::Branching)
                && demand.iter().sum::<u64>() <= BRANCH_AT_ONCE
            {
                self.branch(relaxed, &exchanges, meter);
                return;
            }
        }
        self.verify(&mut pricer, meter);
        if let Some(relaxed) = generation.relaxed().filter(|_| self.has(SearchStage::Improve)) {
            self.improve(&mut pricer, &relaxed, &exchanges, meter);
        }
    }

    /// Enumerates all plans of a very small problem, pruned by the prices of its relaxation. Returns whether that settles
    /// it.
    fn enumerate(&mut self, relaxed: &Relaxed, meter: &mut Meter<'_>) -> bool {
        let prices = Prices::new(self.model, &relaxed.pods, &relaxed.bins, &relaxed.limits);
        let best = self.best.cost(self.model);
        // With open choices, this demand is more than any division needs.
        let settles = self.small && !self.open;
        let found =
            if settles { exact::search(self.model, &self.demand, &prices, best, meter) } else { None };
        let Some((plan, complete)) = found else { return false };
        if let Some(plan) = plan {
            self.offer(plan, meter);
        }
        if complete {
            // The enumeration was complete, so no plan is cheaper than the best one.
            self.raise(self.best.cost(self.model), Proof::Complete);
        }
        self.done()
    }
}

#[cfg(test)]
mod tests;
