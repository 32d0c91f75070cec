//! From the relaxation to whole nodes: fix what the master wants whole, price the rest again, until nothing is left.

use std::collections::BTreeSet;

use crate::canonical::Model;
use crate::greedy::{self};
use crate::meter::Meter;
use crate::plan::{Pattern, Plan, Stock};
use crate::pricing::Pricer;
use crate::relax::{self, Goal, Relaxed};

/// How a dive goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Fractions from here on are rounded up.
    pub round_up: f64,
    /// Pricing of each residual.
    pub goal: Goal,
}

/// Contents that may serve again: used ones, and those that cost little more than they are worth.
pub(crate) fn pool(model: &Model, relaxed: &Relaxed, slack: f64) -> Vec<Pattern> {
    relaxed
        .columns
        .iter()
        .filter(|(pattern, value)| {
            let worth: f64 =
                pattern.pods.iter().map(|(class, count)| relaxed.pods[*class as usize] * f64::from(*count)).sum();
            *value > 1e-9 || worth * (1.0 + slack) >= model.bins[pattern.bin as usize].price as f64
        })
        .map(|(pattern, _)| pattern.clone())
        .collect()
}

/// Cuts contents down to what is left of the demand; empty and repeated ones are dropped.
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
    let set: BTreeSet<Pattern> = patterns.iter().map(clip).filter(|pattern| !pattern.pods.is_empty()).collect();
    set.into_iter().collect()
}

/// Builds a plan for `demand` on top of `plan`, whose nodes are given. `None` when stopped.
pub(crate) fn dive(
    model: &Model,
    pricer: &mut Pricer<'_>,
    mut plan: Plan,
    demand: &[u64],
    start: &Relaxed,
    style: Style,
    meter: &mut Meter<'_>,
) -> Option<Plan> {
    let mut left = plan.missing(model, demand);
    let mut patterns = pool(model, start, 0.05);
    let mut prices = (start.pods.clone(), start.bins.clone(), start.limits.clone());
    for _ in 0..40 {
        if left.iter().all(|count| *count == 0) {
            break;
        }
        let stock = Stock::after(model, &plan);
        let mut columns = clipped(&patterns, &left);
        columns.extend(relax::plain_columns(model, &left));
        // With scarce bins the contents known so far may not be enough: a greedy completion makes the master feasible.
        let mut rest = Plan::default();
        let mut completed = plan.clone();
        let missing = greedy::complete(model, &mut completed, left.clone(), &prices.0);
        if missing.iter().any(|count| *count > 0) {
            return None;
        }
        for (pattern, count) in &completed.nodes {
            let before = plan.nodes.get(pattern).copied().unwrap_or(0);
            if *count > before {
                rest.add(pattern.clone(), count - before);
            }
        }
        columns.extend(rest.nodes.keys().cloned());
        let relaxed = relax::run(
            model,
            pricer,
            &left,
            &stock,
            columns,
            &[],
            Some(prices.clone()),
            style.goal,
            meter,
        );
        let Some(relaxed) = relaxed.filter(|_| !meter.stopped()) else {
            if meter.stopped() {
                return None;
            }
            plan = completed;
            break;
        };
        let before = left.clone();
        let mut stock = stock;
        let mut fix = |plan: &mut Plan, left: &mut Vec<u64>, pattern: &Pattern, count: u64| {
            let count = count.min(pattern.copies(left)).min(stock.left(model, pattern.bin));
            for (class, pods) in &pattern.pods {
                left[*class as usize] -= u64::from(*pods) * count;
            }
            stock.take(model, pattern.bin, count);
            plan.add(pattern.clone(), count);
            count
        };
        let mut fractions: Vec<(f64, &Pattern)> = Vec::new();
        for (pattern, value) in &relaxed.columns {
            let whole = (value + 1e-6).floor().max(0.0);
            if whole > 0.0 {
                fix(&mut plan, &mut left, pattern, whole as u64);
            }
            if value - whole > 1e-6 {
                fractions.push((value - whole, pattern));
            }
        }
        fractions.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        for (index, (fraction, pattern)) in fractions.iter().enumerate() {
            if *fraction < style.round_up && (index > 0 || left != before) {
                break;
            }
            fix(&mut plan, &mut left, pattern, 1);
        }
        plan.fill(model, &mut left, &greedy::by_value(&relaxed.pods));
        if left == before {
            // Nothing could be fixed: the greedy completion ends it.
            plan = completed;
            break;
        }
        patterns = pool(model, &relaxed, 0.2);
        prices = (relaxed.pods, relaxed.bins, relaxed.limits);
    }
    let left = plan.missing(model, demand);
    let left = greedy::complete(model, &mut plan, left, &prices.0);
    if left.iter().any(|count| *count > 0) {
        return None;
    }
    plan.trim(model, demand);
    plan.downgrade(model);
    Some(plan)
}
