//! A dive from the relaxation to an integer plan. It fixes the whole nodes of the master's solution, prices the rest
//! again, and repeats until nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use crate::bits::BitSet;
use crate::canonical::{Model, Pattern, UNLIMITED};
use crate::column_generation::{self, Goal, Relaxed, Task};
use crate::greedy::{self};
use crate::lp::Seed;
use crate::meter::Meter;
use crate::plan::{Plan, Stock};
use crate::pricing::Pricer;
use crate::stages::SearchStage;

/// The parameters of a dive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// The fraction from which values are rounded up.
    pub round_up: f64,
    /// The maximum number of steps; the greedy heuristic places the rest.
    pub steps: u32,
    /// In one step, one of this many fractions is rounded up.
    pub part: usize,
    /// The stopping rule of pricing for each residual.
    pub goal: Goal,
    /// The LP backend of the masters, and its seed.
    pub seed: Seed,
}

/// The relative reduced cost up to which patterns are kept, at the start of a dive and between its steps. Few patterns
/// make small masters, and pricing adds what is missing.
const POOL: f64 = 0.02;
const STEP_POOL: f64 = 0.05;

/// Returns the patterns to reuse: used ones, and those with a small reduced cost.
pub(crate) fn pool(model: &Model, relaxed: &Relaxed, slack: f64) -> Vec<Pattern> {
    relaxed
        .columns
        .iter()
        .filter(|(pattern, value)| {
            let worth: f64 = pattern
                .pods
                .iter()
                .map(|(class, count)| relaxed.pods[*class as usize] * f64::from(*count))
                .sum();
            *value > 1e-9
                || worth * (1.0 + slack) >= model.bins[pattern.bin as usize].cost(&pattern.pods) as f64
        })
        .map(|(pattern, _)| pattern.clone())
        .collect()
}

/// Reduces patterns to the remaining demand, and drops empty and repeated ones.
fn clipped(patterns: &[Pattern], left: &[u64]) -> Vec<Pattern> {
    let clip = |pattern: &Pattern| {
        let pods: Vec<(u32, u32)> = pattern
            .pods
            .iter()
            .map(|(class, count)| (*class, u64::from(*count).min(left[*class as usize]) as u32))
            .filter(|(_, count)| *count > 0)
            .collect();
        Pattern { bin: pattern.bin, pods }
    };
    let set: BTreeSet<Pattern> =
        patterns.iter().map(clip).filter(|pattern| !pattern.pods.is_empty()).collect();
    set.into_iter().collect()
}

/// The classes that are compared in one unit of work.
const CLASSES_PER_UNIT: u64 = 32;

/// Returns, for every class, the classes whose places its pods can take, through any number of exchanges; `None` when `stop`, which
/// gets units of work, returns true.
fn reach(classes: usize, exchanges: &[(u32, u32)], stop: &mut dyn FnMut(u64) -> bool) -> Option<Vec<BitSet>> {
    let mut above = vec![BitSet::new(classes); classes];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); classes];
    for (small, large) in exchanges {
        next[*small as usize].push(*large as usize);
    }
    for (class, set) in above.iter_mut().enumerate() {
        let mut stack = vec![class];
        let mut seen = 0;
        while let Some(at) = stack.pop() {
            seen += 1 + next[at].len() as u64;
            for &large in &next[at] {
                if !set.contains(large) {
                    set.insert(large);
                    stack.push(large);
                }
            }
        }
        if stop(1 + seen / CLASSES_PER_UNIT) {
            return None;
        }
    }
    Some(above)
}

/// Nodes to open, and places on them: first for their own classes, then for pods that can take such a place.
struct Slots<'a> {
    nodes: Vec<(&'a Pattern, u64)>,
    places: Vec<u64>,
}

impl<'a> Slots<'a> {
    fn new(model: &Model) -> Self {
        Self { nodes: Vec::new(), places: vec![0; model.classes.len()] }
    }

    fn open(&mut self, pattern: &'a Pattern, count: u64) {
        for (class, pods) in &pattern.pods {
            self.places[*class as usize] += u64::from(*pods) * count;
        }
        self.nodes.push((pattern, count));
    }

    /// Adds the nodes to `plan` with real pods on them, taken from `left`. Empty nodes are not opened. Leaves places empty when `stop`,
    /// which gets units of work, returns true.
    fn settle(
        mut self,
        plan: &mut Plan,
        left: &mut [u64],
        above: &[BitSet],
        prices: &[f64],
        stop: &mut dyn FnMut(u64) -> bool,
    ) {
        // The pods in the places of each class, the last to be assigned first.
        let mut guests: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.places.len()];
        for class in 0..self.places.len() {
            let own = self.places[class].min(left[class]);
            if own > 0 {
                guests[class].push((class as u32, own));
                left[class] -= own;
                self.places[class] -= own;
            }
        }
        let order = greedy::by_value(prices);
        let work = 1 + order.len() as u64 / CLASSES_PER_UNIT;
        for &large in &order {
            if self.places[large as usize] > 0 && stop(work) {
                break;
            }
            for &small in &order {
                if self.places[large as usize] == 0 {
                    break;
                }
                if left[small as usize] > 0 && above[small as usize].contains(large as usize) {
                    let take = self.places[large as usize].min(left[small as usize]);
                    guests[large as usize].push((small, take));
                    left[small as usize] -= take;
                    self.places[large as usize] -= take;
                }
            }
        }
        for list in &mut guests {
            list.reverse();
        }
        for (pattern, count) in self.nodes {
            let mut open = count;
            while open > 0 {
                // As many equal nodes as the current guests fill.
                let copies = pattern
                    .pods
                    .iter()
                    .map(|(class, pods)| {
                        guests[*class as usize]
                            .last()
                            .map_or(u64::MAX, |(_, have)| (have / u64::from(*pods)).max(1))
                    })
                    .min()
                    .unwrap_or(1)
                    .min(open);
                let mut pods: BTreeMap<u32, u32> = BTreeMap::new();
                for (class, places) in &pattern.pods {
                    let mut free = u64::from(*places);
                    let list = &mut guests[*class as usize];
                    while free > 0 {
                        let Some((guest, have)) = list.last_mut() else { break };
                        let take = if copies > 1 { free } else { free.min(*have) };
                        *pods.entry(*guest).or_default() += take as u32;
                        *have -= take * copies;
                        free -= take;
                        if *have == 0 {
                            list.pop();
                        }
                    }
                }
                plan.add(Pattern { bin: pattern.bin, pods: pods.into_iter().collect() }, copies);
                open -= copies;
            }
        }
    }
}

/// Builds a plan for `demand` around the nodes of `base`, or from the relaxation alone if `base` is empty. Returns `None`
/// when stopped, or when scarce nodes leave no way to continue.
pub(crate) fn dive(
    pricer: &mut Pricer<'_>,
    demand: &[u64],
    base: Plan,
    start: &Relaxed,
    exchanges: &[(u32, u32)],
    style: Style,
    meter: &mut Meter<'_>,
) -> Option<Plan> {
    let model = pricer.model();
    let fresh = base.nodes.is_empty();
    let mut plan = base;
    let above = reach(model.classes.len(), exchanges, &mut |units| meter.tick(units))?;
    let mut left = plan.missing(model, demand);
    let mut patterns = pool(model, start, POOL);
    let mut prices = (start.pods.clone(), start.bins.clone(), start.limits.clone());
    let scarce = !model.limits.is_empty() || model.bins.iter().any(|bin| bin.available != UNLIMITED);
    for step in 0..style.steps {
        if left.iter().all(|count| *count == 0) {
            break;
        }
        let stock = Stock::after(model, &plan);
        // A dive of one step fixes the given relaxation. Others solve it again: a solution found from scratch has fewer
        // exchanges than one after many rounds, and is closer to an integer plan.
        let mut again = None;
        if step > 0 || !fresh || style.steps > 1 {
            let mut columns = clipped(&patterns, &left);
            let stop = &mut |units| meter.tick(units);
            columns.extend(column_generation::plain_columns(model, &left, stop));
            if scarce {
                // The known patterns may be infeasible together. A greedy completion makes the master feasible.
                let mut completed = plan.clone();
                let stop = &mut |units| meter.tick(units);
                let missing = greedy::complete(model, &mut completed, left.clone(), &prices.0, stop);
                if missing.iter().any(|count| *count > 0) {
                    return None;
                }
                for (pattern, count) in &completed.nodes {
                    if *count > plan.nodes.get(pattern).copied().unwrap_or(0) {
                        columns.push(pattern.clone());
                    }
                }
            }
            let task = Task {
                demand: &left,
                stock: &stock,
                start: columns,
                exchanges,
                center: Some(prices.clone()),
                seed: style.seed,
                cutoff: None,
                open: None,
            };
            again = column_generation::run(pricer, task, style.goal, meter);
            if meter.stopped() {
                return None;
            }
            if again.is_none() {
                break;
            }
        }
        let relaxed = again.as_ref().unwrap_or(start);
        let before = left.clone();
        let mut slots = Slots::new(model);
        let mut stock = stock;
        let mut fractions: Vec<(f64, &Pattern)> = Vec::new();
        // Nodes that make room in a row come before those that need it.
        let (givers, takers): (Vec<_>, Vec<_>) = relaxed.columns.iter().partition(|(pattern, _)| {
            model.bins[pattern.bin as usize].limit_use.iter().any(|(_, amount)| *amount < 0)
        });
        for (pattern, value) in givers.into_iter().chain(takers) {
            let whole = (value + 1e-6).floor().max(0.0);
            let count = (whole as u64).min(stock.left(model, pattern.bin));
            if count > 0 {
                stock.take(model, pattern.bin, count);
                slots.open(pattern, count);
            }
            if value - whole > 1e-6 {
                fractions.push((value - whole, pattern));
            }
        }
        fractions.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        // Round up a few at a time, since each changes the value of the others. A one-step dive rounds up all.
        let few = if style.steps > 1 { fractions.len() / style.part + 1 } else { fractions.len() };
        for (index, (fraction, pattern)) in fractions.iter().take(few).enumerate() {
            if *fraction < style.round_up && (index > 0 || !slots.nodes.is_empty()) {
                break;
            }
            if stock.left(model, pattern.bin) > 0 {
                stock.take(model, pattern.bin, 1);
                slots.open(pattern, 1);
            }
        }
        let stop = &mut |units| meter.tick(units);
        slots.settle(&mut plan, &mut left, &above, &relaxed.pods, stop);
        if model.stages.has(SearchStage::Fill) {
            plan.fill(model, &mut left, &greedy::by_value(&relaxed.pods), stop);
        }
        if left == before {
            // Nothing could be fixed, so the greedy completion ends the dive.
            break;
        }
        if let Some(relaxed) = again {
            patterns = pool(model, &relaxed, STEP_POOL);
            prices = (relaxed.pods, relaxed.bins, relaxed.limits);
        }
    }
    let mut stop = |units| meter.tick(units);
    let left = plan.missing(model, demand);
    let left = greedy::complete(model, &mut plan, left, &prices.0, &mut stop);
    if left.iter().any(|count| *count > 0) {
        return None;
    }
    plan.trim(model, demand);
    if !plan.is_payable(model) {
        // Nodes that should make room in a row for others were trimmed.
        plan.repair(model, &mut stop);
        let left = plan.missing(model, demand);
        let left = greedy::complete(model, &mut plan, left, &prices.0, &mut stop);
        if left.iter().any(|count| *count > 0) {
            return None;
        }
    }
    plan.downgrade(model, &mut stop);
    Some(plan)
}
