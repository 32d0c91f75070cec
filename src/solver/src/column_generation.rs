//! Column generation. The master gives prices (duals). Pricing finds patterns that are worth more than they cost at these
//! prices, and adds them as columns. This repeats until the master's objective and the certified bound meet.

use std::collections::BTreeSet;

use crate::bits::BitSet;
use crate::canonical::{Bin, Model, Pattern};
use crate::diverse_columns;
use crate::dual_bound::{Ceiling, Certificate, Prices};
use crate::flow::Split;
use crate::knapsack::Effort;
use crate::lp::Seed;
use crate::master::{Column, Master, Values};
use crate::meter::Meter;
use crate::open::Open;
use crate::plan::Stock;
use crate::pricing::{Priced, Pricer};
use crate::stages::SearchStage;

/// The stopping rule.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// The relative gap between objective and bound to reach.
    pub gap: f64,
    /// The number of pricing rounds.
    pub rounds: u32,
    /// The lowest and the highest level of effort in pricing, as indices into [`EFFORTS`].
    pub levels: (usize, usize),
    /// Whether to prove a bound. Without it, as in dives, the rounds end when no column is found.
    pub prove: bool,
}

/// Search efforts per bin, each harder than the one before.
pub(crate) const EFFORTS: [Effort; 6] = [
    Effort { bits: 9, nodes: 4_000 },
    Effort { bits: 9, nodes: 16_000 },
    Effort { bits: 10, nodes: 32_000 },
    Effort { bits: 11, nodes: 64_000 },
    Effort { bits: 12, nodes: 200_000 },
    Effort { bits: 12, nodes: 500_000 },
];

/// The effort where only columns are wanted.
const GLANCE: Effort = Effort { bits: 9, nodes: 1_000 };

/// The weight of the best known prices in the smoothed prices.
const SMOOTHING: f64 = 0.5;

/// The most patterns per bin that a round adds for variety, beside the best ones.
const SPREAD: usize = 8;

/// The approximate maximum number of columns that a round adds.
const COLUMNS: usize = 250;
/// The number of bins above which a master starts with one column for each class, not three: with more, the master's
/// solve dominates the time.
const MANY_BINS: usize = 200;

/// The result of column generation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relaxed {
    /// The patterns with their value in the last master.
    pub columns: Vec<(Pattern, f64)>,
    /// The options of choices with their value in the last master.
    pub options: Vec<(u32, Split, f64)>,
    /// The pod prices of the best bound, in micro-dollars.
    pub pods: Vec<f64>,
    /// The prices of scarce bins.
    pub bins: Vec<f64>,
    /// The prices of limits.
    pub limits: Vec<f64>,
    /// The master's objective in micro-dollars.
    pub objective: f64,
    /// The number of pods that the master leaves out.
    pub missing: f64,
    /// The best certified bound for the demand.
    pub bound: u64,
    /// The proof of the bound.
    pub certificate: Option<Certificate>,
}

impl Relaxed {
    /// Returns the relative gap between objective and bound.
    pub fn gap(&self) -> f64 {
        (self.objective - self.bound as f64) / self.objective.max(1.0)
    }
}

/// The pairs of classes that are compared in one unit of work.
const PAIRS_PER_UNIT: u64 = 32;

/// Returns the pairs (i, j) such that a pod of i can take any place of a pod of j, without pairs that follow from others. Returns
/// none when `stop`, which gets units of work, returns true.
pub(crate) fn exchanges(model: &Model, stop: &mut dyn FnMut(u64) -> bool) -> Vec<(u32, u32)> {
    let n = model.classes.len();
    if !model.stages.has(SearchStage::Exchanges) {
        return Vec::new();
    }
    let homes: Vec<BitSet> = model
        .classes
        .iter()
        .map(|class| {
            let mut set = BitSet::new(model.bins.len());
            class.bins.iter().for_each(|bin| set.insert(*bin as usize));
            set
        })
        .collect();
    // The bins where flexibility or penalties matter. Most classes have none.
    let particular: Vec<Vec<&Bin>> = model
        .classes
        .iter()
        .map(|class| {
            let bins = class.bins.iter().map(|bin| &model.bins[*bin as usize]);
            bins.filter(|bin| !bin.penalties.is_empty() || !bin.rules.flexible.is_empty()).collect()
        })
        .collect();
    let row = 1 + n as u64 / PAIRS_PER_UNIT;
    let mut above: Vec<BitSet> = vec![BitSet::new(n); n];
    for i in 0..n {
        if stop(row) {
            return Vec::new();
        }
        let small = &model.classes[i];
        if !small.is_plain() {
            continue;
        }
        for j in 0..n {
            let large = &model.classes[j];
            if i != j
                && small.requests.iter().zip(&large.requests).all(|(small, large)| small <= large)
                && homes[j].is_subset(&homes[i])
                && large
                    .bins
                    .first()
                    .is_none_or(|bin| model.replaces(i as u32, j as u32, &model.bins[*bin as usize]))
                && particular[j].iter().all(|bin| {
                    bin.penalty(i as u32) <= bin.penalty(j as u32) && model.replaces(i as u32, j as u32, bin)
                })
                && (small.requests != large.requests || homes[i] != homes[j] || i < j)
            {
                above[i].insert(j);
            }
        }
    }
    let mut below: Vec<BitSet> = vec![BitSet::new(n); n];
    for (i, set) in above.iter().enumerate() {
        (0..n).filter(|j| set.contains(*j)).for_each(|j| below[j].insert(i));
    }
    let mut pairs = Vec::new();
    for (i, set) in above.iter().enumerate() {
        if stop(row) {
            return Vec::new();
        }
        for (j, lower) in below.iter().enumerate() {
            // Only direct pairs: no class lies in between.
            if set.contains(j) && !set.intersects(lower) {
                pairs.push((i as u32, j as u32));
            }
        }
    }
    pairs
}

/// The bins that are priced for one class in one unit of work.
const BINS_PER_UNIT: u64 = 8;

/// Returns patterns of one class alone, on the bins where such a pod is cheapest. They keep the prices moderate from the
/// start. Leaves out the rest of the classes when `stop`, which gets units of work, returns true.
pub(crate) fn plain_columns(
    model: &Model,
    demand: &[u64],
    stop: &mut dyn FnMut(u64) -> bool,
) -> Vec<Pattern> {
    let mut columns = BTreeSet::new();
    let variety =
        if model.bins.len() > MANY_BINS || !model.stages.has(SearchStage::StartColumns) { 1 } else { 3 };
    for (index, class) in model.classes.iter().enumerate() {
        if demand[index] == 0 {
            continue;
        }
        if stop(1 + class.bins.len() as u64 / BINS_PER_UNIT) {
            break;
        }
        let count = |bin: u32| {
            model.bins[bin as usize].holds(index as u32).min(demand[index]).clamp(1, u64::from(u32::MAX))
                as u32
        };
        let mut each: Vec<(f64, u32)> = Vec::new();
        for &bin in &class.bins {
            if model.bins[bin as usize].is_existing() {
                columns.insert(Pattern { bin, pods: vec![(index as u32, count(bin))] });
            } else {
                let cost = model.bins[bin as usize].cost(&[(index as u32, count(bin))]);
                each.push((cost as f64 / f64::from(count(bin)), bin));
            }
        }
        each.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (_, bin) in each.into_iter().take(variety) {
            columns.insert(Pattern { bin, pods: vec![(index as u32, count(bin))] });
        }
    }
    columns.into_iter().collect()
}

/// Returns the cost of a pod of `class` on the bin where it is cheapest.
fn plain_price(model: &Model, class: usize) -> f64 {
    let bins = model.classes[class].bins.iter().map(|bin| &model.bins[*bin as usize]);
    let prices = bins.map(|bin| bin.price as f64 / bin.holds(class as u32).max(1) as f64);
    prices.fold(f64::INFINITY, f64::min)
}

fn mix(old: &[f64], new: &[f64], weight: f64) -> Vec<f64> {
    old.iter().zip(new).map(|(old, new)| weight * old + (1.0 - weight) * new).collect()
}

/// The input of a relaxation.
pub(crate) struct Task<'a> {
    /// The number of pods, by class.
    pub demand: &'a [u64],
    /// The nodes that can be bought or used.
    pub stock: &'a Stock,
    /// The initial patterns; they must contain a feasible combination.
    pub start: Vec<Pattern>,
    /// Pairs from [`exchanges`].
    pub exchanges: &'a [(u32, u32)],
    /// The center of the price smoothing.
    pub center: Option<Center>,
    /// The LP backend of the master, and its seed.
    pub seed: Seed,
    /// For branches, which may be infeasible: the cost of leaving out a pod of each class, and the bound at which to
    /// stop.
    pub cutoff: Option<(&'a [f64], u64)>,
    /// The demand where there are choices. `demand` then holds the most pods that each class can have.
    pub open: Option<Open<'a>>,
}

/// Prices of pods, scarce bins and limits: the center of the smoothing.
pub(crate) type Center = (Vec<f64>, Vec<f64>, Vec<f64>);

/// The reason why the pricing rounds ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Objective and bound meet, or the bound reached the cutoff.
    Met,
    /// The number of rounds is used up.
    Rounds,
    /// Pricing finds nothing more.
    Stuck,
    /// The solve must stop, or the master failed.
    Stopped,
}

/// A relaxation in progress; [`Self::run`] continues it.
pub(crate) struct Generation<'m, 't> {
    master: Master<'m>,
    demand: &'t [u64],
    cutoff: Option<(&'t [f64], u64)>,
    open: Option<Open<'t>>,
    center: Option<Center>,
    smoothing: f64,
    tolerance: f64,
    /// The solution of the last master.
    values: Option<Values>,
    /// Whether no column was added since then.
    solved: bool,
    /// The work units of the last master's solve.
    solving: u64,
    best: Relaxed,
}

/// The work units of adding a column to the master.
const COLUMN: u64 = 4;

impl<'m, 't> Generation<'m, 't> {
    /// Creates a master with the task's columns, not yet solved. When the signal asks to stop, it lacks some of them, and
    /// [`Self::run`] does not solve it.
    pub fn new(model: &'m Model, task: Task<'t>, meter: &mut Meter<'_>) -> Self {
        let Task { demand, stock, start, exchanges, center, seed, cutoff, open } = task;
        let (asked, plain) =
            open.map_or_else(Default::default, |open| (open.asked(model), open.plain(model)));
        let rows = if open.is_some() { &plain } else { demand };
        let all_rows = open.is_some() || !exchanges.is_empty();
        let mut master = Master::new(model, rows, stock.bins(), stock.limits(), all_rows, &asked, seed);
        if let Some(open) = open {
            let wanted: Vec<f64> =
                demand.iter().enumerate().map(|(class, _)| plain_price(model, class)).collect();
            for (choice, split) in open.cheapest(model, &wanted).into_iter().chain(open.known.iter().cloned())
            {
                master.add_option(choice, split);
            }
        }
        for pattern in start {
            if meter.tick(COLUMN) {
                break;
            }
            master.add_node(pattern);
        }
        for &(small, large) in exchanges {
            if meter.tick(COLUMN) {
                break;
            }
            master.add_exchange(small, large);
        }
        if let Some((missing, _)) = cutoff {
            master.add_missing(missing);
        }
        Self {
            master,
            demand,
            cutoff,
            open,
            tolerance: if center.is_some() { 0.002 } else { 0.01 },
            center,
            smoothing: if model.stages.has(SearchStage::Smoothing) { SMOOTHING } else { 0.0 },
            values: None,
            solved: false,
            solving: 0,
            best: Relaxed::default(),
        }
    }

    /// Starts from prices that prove `bound` without a relaxation. They are the first center of the smoothing.
    pub fn start_from(&mut self, certificate: Certificate, bound: u64) {
        let (bins, limits) = certificate.rough_scarcity();
        let center = (certificate.rough(), bins, limits);
        (self.best.pods, self.best.bins, self.best.limits) = center.clone();
        (self.best.bound, self.best.certificate, self.center) = (bound, Some(certificate), Some(center));
    }

    /// Returns the proof of the best bound so far.
    pub fn certificate(&self) -> Option<&Certificate> {
        self.best.certificate.as_ref()
    }

    /// Returns the current result; `None` before the first master is solved.
    pub fn relaxed(&self) -> Option<Relaxed> {
        let values = self.values.as_ref()?;
        let valued = || self.master.columns.iter().zip(&values.columns);
        let columns: Vec<(Pattern, f64)> = valued()
            .filter_map(|(column, value)| match column {
                Column::Node(pattern) => Some((pattern.clone(), *value)),
                Column::Exchange | Column::Missing | Column::Option(..) => None,
            })
            .collect();
        let options = valued()
            .filter_map(|(column, value)| match column {
                Column::Option(choice, split) => Some((*choice, split.clone(), *value)),
                Column::Node(_) | Column::Exchange | Column::Missing => None,
            })
            .collect();
        let missing =
            valued().filter_map(|(column, value)| (*column == Column::Missing).then_some(*value)).sum();
        (!columns.is_empty()).then(|| Relaxed { columns, options, missing, ..self.best.clone() })
    }

    /// Runs pricing rounds until `goal` is met.
    pub fn run(&mut self, pricer: &mut Pricer<'m>, goal: Goal, meter: &mut Meter<'_>) -> End {
        let model = pricer.model();
        // Bins with a loose bound are searched harder.
        let mut levels: Vec<usize> =
            pricer.levels.iter().map(|level| (*level).clamp(goal.levels.0, goal.levels.1)).collect();
        for round in 0..=goal.rounds {
            let known = if self.solved { self.values.take() } else { None };
            let values = known.or_else(|| {
                let before = meter.spent();
                let values = self.master.solve(meter);
                self.solving = meter.spent() - before;
                values
            });
            let Some(values) = values else { return End::Stopped };
            self.solved = true;
            let objective = values.objective;
            self.best.objective = objective;
            if self.best.pods.is_empty() {
                (self.best.pods, self.best.bins, self.best.limits) =
                    (values.pods.clone(), values.bins.clone(), values.limits.clone());
            }
            let values = &*self.values.insert(values);
            let gap = |bound: u64| (objective - bound as f64) / objective.max(1.0);
            if gap(self.best.bound) <= goal.gap
                || self.cutoff.is_some_and(|(_, enough)| self.best.bound >= enough)
            {
                return End::Met;
            }
            if round == goal.rounds {
                break;
            }
            let (pods, bins, limits) = match &self.center {
                Some((pods, bins, limits)) if self.smoothing > 0.0 => (
                    mix(pods, &values.pods, self.smoothing),
                    mix(bins, &values.bins, self.smoothing),
                    mix(limits, &values.limits, self.smoothing),
                ),
                _ => (values.pods.clone(), values.bins.clone(), values.limits.clone()),
            };
            let prices = Prices::new(model, &pods, &bins, &limits);
            let tolerance = if model.stages.has(SearchStage::Tolerance) { self.tolerance } else { 0.0 };
            let charges: Vec<u64> = (0..model.bins.len()).map(|bin| prices.charge(model, bin)).collect();
            let tasks: Vec<(u64, Effort)> = charges
                .iter()
                .zip(&levels)
                .map(|(charge, level)| {
                    let effort = if goal.prove { EFFORTS[*level] } else { GLANCE };
                    (charge.saturating_add((*charge as f64 * tolerance) as u64), effort)
                })
                .collect();
            let mut all = pricer.price_all(&prices.pods, self.demand, &tasks, meter);
            meter.round();
            if meter.spend(all.iter().map(|priced| priced.work).sum()) {
                return End::Stopped;
            }
            if goal.prove && model.stages.has(SearchStage::Variety) {
                let at = (prices.pods.as_slice(), charges.as_slice());
                diverse_columns::add(pricer, at, self.demand, self.solving, &mut all, meter);
                if meter.stopped() {
                    return End::Stopped;
                }
            }
            let ceilings = ceilings(&all, &charges);
            let mut loose: Vec<(f64, usize)> = Vec::new();
            for (bin, priced) in all.iter().enumerate() {
                let charge = charges[bin].max(1) as f64;
                let excess = priced.upper as f64 / charge - 1.0;
                let known = priced.known().map_or(0.0, |value| value as f64 / charge - 1.0);
                if excess > known.max(tolerance) * 1.2 {
                    loose.push((excess, bin));
                }
            }
            let new = worthwhile(model, values, all);
            self.solved = false;
            let options = self.open.map_or_else(Vec::new, |open| open.improving(model, values, &pods));
            let added = new.len() + options.len();
            for (choice, split) in options {
                self.master.add_option(choice, split);
            }
            for pattern in new {
                self.master.add_node(pattern);
            }
            if goal.prove || self.best.certificate.is_none() {
                let certificate = Certificate::new(model, &prices, &ceilings);
                let bound = match self.open {
                    Some(open) => certificate.open_bound(model, open.totals),
                    None => certificate.bound(model, self.demand),
                };
                if bound > self.best.bound || self.best.certificate.is_none() {
                    self.best.bound = bound;
                    self.best.certificate = Some(certificate);
                    (self.best.pods, self.best.bins, self.best.limits) =
                        (pods.clone(), bins.clone(), limits.clone());
                    self.center = Some((pods, bins, limits));
                }
            } else {
                (self.best.pods, self.best.bins, self.best.limits) = (pods, bins, limits);
                self.center = Some((values.pods.clone(), values.bins.clone(), values.limits.clone()));
            }
            let open = gap(self.best.bound);
            if added > 0 {
                self.smoothing = if model.stages.has(SearchStage::Smoothing) { SMOOTHING } else { 0.0 };
                self.tolerance = tolerance.min((open / 8.0).max(goal.gap / 4.0));
            } else if self.smoothing > 0.0 {
                self.smoothing = 0.0;
            } else if !goal.prove {
                return End::Stuck;
            } else if tolerance > goal.gap / 4.0 {
                self.tolerance = (tolerance / 4.0).min(open / 8.0).max(goal.gap / 4.0);
            } else if loose.iter().all(|(_, bin)| levels[*bin] >= goal.levels.1) {
                return End::Stuck;
            }
            // From now on, search the bins harder that hold the bound down.
            for (excess, bin) in loose {
                if model.stages.has(SearchStage::Efforts) && (added == 0 || excess * 2.0 > open) {
                    levels[bin] = (levels[bin] + 1).min(goal.levels.1);
                    pricer.levels[bin] = pricer.levels[bin].max(levels[bin]);
                }
            }
        }
        End::Rounds
    }
}

/// Returns the upper bounds that pricing proved for each bin.
fn ceilings(all: &[Priced], charges: &[u64]) -> Vec<Ceiling> {
    let each = all.iter().zip(charges);
    each.map(|(priced, charge)| Ceiling::new(priced.upper, *charge, priced.known())).collect()
}

/// Returns the patterns that improve the master: the best of each bin, and some more for variety.
fn worthwhile(model: &Model, values: &Values, all: Vec<Priced>) -> Vec<Pattern> {
    let worth = |pods: &[(u32, u32)]| -> f64 {
        pods.iter().map(|(class, count)| values.pods[*class as usize] * f64::from(*count)).sum()
    };
    // A master that grows too fast is slow: the more bins have new patterns, the fewer each adds.
    let sources = all.iter().filter(|priced| !priced.found.is_empty()).count().max(1);
    let quota = (COLUMNS / sources).clamp(1, SPREAD);
    let mut new = Vec::new();
    for (index, priced) in all.into_iter().enumerate() {
        let bin = &model.bins[index];
        let limits: f64 =
            bin.limit_use.iter().map(|(limit, amount)| values.limits[*limit as usize] * *amount as f64).sum();
        let scarcity = values.bins[index] + limits;
        let best = if model.stages.has(SearchStage::SeveralBest) { quota.min(4) } else { 1 };
        let found = priced.found.into_iter().rev().take(best).map(|(_, pods)| pods);
        let mut others: Vec<(f64, Vec<(u32, u32)>)> =
            priced.others.into_iter().map(|pods| (worth(&pods), pods)).collect();
        others.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        new.extend(
            found
                .chain(others.into_iter().take(quota).map(|(_, pods)| pods))
                .filter(|pods| worth(pods) > bin.cost(pods) as f64 + scarcity + 0.5)
                .map(|pods| Pattern { bin: index as u32, pods }),
        );
    }
    new
}

/// Runs column generation once. Returns `None` when it was stopped before the first master was solved.
pub(crate) fn run(
    pricer: &mut Pricer<'_>,
    task: Task<'_>,
    goal: Goal,
    meter: &mut Meter<'_>,
) -> Option<Relaxed> {
    let mut generation = Generation::new(pricer.model(), task, meter);
    generation.run(pricer, goal, meter);
    generation.relaxed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{candidate, class, problem};

    #[test]
    fn the_comparison_of_classes_ends_at_the_first_look_that_says_stop() {
        let classes = (1..8).map(|size| class("class", [size, size, 0], 3, &[0])).collect();
        let model = Model::new(&problem(classes, vec![candidate("node", 1_000, [16, 16, 0])]));
        let mut looks = 0;
        let all = exchanges(&model, &mut |_| {
            looks += 1;
            false
        });
        assert!(!all.is_empty());
        assert_eq!(looks, 2 * model.classes.len());
        for patience in 0..looks {
            let mut seen = 0;
            let none = exchanges(&model, &mut |_| {
                seen += 1;
                seen > patience
            });
            assert_eq!((none, seen), (Vec::new(), patience + 1));
        }
    }
}
