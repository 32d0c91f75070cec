//! Column generation: the master's prices, smoothed, are given to the pricing, whose contents become columns, until the
//! master's objective and the certified bound meet.

use std::collections::BTreeSet;

use crate::bits::BitSet;
use crate::bound::{Certificate, Prices};
use crate::canonical::Model;
use crate::choice::Split;
use crate::knapsack::Effort;
use crate::lp::Seed;
use crate::master::{Column, Master};
use crate::meter::Meter;
use crate::open::Open;
use crate::plan::{Pattern, Stock};
use crate::pricing::Pricer;

/// When to stop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Goal {
    /// Relative distance between objective and bound.
    pub gap: f64,
    /// Rounds of pricing.
    pub rounds: u32,
    /// The first and the last step of effort in pricing.
    pub levels: (usize, usize),
    /// Who solves the master, and what varies it.
    pub seed: Seed,
}

/// Ever harder searches of one bin.
const EFFORTS: [Effort; 6] = [
    Effort { bits: 9, nodes: 4_000 },
    Effort { bits: 9, nodes: 16_000 },
    Effort { bits: 10, nodes: 32_000 },
    Effort { bits: 11, nodes: 64_000 },
    Effort { bits: 12, nodes: 200_000 },
    Effort { bits: 12, nodes: 500_000 },
];

/// What the column generation leaves behind.
#[derive(Debug, Default)]
pub(crate) struct Relaxed {
    /// Contents with their value in the last master.
    pub columns: Vec<(Pattern, f64)>,
    /// Options of choices with their value in the last master.
    pub options: Vec<(u32, Split, f64)>,
    /// Prices of pods in micro-dollars, the ones of the best bound.
    pub pods: Vec<f64>,
    /// Prices of scarce bins.
    pub bins: Vec<f64>,
    /// Prices of limits.
    pub limits: Vec<f64>,
    /// The master's objective in micro-dollars.
    pub objective: f64,
    /// Pods the master leaves out.
    pub missing: f64,
    /// The best certified bound for the demand.
    pub bound: u64,
    /// Its proof.
    pub certificate: Option<Certificate>,
}

/// Pairs (i, j) such that a pod of i takes any place of a pod of j; those that follow from others are left out.
pub(crate) fn exchanges(model: &Model) -> Vec<(u32, u32)> {
    let n = model.classes.len();
    let homes: Vec<BitSet> = model
        .classes
        .iter()
        .map(|class| {
            let mut set = BitSet::new(model.bins.len());
            class.bins.iter().for_each(|bin| set.insert(*bin as usize));
            set
        })
        .collect();
    let mut above: Vec<BitSet> = vec![BitSet::new(n); n];
    for i in 0..n {
        let small = &model.classes[i];
        if !small.is_plain() {
            continue;
        }
        for j in 0..n {
            let large = &model.classes[j];
            if i != j
                && small.requests.iter().zip(&large.requests).all(|(small, large)| small <= large)
                && homes[j].is_subset(&homes[i])
                && large.bins.iter().all(|bin| {
                    let bin = &model.bins[*bin as usize];
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
        for (j, lower) in below.iter().enumerate() {
            // Nothing in between.
            if set.contains(j) && !set.intersects(lower) {
                pairs.push((i as u32, j as u32));
            }
        }
    }
    pairs
}

/// Contents of one class alone, on the bins where such a pod is cheapest: they keep prices within reason from the start.
pub(crate) fn plain_columns(model: &Model, demand: &[u64]) -> Vec<Pattern> {
    let mut columns = BTreeSet::new();
    for (index, class) in model.classes.iter().enumerate() {
        if demand[index] == 0 {
            continue;
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
        for (_, bin) in each.into_iter().take(3) {
            columns.insert(Pattern { bin, pods: vec![(index as u32, count(bin))] });
        }
    }
    columns.into_iter().collect()
}

/// What a pod of `class` costs on the bin where it is cheapest.
fn plain_price(model: &Model, class: usize) -> f64 {
    let bins = model.classes[class].bins.iter().map(|bin| &model.bins[*bin as usize]);
    let prices = bins.map(|bin| bin.price as f64 / bin.holds(class as u32).max(1) as f64);
    prices.fold(f64::INFINITY, f64::min)
}

fn mix(old: &[f64], new: &[f64], weight: f64) -> Vec<f64> {
    old.iter().zip(new).map(|(old, new)| weight * old + (1.0 - weight) * new).collect()
}

/// What to relax.
pub(crate) struct Task<'a> {
    /// Pods by class.
    pub demand: &'a [u64],
    /// What can be bought or used.
    pub stock: &'a Stock,
    /// Contents to start with; they must contain a feasible combination.
    pub start: Vec<Pattern>,
    /// Pairs from [`exchanges`].
    pub exchanges: &'a [(u32, u32)],
    /// Where the smoothing of prices starts.
    pub center: Option<Center>,
    /// When to stop.
    pub goal: Goal,
    /// For branches, which may be impossible: what leaving out a pod of each class costs, and the bound that is high enough.
    pub cutoff: Option<(&'a [f64], u64)>,
    /// Where there are choices: what is to be placed. `demand` is then what there can be at most of each class.
    pub open: Option<Open<'a>>,
}

/// Prices of pods, scarce bins and limits.
pub(crate) type Center = (Vec<f64>, Vec<f64>, Vec<f64>);

/// Runs column generation. `None` when it was stopped before the first master was solved.
pub(crate) fn run(pricer: &mut Pricer<'_>, task: Task<'_>, meter: &mut Meter<'_>) -> Option<Relaxed> {
    let Task { demand, stock, start, exchanges, center, goal, cutoff, open } = task;
    let model = pricer.model();
    let (asked, plain) = open.map_or_else(Default::default, |open| (open.asked(model), open.plain(model)));
    let rows = if open.is_some() { &plain } else { demand };
    let all_rows = open.is_some() || !exchanges.is_empty();
    let mut master = Master::new(model, rows, stock.bins(), stock.limits(), all_rows, &asked, goal.seed);
    if let Some(open) = open {
        let wanted: Vec<f64> =
            demand.iter().enumerate().map(|(class, _)| plain_price(model, class)).collect();
        for (choice, split) in open.cheapest(model, &wanted).into_iter().chain(open.known.iter().cloned()) {
            master.add_option(choice, split);
        }
    }
    for pattern in start {
        master.add_node(pattern);
    }
    for &(small, large) in exchanges {
        master.add_exchange(small, large);
    }
    if let Some((missing, _)) = cutoff {
        master.add_missing(missing);
    }
    let mut best = Relaxed::default();
    let mut center = center;
    let mut smoothing = 0.5;
    let mut tolerance = 0.01;
    // Harder search for the bins whose bound is loose.
    let mut levels: Vec<usize> =
        pricer.levels.iter().map(|level| (*level).clamp(goal.levels.0, goal.levels.1)).collect();

    for round in 0..=goal.rounds {
        let Some(values) = master.solve(meter) else { break };
        best.objective = values.objective;
        best.missing = master
            .columns
            .iter()
            .zip(&values.columns)
            .filter_map(|(column, value)| (*column == Column::Missing).then_some(*value))
            .sum();
        best.columns = master
            .columns
            .iter()
            .zip(&values.columns)
            .filter_map(|(column, value)| match column {
                Column::Node(pattern) => Some((pattern.clone(), *value)),
                Column::Exchange | Column::Missing | Column::Option(..) => None,
            })
            .collect();
        best.options = master
            .columns
            .iter()
            .zip(&values.columns)
            .filter_map(|(column, value)| match column {
                Column::Option(choice, split) => Some((*choice, split.clone(), *value)),
                Column::Node(_) | Column::Exchange | Column::Missing => None,
            })
            .collect();
        if best.pods.is_empty() {
            (best.pods, best.bins, best.limits) =
                (values.pods.clone(), values.bins.clone(), values.limits.clone());
        }
        let gap = |bound: u64| (values.objective - bound as f64) / values.objective.max(1.0);
        if gap(best.bound) <= goal.gap || cutoff.is_some_and(|(_, enough)| best.bound >= enough) {
            break;
        }
        if round == goal.rounds {
            break;
        }
        let (pods, bins, limits) = match &center {
            Some((pods, bins, limits)) if smoothing > 0.0 => (
                mix(pods, &values.pods, smoothing),
                mix(bins, &values.bins, smoothing),
                mix(limits, &values.limits, smoothing),
            ),
            _ => (values.pods.clone(), values.bins.clone(), values.limits.clone()),
        };
        let prices = Prices::new(model, &pods, &bins, &limits);
        let mut uppers = Vec::with_capacity(model.bins.len());
        let mut added = 0;
        for (choice, split) in open.map_or_else(Vec::new, |open| open.improving(model, &values, &pods)) {
            master.add_option(choice, split);
            added += 1;
        }
        let mut loose: Vec<(f64, usize)> = Vec::new();
        let mut stopped = false;
        for bin in 0..model.bins.len() {
            let charge = prices.charge(model, bin);
            let threshold = charge.saturating_add((charge as f64 * tolerance) as u64);
            let effort = EFFORTS[levels[bin]];
            let priced = pricer.price(bin, &prices.pods, demand, threshold, effort, meter);
            uppers.push(priced.upper);
            let excess = priced.upper as f64 / charge.max(1) as f64 - 1.0;
            let known =
                priced.found.last().map_or(0.0, |(value, _)| *value as f64 / charge.max(1) as f64 - 1.0);
            if excess > known.max(tolerance) * 1.2 {
                loose.push((excess, bin));
            }
            if meter.spend(priced.work) {
                stopped = true;
                break;
            }
            let limit_cost: f64 = model.bins[bin]
                .limit_use
                .iter()
                .map(|(limit, amount)| values.limits[*limit as usize] * *amount as f64)
                .sum();
            let scarcity = values.bins[bin] + limit_cost;
            for (_, pods) in priced.found.into_iter().rev().take(4) {
                let worth: f64 =
                    pods.iter().map(|(class, count)| values.pods[*class as usize] * f64::from(*count)).sum();
                if worth > model.bins[bin].cost(&pods) as f64 + scarcity + 0.5 {
                    master.add_node(Pattern { bin: bin as u32, pods });
                    added += 1;
                }
            }
        }
        if stopped {
            break;
        }
        let certificate = Certificate::new(model, &prices, &uppers);
        let bound = match open {
            Some(open) => certificate.open_bound(model, open.totals),
            None => certificate.bound(model, demand),
        };
        if bound > best.bound || best.certificate.is_none() {
            best.bound = bound;
            best.certificate = Some(certificate);
            (best.pods, best.bins, best.limits) = (pods.clone(), bins.clone(), limits.clone());
            center = Some((pods, bins, limits));
        }
        let open = gap(best.bound);
        if added > 0 {
            smoothing = 0.5;
            tolerance = tolerance.min((open / 8.0).max(goal.gap / 4.0));
        } else if smoothing > 0.0 {
            smoothing = 0.0;
        } else if tolerance > goal.gap / 4.0 {
            tolerance = (tolerance / 4.0).min(open / 8.0).max(goal.gap / 4.0);
        } else if loose.iter().all(|(_, bin)| levels[*bin] >= goal.levels.1) {
            break;
        }
        // The bins that hold the bound down are searched harder from now on.
        for (excess, bin) in loose {
            if added == 0 || excess * 2.0 > open {
                levels[bin] = (levels[bin] + 1).min(goal.levels.1);
                pricer.levels[bin] = pricer.levels[bin].max(levels[bin]);
            }
        }
    }
    if best.columns.is_empty() { None } else { Some(best) }
}
