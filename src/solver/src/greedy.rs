//! The greedy cover heuristic. It finds a plan within milliseconds.
//!
//! The value of a pod is the least it can cost on a node. Each step opens the bin whose filling is worth most per dollar,
//! as often as the demand allows. Free room on existing nodes comes first, since it costs nothing.

mod fill;

use self::fill::Filler;
use crate::canonical::{Model, Pattern, Row};
use crate::plan::{Plan, Stock};
use crate::stages::SearchStage;

/// The valuation of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// The cheapest node that holds the pod.
    Alone,
    /// The pod's share of the price of the node that holds many such pods at the lowest price each.
    Share,
}

/// The preferences of a greedy run for bins, beyond their prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taste {
    /// The weight of scarce limits in the price of a node.
    scarcity: u64,
    /// Whether to avoid nodes of the kind that a node share limits, so that the share holds in any case.
    unshared: bool,
    /// Whether to leave commitments to the final costing. Without it, the nodes that they cover come first.
    uncovered: bool,
}

impl Taste {
    /// Returns the preferences that can make a difference for `model`.
    pub fn all(model: &Model) -> Vec<Self> {
        let has = |wanted: fn(&Row) -> bool| model.rows.iter().any(wanted);
        let mut tastes = vec![Self::default()];
        if !model.stages.has(SearchStage::GreedyTastes) {
            return tastes;
        }
        if has(|row| matches!(row, Row::Limit(_))) {
            tastes.extend([1, 4].map(|scarcity| Self { scarcity, ..Self::default() }));
        }
        if has(|row| matches!(row, Row::Share(_))) {
            tastes.push(Self { unshared: true, ..Self::default() });
        }
        if has(|row| matches!(row, Row::Commitment(_))) {
            tastes.push(Self { uncovered: true, ..Self::default() });
        }
        tastes
    }

    fn leaves_alone(self, model: &Model, bin: u32) -> bool {
        let bin = &model.bins[bin as usize];
        let part = || {
            bin.limit_use
                .iter()
                .any(|(row, amount)| *amount > 0 && matches!(model.rows[*row as usize], Row::Share(_)))
        };
        self.uncovered && bin.covered.is_some() || self.unshared && part()
    }

    /// Returns the price of a node of `bin` in the greedy comparison.
    fn price(self, model: &Model, bin: u32) -> f64 {
        let bin = &model.bins[bin as usize];
        if bin.covered.is_some() {
            // Covered nodes are free, but the commitment is limited: the less a node uses of it, the better.
            let used = bin
                .limit_use
                .iter()
                .filter(|(row, _)| matches!(model.rows[*row as usize], Row::Commitment(_)));
            return used.map(|(_, rate)| *rate as f64 / 1e3).sum();
        }
        if self.scarcity == 0 {
            return bin.price as f64;
        }
        // The scarcer a limit, the higher the price of a node that takes much of it.
        let shares: f64 = bin
            .limit_use
            .iter()
            .filter(|(row, _)| matches!(model.rows[*row as usize], Row::Limit(_)))
            .map(|(limit, amount)| *amount as f64 / model.limits[*limit as usize].max(1) as f64)
            .sum();
        let scale = model.bins.iter().map(|bin| bin.price).max().unwrap_or(0) as f64;
        bin.price as f64 + self.scarcity as f64 * shares * scale * 10.0
    }
}

/// Places as many pods of `left` as `stock` allows, by given values such as the duals of a relaxation, until `stop` returns
/// true. Returns the pods left.
pub(crate) fn complete(
    model: &Model,
    plan: &mut Plan,
    left: Vec<u64>,
    values: &[f64],
    stop: &mut dyn FnMut(u64) -> bool,
) -> Vec<u64> {
    let stock = Stock::after(model, plan);
    extend(model, plan, left, stock, (values, Taste::default()), stop)
}

/// Returns the classes by descending value.
pub(crate) fn by_value(values: &[f64]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..values.len() as u32).collect();
    order.sort_by(|a, b| values[*b as usize].total_cmp(&values[*a as usize]).then(a.cmp(b)));
    order
}

/// Returns the cost of a pod of each class on the cheapest node that holds it.
pub(crate) fn alone(model: &Model, demand: &[u64]) -> Vec<f64> {
    values(model, demand, Value::Alone)
}

/// Returns the cost of a pod of each class on the cheapest node filled with such pods.
pub(crate) fn share(model: &Model, demand: &[u64]) -> Vec<f64> {
    values(model, demand, Value::Share)
}

/// Returns the value of a pod of each class, in micro-dollars.
pub(crate) fn values(model: &Model, demand: &[u64], value: Value) -> Vec<f64> {
    let mut least = vec![f64::INFINITY; model.classes.len()];
    for bin in model.bins.iter().filter(|bin| !bin.is_existing() && bin.covered.is_none()) {
        for (position, class) in bin.classes.iter().map(|class| *class as usize).enumerate() {
            let share = match value {
                Value::Alone => 1,
                Value::Share => bin.holds[position].min(demand[class]).max(1),
            };
            let penalty = bin.penalties.get(position).copied().unwrap_or(0);
            least[class] = least[class].min(bin.price as f64 / share as f64 + penalty as f64);
        }
    }
    // A class that fits only existing nodes, or that costs nothing, must still be placed.
    least.into_iter().map(|least| if least.is_finite() { least.max(1.0) } else { 1.0 }).collect()
}

/// The best filling of a bin when it was last filled.
struct Fill {
    pattern: Pattern,
    ratio: f64,
}

/// The classes that a bin is filled with in one unit of work, and the bins that are compared in one.
const CLASSES_PER_UNIT: u64 = 16;
const BINS_PER_UNIT: u64 = 256;

/// Opens bins for `left` until nothing more can be placed, or until `stop`, which gets units of work, returns true. Returns the
/// pods left.
pub(crate) fn extend(
    model: &Model,
    plan: &mut Plan,
    mut left: Vec<u64>,
    mut stock: Stock,
    (values, taste): (&[f64], Taste),
    stop: &mut dyn FnMut(u64) -> bool,
) -> Vec<u64> {
    let Some(mut filler) = Filler::new(model, values, &left, stop) else { return left };
    let prices: Vec<f64> = (0..model.bins.len() as u32).map(|bin| taste.price(model, bin)).collect();
    let mut fill = |bin: u32, left: &[u64]| -> Option<Fill> {
        let node = &model.bins[bin as usize];
        let mut best: Option<Fill> = None;
        for pods in filler.fillings(bin, left) {
            let worth: f64 =
                pods.iter().map(|(class, count)| values[*class as usize] * f64::from(*count)).sum();
            let penalties = (node.cost(&pods) - node.price) as f64;
            let ratio = worth / (prices[bin as usize] + penalties).max(1e-3);
            if !pods.is_empty() && best.as_ref().is_none_or(|best| ratio > best.ratio) {
                best = Some(Fill { pattern: Pattern { bin, pods }, ratio });
            }
        }
        best
    };
    // Some nodes make room in these rows, so a bin that such a row closes may open again.
    let mut gives = vec![false; model.limits.len()];
    for (row, _) in model.bins.iter().flat_map(|bin| &bin.limit_use).filter(|(_, amount)| *amount < 0) {
        gives[*row as usize] = true;
    }
    let opens = |stock: &Stock, bin: u32| {
        stock.left(model, bin) > 0
            || stock.bins()[bin as usize] > 0
                && model.bins[bin as usize]
                    .limit_use
                    .iter()
                    .all(|(row, amount)| gives[*row as usize] || stock.limits()[*row as usize] >= *amount)
    };
    let work = |bin: usize| 1 + model.bins[bin].classes.len() as u64 / CLASSES_PER_UNIT;
    let mut fills: Vec<Option<Fill>> = Vec::with_capacity(model.bins.len());
    for bin in 0..model.bins.len() as u32 {
        let is_open = opens(&stock, bin) && !taste.leaves_alone(model, bin);
        fills.push(if is_open { fill(bin, &left) } else { None });
        if stop(work(bin as usize)) {
            return left;
        }
    }
    // Without rows, buying a bin closes no other bin.
    let closes_itself = model.limits.is_empty();
    loop {
        if left.iter().all(|count| *count == 0) || stop(1 + fills.len() as u64 / BINS_PER_UNIT) {
            return left;
        }
        let mut best: Option<(usize, f64)> = None;
        for (index, candidate) in fills.iter().enumerate() {
            if let Some(candidate) = candidate
                && best.is_none_or(|(_, ratio)| candidate.ratio > ratio)
                && stock.left(model, index as u32) > 0
            {
                best = Some((index, candidate.ratio));
            }
        }
        let Some((index, _)) = best else { return left };
        let bin = index as u32;
        let Some(chosen) = &fills[index] else { return left };
        if chosen.pattern.copies(&left) == 0 {
            // Fewer pods seldom fill a node better. The old ratio is an estimate of the best ratio now, so only the most
            // promising bin is filled again.
            fills[index] = fill(bin, &left);
            if stop(work(index)) {
                return left;
            }
            continue;
        }
        let copies = chosen.pattern.copies(&left).min(stock.left(model, bin));
        if copies > 0 {
            for (class, count) in &chosen.pattern.pods {
                left[*class as usize] -= u64::from(*count) * copies;
            }
            stock.take(model, bin, copies);
            plan.add(chosen.pattern.clone(), copies);
        }
        let touched = if closes_itself { index..index + 1 } else { 0..fills.len() };
        for index in touched {
            if fills[index].is_some() && !opens(&stock, index as u32) {
                fills[index] = None;
            }
        }
    }
}
