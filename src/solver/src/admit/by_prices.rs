//! Admission by prices. Where many pods are left out, the prices of a relaxation show which resources are scarce. No
//! greedy heuristic finds them.
//!
//! The relaxation decides one priority after the other. Leaving out a pod costs far more than any node, in proportion to
//! the pod's value. Placed pods of higher priorities stay placed. The plan takes the relaxation's whole nodes. The
//! relaxation's prices guide the rest.

use super::{Attempt, levels};
use crate::canonical::Model;
use crate::column_generation::{self, Goal, Relaxed, Task};
use crate::greedy::{self, Taste, Value};
use crate::lp::Seed;
use crate::meter::Meter;
use crate::open::{self, Open};
use crate::plan::{Plan, Stock};
use crate::pricing::Pricer;

/// Returns a plan that is better than `best`, if it finds one.
pub(crate) fn improve(model: &Model, best: &Plan, seed: Seed, meter: &mut Meter<'_>) -> Option<Plan> {
    let totals = model.totals();
    let (level_of, levels) = levels(model);
    let base = greedy::values(model, &model.demand(), Value::Share);
    let mut current = best.clone();
    let mut wanted = vec![0; totals.len()];
    let mut pricer = Pricer::until(model, 0, &mut |units| meter.tick(units))?;
    for level in levels {
        let mut asked = wanted.clone();
        for (class, asked) in asked.iter_mut().enumerate() {
            if level_of[class] == level {
                *asked = totals[class];
            }
        }
        let placed = |plan: &Plan| model.gathered(&plan.placed(model));
        if placed(&current).iter().zip(&asked).any(|(placed, asked)| placed < asked) {
            let costs = leaving_out(model, &base, |class| level_of[class] == level);
            let relaxed = relaxed(&mut pricer, &asked, &current, &costs, seed, meter)?;
            let prices: Vec<f64> = relaxed
                .pods
                .iter()
                .zip(&base)
                .map(|(price, base)| if *price > 0.0 { *price } else { *base })
                .collect();
            for (from, taste) in [(1.0, Taste::default()), (0.6, Taste::default())] {
                let attempt = Attempt { model, totals: &totals, values: &prices, taste };
                let plan = attempt.round(&relaxed, &asked, from, level, &mut |units| meter.tick(units));
                if plan.is_payable(model)
                    && attempt.is_allowed(&plan)
                    && plan.compare(&current, model).is_lt()
                {
                    current = plan;
                }
            }
        }
        for (class, count) in placed(&current).into_iter().enumerate() {
            if level_of[class] == level {
                wanted[class] = count;
            }
        }
        if meter.stopped() {
            break;
        }
    }
    current.compare(best, model).is_lt().then_some(current)
}

/// Returns the cost of leaving out a pod of each class, in micro-dollars: in proportion to its value for the level in
/// question, more for the other levels.
fn leaving_out(model: &Model, base: &[f64], asked: impl Fn(usize) -> bool) -> Vec<f64> {
    let dearest = base.iter().copied().fold(1.0, f64::max);
    let values = || (0..base.len()).filter(|class| asked(*class)).map(|class| model.classes[class].value);
    let most = values().max().unwrap_or(0);
    let cost = |class: usize| match model.classes[class].value {
        _ if !asked(class) => 1e6 * dearest,
        _ if most == 0 => 1e3 * dearest,
        value => (value as f64 / most as f64).max(1e-3) * 1e3 * dearest,
    };
    (0..base.len()).map(cost).collect()
}

fn relaxed(
    pricer: &mut Pricer<'_>,
    asked: &[u64],
    current: &Plan,
    costs: &[f64],
    seed: Seed,
    meter: &mut Meter<'_>,
) -> Option<Relaxed> {
    let model = pricer.model();
    let most = model.most(asked);
    let mut start = column_generation::plain_columns(model, &most, &mut |units| meter.tick(units));
    start.extend(current.nodes.keys().cloned());
    let known = open::taken(model, current);
    let task = Task {
        demand: &most,
        stock: &Stock::full(model),
        start,
        exchanges: &[],
        center: None,
        seed,
        cutoff: Some((costs, u64::MAX)),
        open: model.is_open(asked).then_some(Open { totals: asked, known: &known }),
    };
    let goal = Goal { gap: 0.001, rounds: 30, levels: (0, 1), prove: true };
    column_generation::run(pricer, task, goal, meter)
}

impl Attempt<'_> {
    /// Takes the nodes of `relaxed`, rounding up from the fraction `from`; then adds the rest of `asked`, then the lower
    /// levels.
    fn round(
        &self,
        relaxed: &Relaxed,
        asked: &[u64],
        from: f64,
        level: i32,
        stop: &mut dyn FnMut(u64) -> bool,
    ) -> Plan {
        let model = self.model;
        let mut plan = Plan::default();
        let mut stock = Stock::full(model);
        for (pattern, value) in &relaxed.columns {
            let whole = (value + 1.0 - from + 1e-6).floor().max(0.0);
            let count = (whole as u64).min(stock.left(model, pattern.bin));
            stock.take(model, pattern.bin, count);
            plan.add(pattern.clone(), count);
        }
        let placed = plan.placed(model);
        let mut target: Vec<u64> =
            placed.iter().zip(asked).map(|(placed, asked)| (*placed).min(*asked)).collect();
        let prices = vec![0; placed.len()];
        for choice in &model.choices {
            for class in choice.cells() {
                target[class as usize] = 0;
            }
            // Remove incomplete gangs, which makes room for complete ones.
            for (class, count) in choice.largest(asked, &prices, Some(&placed)) {
                target[class as usize] = count;
            }
        }
        plan.trim(model, &target);
        self.again(&mut plan, asked, stop);
        self.from(plan, Some(level), stop)
    }
}
