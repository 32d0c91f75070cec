//! The solve as a whole: greedy, relaxation, dives, improvement, and when to stop.

use std::collections::{BTreeMap, BTreeSet};

use crate::bound::{Certificate, Prices};
use crate::branch::{Branch, Ranges};
use crate::canonical::{Model, UNLIMITED};
use crate::dive::{self, Style};
use crate::greedy::{self};
use crate::lp::{Backend, Seed};
use crate::meter::Meter;
use crate::open::{self, Open};
use crate::plan::{Pattern, Plan, Stock};
use crate::pricing::Pricer;
use crate::problem::{Problem, ProblemError};
use crate::relax::{self, Center, End, Generation, Goal, Relaxed, Task};
use crate::solution::{Proof, Solution, Stopped};
use crate::warm::{self, Warm};
use crate::{Watch, admit, exact, improve, moves, rates, shadow, small, verify};

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Stop when `(cost - bound) / bound` is at most this.
    pub gap_target: f64,
    /// Work units to spend; one is about half a microsecond of one core. Deterministic, unlike time.
    pub work: u64,
    /// Varies the search; the same seed gives the same plan.
    pub seed: u64,
    /// Who solves the linear programs.
    pub backend: Backend,
    /// Threads for pricing; 0 for as many as there are processors, 8 at most. The answer does not depend on it.
    pub threads: usize,
}

impl Default for Options {
    /// A tenth of a percent, or about ten seconds of work.
    fn default() -> Self {
        Self { gap_target: 0.001, work: 20_000_000, seed: 0, backend: Backend::default(), threads: 0 }
    }
}

impl Options {
    /// Which LP solves, and its seed.
    pub(crate) fn lp(&self) -> Seed {
        Seed { backend: self.backend, number: (self.seed % (1 << 31)) as i32 }
    }
}

/// The cover greedy's plan alone, with no bound: within milliseconds.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn greedy(problem: &Problem) -> Result<Solution, ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return moves::greedy(problem);
    }
    let model = Model::new(problem);
    let plan = admit::plan(&model);
    Ok(plan.solution(problem, &model, 0, Stopped::WorkLimit))
}

/// Finds a cheap plan and proves how cheap it is. Always returns a feasible plan, however early it is stopped.
///
/// The answer is a function of `problem` and `options` alone, unless `watch` asks to stop.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn solve(problem: &Problem, options: &Options, watch: &mut dyn Watch) -> Result<Solution, ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return Ok(moves::solve(problem, options, watch));
    }
    Ok(begin(problem, options, None, watch, |_| ()).0)
}

/// As [`solve`], with what an earlier solve of a similar problem left, and with what this one leaves. `Warm::default()`
/// is an empty memory.
///
/// The answer is then a function of `warm` too. Problems with removable nodes neither use it nor leave anything.
///
/// # Errors
/// [`ProblemError`] when `problem` is malformed.
pub fn solve_from(
    problem: &Problem,
    options: &Options,
    warm: &Warm,
    watch: &mut dyn Watch,
) -> Result<(Solution, Warm), ProblemError> {
    problem.validate()?;
    if moves::concerns(problem) {
        return Ok((moves::solve(problem, options, watch), Warm::default()));
    }
    Ok(begin(problem, options, Some(warm), watch, |run| {
        Warm::of(problem, run.model, &run.best, run.last.as_ref())
    }))
}

fn begin<T>(
    problem: &Problem,
    options: &Options,
    warm: Option<&Warm>,
    watch: &mut dyn Watch,
    leave: impl FnOnce(&Run<'_>) -> T,
) -> (Solution, T) {
    let model = Model::new(problem);
    let mut meter = Meter::new(watch, options.work);
    meter.about(model.classes.len(), model.bins.iter().filter(|bin| !bin.is_existing()).count());
    let mut plan = admit::plan_until(&model, &mut || meter.ask());
    meter.improved(&plan.solution(problem, &model, 0, Stopped::WorkLimit));
    let mut proven = None;
    if let Some(better) = small::solve(&model, &model.totals(), &mut meter) {
        if better.compare(&plan, &model).is_lt() {
            plan = better;
            meter.improved(&plan.solution(problem, &model, 0, Stopped::WorkLimit));
        }
        proven = Some(plan.cost(&model));
    } else if model.gathered(&plan.placed(&model)) != model.totals()
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
    if run.certificate.is_none() {
        run.price(&mut meter);
    }
    if run.bound == 0 && !run.is_least() {
        // Time was up before any relaxation: of contents nothing was priced.
        if let Some(certificate) = rates::certificate(&model, &run.demand, options.lp()) {
            run.raise(run.proven(&model, &certificate), Proof::Truncated);
            meter.bound(run.bound);
        }
    }
    if !run.is_least() && !meter.stopped() {
        let mut pricer = Pricer::new(&model, options.threads);
        run.verify(&mut pricer, &mut meter);
    }
    let stopped = if run.done() {
        Stopped::GapReached
    } else if meter.asked() {
        Stopped::Asked
    } else if meter.stopped() {
        Stopped::WorkLimit
    } else {
        Stopped::Exhausted
    };
    let mut solution = run.best.solution(problem, &model, run.bound, stopped);
    solution.proof = if run.is_least() { Proof::Exact } else { run.proof };
    solution.prices =
        run.certificate.as_ref().map(|certificate| shadow::prices(problem, &model, certificate));
    let left = leave(&run);
    (solution, left)
}

/// A solve under way.
struct Run<'a> {
    problem: &'a Problem,
    model: &'a Model,
    options: &'a Options,
    /// What the plan places, counted where the count is kept: what the bound is for.
    totals: Vec<u64>,
    /// The same by class; where there are choices, the most there can be.
    demand: Vec<u64>,
    /// Whether there are choices.
    open: bool,
    best: Plan,
    bound: u64,
    /// What the bound rests on, however close the plan is to it.
    proof: Proof,
    /// Of the prices known so far, those that prove most.
    certificate: Option<Certificate>,
    /// Whether to try small problems exactly first.
    small: bool,
    /// Contents and prices that an earlier solve left.
    memory: Option<(Vec<Pattern>, Center)>,
    /// The last relaxation.
    last: Option<Relaxed>,
}

/// Steps of a dive that goes to the end.
const DEEP: u32 = 60;
/// Above this distance of objective and bound a relaxation is only good for a first plan.
const COARSE: f64 = 0.005;
/// One part of so many of the work so far may go into verifying the best prices.
const VERIFYING: u64 = 8;
/// And these units in any case: a few milliseconds.
const VERIFYING_LEAST: u64 = 10_000;
/// Attempts at improvement in a row that find nothing.
const FAILURES: u32 = 40;
/// From which fraction a dive rounds up, and its steps.
type Dive = (f64, u32);

/// Relative distance of objective and bound, rounds at most to get there, and which dives then: from which fraction they
/// round up, and their steps.
const SCHEDULE: &[(f64, u32, &[Dive])] = &[
    (0.05, 8, &[]),
    (0.02, 12, &[]),
    (0.006, 40, &[]),
    (0.002, 40, &[(0.6, DEEP)]),
    (0.001, 40, &[(0.6, DEEP), (0.8, DEEP)]),
    (0.0002, 300, &[(0.6, DEEP), (0.8, DEEP), (0.5, DEEP)]),
];

/// A dive of one step costs little more than the greedy: there is one each time the distance fell to this part.
const GLIMPSE: f64 = 0.7;
/// The distance at the first of them.
const FIRST_GLIMPSE: f64 = 0.1;

/// Up to this many pods, branching follows the first relaxation.
const BRANCH_AT_ONCE: u64 = 2_000;

/// A part of the plans: those whose counts of nodes are in `ranges`.
#[derive(Clone)]
struct Leaf {
    ranges: Ranges,
    /// The bin to branch on, and the whole nodes of it beyond the least.
    choice: Option<(u32, u64)>,
    columns: Vec<Pattern>,
    center: Center,
    /// What its bound rests on.
    proof: Proof,
}

impl Leaf {
    fn new(ranges: Ranges, branch: &Branch, relaxed: &Relaxed, proof: Proof) -> Self {
        let columns: BTreeSet<Pattern> =
            dive::pool(&branch.model, relaxed, 0.1).iter().map(|pattern| branch.restored(pattern)).collect();
        Self {
            ranges,
            choice: branch.choice(relaxed),
            columns: columns.into_iter().collect(),
            center: branch.center(relaxed),
            proof,
        }
    }
}

impl<'a> Run<'a> {
    fn new(problem: &'a Problem, model: &'a Model, options: &'a Options, best: Plan) -> Self {
        let totals = model.gathered(&best.placed(model));
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
            small: true,
            memory: None,
            last: None,
        }
    }
}

impl Run<'_> {
    /// HiGHS takes seeds that fit 31 bits.
    fn seed(&self) -> Seed {
        self.options.lp()
    }

    fn done(&self) -> bool {
        let cost = self.best.cost(self.model);
        cost <= self.bound || (cost - self.bound) as f64 <= self.options.gap_target * self.bound as f64
    }

    /// Whether nothing can be cheaper.
    fn is_least(&self) -> bool {
        self.best.cost(self.model) <= self.bound
    }

    /// Takes `bound` if it proves more, or as much by a stronger `proof`.
    fn raise(&mut self, bound: u64, proof: Proof) {
        if bound > self.bound {
            (self.bound, self.proof) = (bound, proof);
        } else if bound == self.bound {
            self.proof = self.proof.min(proof);
        }
    }

    /// Uses what an earlier solve left, where no pods are divided by choices.
    fn recall(&mut self, warm: Option<&Warm>, meter: &mut Meter<'_>) {
        let Some(warm) = warm.filter(|_| !self.open) else { return };
        let (known, prices) = warm.recall(self.problem, self.model);
        if known.is_empty() {
            return;
        }
        let plan = warm::plan(self.model, &self.demand, &known, &prices);
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
        true
    }

    /// Whether `plan` places what it should, divided as choices allow.
    fn places(&self, plan: &Plan) -> bool {
        let placed = plan.placed(self.model);
        self.model.gathered(&placed) == self.totals
            && self.model.choices.iter().all(|choice| choice.allows(&self.totals, &placed))
    }

    /// The bound that a certificate gives for a problem like `model`.
    fn proven(&self, model: &Model, certificate: &Certificate) -> u64 {
        if self.open {
            certificate.open_bound(model, &self.totals)
        } else {
            certificate.bound(model, &self.demand)
        }
    }

    fn prove(&mut self, certificate: Option<&Certificate>, meter: &mut Meter<'_>) {
        if let Some(certificate) = certificate {
            let bound = self.proven(self.model, certificate);
            let known = self.certificate.as_ref().map(|known| self.proven(self.model, known));
            if known.is_none_or(|known| bound > known || bound == known && certificate.is_complete()) {
                self.certificate = Some(certificate.clone());
            }
            self.raise(bound, certificate.proof());
            meter.bound(self.bound);
        }
    }

    /// Searches once more what the best prices known leave open.
    fn verify(&mut self, pricer: &mut Pricer<'_>, meter: &mut Meter<'_>) {
        let Some(certificate) = self.certificate.clone() else { return };
        // Where branches have proven more, these prices are history.
        if self.proven(self.model, &certificate) < self.bound {
            return;
        }
        let budget = meter.spent() / VERIFYING + VERIFYING_LEAST;
        let better = verify::verify(pricer, &certificate, &self.demand, budget, meter);
        self.prove(better.as_ref(), meter);
    }

    /// Prices for a plan that was proven without any.
    fn price(&mut self, meter: &mut Meter<'_>) {
        if meter.stopped() || self.demand.iter().all(|count| *count == 0) {
            return;
        }
        let mut start = relax::plain_columns(self.model, &self.demand);
        start.extend(self.best.nodes.keys().cloned());
        let known = open::taken(self.model, &self.best);
        let task = Task {
            demand: &self.demand,
            stock: &Stock::full(self.model),
            start,
            exchanges: &relax::exchanges(self.model),
            center: None,
            seed: self.seed(),
            cutoff: None,
            open: self.open.then_some(Open { totals: &self.totals, known: &known }),
        };
        let goal = Goal { gap: 0.001, rounds: 20, levels: (0, 1), prove: true };
        let mut pricer = Pricer::new(self.model, self.options.threads);
        let relaxed = relax::run(&mut pricer, task, goal, meter);
        self.prove(relaxed.and_then(|relaxed| relaxed.certificate).as_ref(), meter);
    }

    fn search(&mut self, meter: &mut Meter<'_>) {
        if self.done() || meter.poll() {
            return;
        }
        if self.small
            && !self.open
            && let Some((plan, cost)) = exact::solve(self.model, &self.demand, meter)
        {
            self.raise(cost, Proof::Complete);
            self.offer(plan, meter);
            if self.done() {
                return;
            }
        }
        let mut pricer = Pricer::new(self.model, self.options.threads);
        let exchanges = relax::exchanges(self.model);
        if meter.poll() {
            return;
        }
        let stock = Stock::full(self.model);
        let (known, center) = self.memory.take().unzip();
        // The master needs one feasible combination, which the plan is, and reasonable prices from the start.
        let mut start = known.unwrap_or_else(|| relax::plain_columns(self.model, &self.demand));
        start.extend(self.best.nodes.keys().cloned());
        if let Some(center) = &center {
            let certificate = relax::certify(&mut pricer, center, &self.demand, meter);
            self.prove(certificate.as_ref(), meter);
            if self.done() || meter.stopped() {
                return;
            }
        }
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
        let mut generation = Generation::new(self.model, task);
        let mut next = FIRST_GLIMPSE;
        for (gap, rounds, styles) in SCHEDULE {
            let mut left = *rounds;
            loop {
                let goal = Goal { gap: *gap, rounds: left.min(1), levels: (0, 5), prove: true };
                let end = generation.run(&mut pricer, goal, meter);
                self.prove(generation.certificate(), meter);
                if self.done() || meter.stopped() {
                    return;
                }
                if let Some(relaxed) = generation.relaxed().filter(|relaxed| relaxed.gap() <= next) {
                    next = relaxed.gap() * GLIMPSE;
                    self.dive(&mut pricer, &relaxed, &exchanges, (0.6, 1), meter);
                    if self.done() || meter.stopped() {
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
            for style in *styles {
                self.dive(&mut pricer, &relaxed, &exchanges, *style, meter);
                if self.done() || meter.stopped() {
                    return;
                }
            }
            if *gap < COARSE && self.enumerate(&relaxed, meter) {
                return;
            }
            if *gap < COARSE && demand.iter().sum::<u64>() <= BRANCH_AT_ONCE {
                self.branch(relaxed, &exchanges, meter);
                return;
            }
        }
        self.verify(&mut pricer, meter);
        if let Some(relaxed) = generation.relaxed() {
            self.improve(&mut pricer, &relaxed, &exchanges, meter);
        }
    }

    /// Gives up parts of the plan and plans them anew, until that has failed often.
    fn improve(
        &mut self,
        pricer: &mut Pricer<'_>,
        relaxed: &Relaxed,
        exchanges: &[(u32, u32)],
        meter: &mut Meter<'_>,
    ) {
        let mut failures = 0;
        let mut turn = self.options.seed;
        while failures < FAILURES && !self.done() && !meter.stopped() {
            let share = [0.02, 0.05, 0.1, 0.2][(turn % 4) as usize];
            let round_up = [0.6, 0.8, 0.5][(turn % 3) as usize];
            turn = turn.wrapping_add(1);
            let kept = improve::kept(self.model, &self.best, &relaxed.pods, share, turn);
            let demand = self.best.placed(self.model);
            let style = self.style(round_up, DEEP);
            let plan = dive::dive(pricer, &demand, kept, relaxed, exchanges, style, meter);
            failures = if plan.is_some_and(|plan| self.offer(plan, meter)) { 0 } else { failures + 1 };
        }
    }

    /// Tries all plans of a very small problem, guided by the prices of its relaxation; whether that settles it.
    fn enumerate(&mut self, relaxed: &Relaxed, meter: &mut Meter<'_>) -> bool {
        let prices = Prices::new(self.model, &relaxed.pods, &relaxed.bins, &relaxed.limits);
        let best = self.best.cost(self.model);
        // Where pods may be divided in several ways, the demand here is more than all of them.
        let settles = self.small && !self.open;
        let found =
            if settles { exact::search(self.model, &self.demand, &prices, best, meter) } else { None };
        let Some((plan, complete)) = found else { return false };
        if let Some(plan) = plan {
            self.offer(plan, meter);
        }
        if complete {
            // Nothing is cheaper than the best plan.
            self.raise(self.best.cost(self.model), Proof::Complete);
        }
        self.done()
    }

    /// Branches on counts of nodes, the branch with the least bound first, until the gap is closed.
    fn branch(&mut self, root: Relaxed, exchanges: &[(u32, u32)], meter: &mut Meter<'_>) {
        let ranges = Ranges::new();
        let Some(whole) = Branch::new(self.model, &self.demand, &ranges) else { return };
        let mut leaves = BTreeMap::new();
        leaves.insert((self.bound, 0), Leaf::new(ranges, &whole, &root, self.proof));
        let mut made = 0;
        while let Some((key, leaf)) = leaves.pop_first() {
            // All plans are in this leaf or in one whose bound is not lower.
            self.raise(key.0, leaf.proof);
            let Some((bin, least)) = leaf.choice else { return };
            if self.done() || meter.stopped() {
                return;
            }
            let (low, high) = leaf.ranges.get(&bin).copied().unwrap_or((0, UNLIMITED));
            for range in [(low, low + least), (low + least + 1, high)] {
                let mut ranges = leaf.ranges.clone();
                ranges.insert(bin, range);
                made += 1;
                let Some(branch) = Branch::new(self.model, &self.demand, &ranges) else { continue };
                let (bound, next) = self.explore(&branch, ranges, &leaf, key.0, exchanges, meter);
                if meter.stopped() {
                    return;
                }
                leaves.insert((bound, made), next);
            }
        }
        // Every branch was impossible, so nothing undercuts the plan at hand.
        self.raise(self.best.cost(self.model), Proof::Complete);
    }

    /// The bound of a branch, and what its own branches start from.
    fn explore(
        &mut self,
        branch: &Branch,
        ranges: Ranges,
        parent: &Leaf,
        known: u64,
        exchanges: &[(u32, u32)],
        meter: &mut Meter<'_>,
    ) -> (u64, Leaf) {
        let mut pricer = Pricer::new(&branch.model, self.options.threads);
        let cost = self.best.cost(self.model);
        let stock = Stock::full(&branch.model);
        let mut center = branch.around(&parent.center);
        let mut columns = branch.contents(&parent.columns);
        let mut relaxed = None;
        let taken = open::taken(self.model, &self.best);
        // Moderate prices for pods left out make steadier duals; pods that are still left out get prohibitive ones.
        for factor in [4.0, 1_000.0] {
            let missing: Vec<f64> =
                greedy::alone(self.model, &self.demand).iter().map(|price| price * factor).collect();
            let task = Task {
                demand: &self.demand,
                stock: &stock,
                start: columns,
                exchanges,
                center: Some(center),
                seed: self.seed(),
                cutoff: Some((&missing, cost.saturating_sub(branch.sunk))),
                open: self.open.then_some(Open { totals: &self.totals, known: &taken }),
            };
            let goal = Goal { gap: 0.0005, rounds: 40, levels: (0, 4), prove: true };
            let Some(found) = relax::run(&mut pricer, task, goal, meter) else {
                return (known, Leaf { choice: None, ..parent.clone() });
            };
            let settled =
                found.missing < 1e-6 || found.bound.saturating_add(branch.sunk) >= cost || meter.stopped();
            columns = dive::pool(&branch.model, &found, 0.1);
            center = (found.pods.clone(), found.bins.clone(), found.limits.clone());
            relaxed = Some(found);
            if settled {
                break;
            }
        }
        let Some(relaxed) = relaxed else { return (known, parent.clone()) };
        let (mut bound, mut proof) = (known, parent.proof);
        if let Some(certificate) = &relaxed.certificate {
            let own = self.proven(&branch.model, certificate).saturating_add(branch.sunk);
            if own >= known {
                (bound, proof) = (own, certificate.proof());
            }
        }
        if bound < cost {
            let style = self.style(0.6, DEEP);
            let demand = self.fixings(&relaxed).swap_remove(0);
            let base = Plan::default();
            if let Some(plan) = dive::dive(&mut pricer, &demand, base, &relaxed, exchanges, style, meter) {
                let mut plan = branch.plan(&plan);
                plan.downgrade(self.model);
                self.offer(plan, meter);
            }
        }
        (bound, Leaf::new(ranges, branch, &relaxed, proof))
    }

    /// Plain demands to dive for.
    fn fixings(&self, relaxed: &Relaxed) -> Vec<Vec<u64>> {
        if self.open {
            open::fixings(self.model, &self.totals, relaxed, &self.best)
        } else {
            vec![self.demand.clone()]
        }
    }

    fn style(&self, round_up: f64, steps: u32) -> Style {
        let goal = Goal { gap: 0.0005, rounds: 12, levels: (0, 0), prove: false };
        Style { round_up, steps, part: 8, goal, seed: self.seed() }
    }

    fn dive(
        &mut self,
        pricer: &mut Pricer<'_>,
        relaxed: &Relaxed,
        exchanges: &[(u32, u32)],
        (round_up, steps): (f64, u32),
        meter: &mut Meter<'_>,
    ) {
        let style = self.style(round_up, steps);
        for demand in self.fixings(relaxed) {
            let base = Plan::default();
            let plan = dive::dive(pricer, &demand, base, relaxed, exchanges, style, meter);
            if let Some(plan) = plan {
                self.offer(plan, meter);
            }
            if self.done() || meter.stopped() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NeverStop;
    use crate::problem::{ExistingNode, Gang, Limit, Spread, Topology};
    use crate::testing::{candidate, class, problem};

    fn problems() -> impl Strategy<Value = Problem> {
        let classes =
            proptest::collection::vec(([1..=6u64, 0..=6u64, 0..=2u64], 0..=3u32, 1..=7u32, 0..=1u32), 1..=4);
        let candidates =
            proptest::collection::vec((1..=40u64, [4..=12u64, 4..=12u64, 0..=4u64], 0..=4u32, 0..=2u64), 3);
        (classes, candidates, [1..=8u64, 1..=8u64, 0..=2u64], 2..=12u64).prop_map(
            |(classes, candidates, free, bound)| {
                let mut made = problem(
                    classes
                        .into_iter()
                        .map(|(requests, count, admitted, existing)| {
                            let admitted: Vec<u32> = (0..3).filter(|bit| admitted >> bit & 1 == 1).collect();
                            let mut made = class("class", requests, count, &admitted);
                            made.existing = if existing == 1 { vec![0] } else { Vec::new() };
                            made
                        })
                        .collect(),
                    candidates
                        .into_iter()
                        .map(|(price, capacity, nodes, used)| {
                            let mut made = candidate("node", price * 10_000, capacity);
                            made.max_nodes = (nodes > 0).then_some(nodes);
                            made.limit_use = if used > 0 { vec![(0, used)] } else { Vec::new() };
                            made
                        })
                        .collect(),
                );
                made.existing =
                    vec![ExistingNode { name: "old".into(), free: free.to_vec(), ..ExistingNode::default() }];
                made.limits = vec![Limit { name: "limit".into(), bound }];
                made
            },
        )
    }

    /// With the pods of the first class, or the first two, divided over zones.
    fn divided(mut problem: Problem, kind: u8, running: u32) -> Problem {
        problem.topologies =
            vec![Topology { name: "zone".into(), values: vec!["a".into(), "b".into(), "c".into()] }];
        for (index, candidate) in problem.candidates.iter_mut().enumerate() {
            candidate.domains = vec![(0, index as u32)];
        }
        problem.existing[0].domains = vec![(0, 1)];
        let classes: Vec<u32> = (0..problem.classes.len().min(1 + usize::from(kind > 0)) as u32).collect();
        if kind == 2 {
            problem.gangs = vec![Gang { name: "gang".into(), classes, within: Some(0) }];
        } else {
            problem.spreads = vec![Spread {
                name: "spread".into(),
                classes,
                topology: 0,
                max_skew: 1,
                min_domains: None,
                values: vec![0, 1, 2],
                running: vec![0, running, 0],
            }];
        }
        problem
    }

    #[test]
    fn a_branch_without_the_only_home_of_pods_that_are_left_out_is_possible() {
        let mut problem = problem(
            vec![
                class("left out", [1, 4, 0], 1, &[0]),
                class("b", [1, 0, 2], 3, &[1]),
                class("c", [1, 4, 1], 2, &[0, 1]),
            ],
            vec![candidate("small", 10_000, [4, 4, 1]), candidate("large", 40_000, [4, 4, 4])],
        );
        for candidate in &mut problem.candidates {
            candidate.limit_use = vec![(0, 2)];
        }
        problem.limits = vec![Limit { name: "limit".into(), bound: 5 }];
        let model = Model::new(&problem);
        let mut watch = NeverStop;
        let mut meter = Meter::new(&mut watch, 1_000_000);
        let best = admit::plan(&model);
        let options = Options { gap_target: 0.0, ..Options::default() };
        assert_eq!(best.placed(&model), [0, 3, 1]);
        let mut run = Run::new(&problem, &model, &options, best);
        run.small = false;
        run.search(&mut meter);
        assert_eq!(run.best.cost(&model), 80_000);
        assert!(run.bound <= 80_000, "bound {}", run.bound);
    }

    /// Without ceilings, which the exact search ignores.
    fn plentiful(mut problem: Problem) -> Problem {
        for candidate in &mut problem.candidates {
            candidate.max_nodes = None;
            candidate.limit_use = Vec::new();
        }
        problem
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_bound_of_column_generation_is_never_above_the_optimum(problem in problems()) {
            let model = Model::new(&problem);
            let mut watch = NeverStop;
            let mut meter = Meter::new(&mut watch, 1_000_000);
            let plan = admit::plan(&model);
            let options = Options { gap_target: 0.0, ..Options::default() };
            let mut run = Run::new(&problem, &model, &options, plan);
            run.small = false;
            run.search(&mut meter);
            let (exact, least) = exact::solve(&model, &run.demand, &mut meter).expect("a small problem");
            let cost = run.best.cost(&model);
            prop_assert!(least <= cost, "found {cost}, which is less than the least {least}");
            // Where scarcity binds, `least` ignores it and is itself only a bound.
            if exact.cost(&model) == least {
                prop_assert!(run.bound <= least, "bound {} above the optimum {least}", run.bound);
            }
            prop_assert_eq!(crate::check(&problem, &run.best.solution(&problem, &model, run.bound, Stopped::WorkLimit)), Ok(()));
        }

        #[test]
        fn the_bound_holds_for_every_way_to_divide_pods(problem in problems(), kind in 0..3u8, running in 0..3u32) {
            let problem = divided(problem, kind, running);
            let model = Model::new(&problem);
            let mut watch = NeverStop;
            let mut meter = Meter::new(&mut watch, 3_000_000);
            let options = Options { gap_target: 0.0, ..Options::default() };
            let mut run = Run::new(&problem, &model, &options, admit::plan(&model));
            let totals = run.totals.clone();
            run.small = false;
            run.search(&mut meter);
            prop_assert!(run.places(&run.best));
            let mut enough = Meter::new(&mut watch, u64::MAX);
            let Some(least) = small::solve(&model, &totals, &mut enough) else { return Ok(()) };
            prop_assert_eq!(model.gathered(&least.placed(&model)), totals);
            let (least, cost) = (least.cost(&model), run.best.cost(&model));
            prop_assert!(run.bound <= least, "bound {} above the optimum {least}", run.bound);
            prop_assert!(least <= cost, "found {cost}, which is less than the least {least}");
        }

        #[test]
        fn admission_by_prices_is_never_better_than_all_there_is_and_never_worse_than_greedy(problem in problems(), kind in 0..4u8, values in proptest::collection::vec(0..4u64, 4)) {
            let mut problem = if kind < 3 { divided(problem, kind, 0) } else { problem };
            for (class, value) in problem.classes.iter_mut().zip(values) {
                class.value = value;
                class.priority = (value % 2) as i32;
            }
            let model = Model::new(&problem);
            let mut watch = NeverStop;
            let mut meter = Meter::new(&mut watch, u64::MAX);
            let first = admit::plan(&model);
            let Some(best) = small::solve(&model, &model.totals(), &mut meter) else { return Ok(()) };
            prop_assert!(best.compare(&first, &model).is_le());
            if let Some(better) = admit::improve(&model, &first, Options::default().lp(), &mut meter) {
                prop_assert!(better.is_payable(&model));
                prop_assert!(better.compare(&first, &model).is_lt());
                prop_assert!(best.compare(&better, &model).is_le());
                let placed = better.placed(&model);
                prop_assert!(model.choices.iter().all(|choice| choice.allows(&model.totals(), &placed)));
            }
        }

        #[test]
        fn none_of_a_bin_or_at_least_one_of_it_are_all_plans(problem in problems().prop_map(plentiful), chosen in 0..4u32) {
            let model = Model::new(&problem);
            let demand = model.demand();
            let mut watch = NeverStop;
            let mut meter = Meter::new(&mut watch, u64::MAX);
            let bin = chosen % model.bins.len().max(1) as u32;
            prop_assume!(model.bins.get(bin as usize).is_some_and(|bin| !bin.is_existing()));
            let Some((_, least)) = exact::solve(&model, &demand, &mut meter) else { return Ok(()) };
            let mut each = Vec::new();
            for range in [(0, 0), (1, UNLIMITED)] {
                if let Some(branch) = Branch::new(&model, &demand, &Ranges::from([(bin, range)]))
                    && let Some((plan, cost)) = exact::solve(&branch.model, &demand, &mut meter)
                {
                    let plan = branch.plan(&plan);
                    prop_assert_eq!(plan.placed(&model), demand.clone());
                    prop_assert!(plan.cost(&model) <= cost + branch.sunk);
                    each.push(cost + branch.sunk);
                }
            }
            prop_assert_eq!(each.into_iter().min(), Some(least));
        }

        #[test]
        fn branching_without_a_gap_to_spare_ends_between_bound_and_cost(problem in problems().prop_map(plentiful)) {
            let model = Model::new(&problem);
            let mut watch = NeverStop;
            let mut meter = Meter::new(&mut watch, 1_000_000);
            let plan = admit::plan(&model);
            let options = Options { gap_target: 0.0, ..Options::default() };
            let mut run = Run::new(&problem, &model, &options, plan);
            run.small = false;
            run.search(&mut meter);
            let (_, least) = exact::solve(&model, &run.demand, &mut meter).expect("a small problem");
            prop_assert!(run.bound <= least && least <= run.best.cost(&model));
        }
    }
}
