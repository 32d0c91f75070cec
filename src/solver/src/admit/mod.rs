//! Admission decides which pods are placed when there is no room for all. Higher priorities come first. Within a priority
//! the more valuable pods come first, then the larger number of pods, then the cheaper plan. A gang is placed whole or
//! not at all. A spread stays even.
//!
//! An exact search decides small problems ([`crate::small_exact`]). For others, the best of several greedy covers is
//! taken. [`insertion`] then replans its new nodes, pod by pod. Incomplete gangs give their room back, and a spread that
//! cannot place pods in one value does not place them in the others. Where time allows, the prices of a relaxation decide
//! better ([`by_prices`]).

mod by_prices;
mod insertion;
mod reinsertion;

use std::collections::BTreeSet;

use self::insertion::{Order, Rule, planned_anew};
use crate::canonical::Model;
use crate::choice::Choice;
use crate::greedy::{self, Taste, Value};
use crate::meter::{Brake, POLL};
use crate::plan::{Plan, Stock};
use crate::stages::SearchStage;

pub(crate) use by_prices::improve;
pub(crate) use reinsertion::{Refinement, refine};

/// Returns the best of several greedy covers. It places every pod if any of them does.
pub(crate) fn plan(model: &Model) -> Plan {
    /// Ends nothing.
    struct Never;
    impl Brake for Never {
        fn stops(&mut self, _: u64) -> bool {
            false
        }
        fn gives_up(&mut self, _: u64) -> bool {
            false
        }
    }
    plan_until(model, &mut Never)
}

/// Like [`plan`], or the best of the first few plans when `brake` stops. The first cover and the first insertions end only when it
/// gives up. Then the plan may leave out pods that others would place.
pub(crate) fn plan_until(model: &Model, brake: &mut dyn Brake) -> Plan {
    let totals = model.totals();
    let most = model.demand();
    let mut best: Option<Plan> = None;
    for value in [Value::Alone, Value::Share] {
        if value == Value::Alone && !model.stages.has(SearchStage::GreedyAlone) {
            continue;
        }
        let values = greedy::values(model, &most, value);
        for taste in Taste::all(model) {
            let has_plan = best.is_some();
            if has_plan && brake.stops(POLL) {
                break;
            }
            let attempt = Attempt { model, totals: &totals, values: &values, taste };
            for plan in attempt.plans(&mut |units| brake.ends(has_plan, units)) {
                if plan.is_payable(model)
                    && best.as_ref().is_none_or(|best| plan.compare(best, model).is_lt())
                {
                    best = Some(plan);
                }
            }
        }
    }
    let mut best = best.unwrap_or_default();
    for (turn, (stage, rule, order)) in INSERTIONS.iter().enumerate() {
        if !model.stages.has(*stage) {
            continue;
        }
        let may_stop = turn >= INSERTIONS_AT_LEAST;
        if may_stop && brake.stops(POLL) || brake.gives_up(0) {
            break;
        }
        if let Some(plan) =
            planned_anew(model, &best, *rule, *order, &mut |units| brake.ends(may_stop, units))
            && plan.compare(&best, model).is_lt()
            && plan.is_payable(model)
        {
            best = plan;
        }
    }
    best
}

/// The ways in which the pods of the best cover are planned again, pod by pod. The first is first fit, so that no plan
/// costs more than first fit.
const INSERTIONS: &[(SearchStage, Rule, Order)] = &[
    (SearchStage::InsertFirstFit, Rule::FewestPods, Order::Requests),
    (SearchStage::InsertApart, Rule::LeastPrice, Order::Apart),
    (SearchStage::InsertDearest, Rule::LeastPrice, Order::Worth),
];
/// The number of these that run even when time is up.
const INSERTIONS_AT_LEAST: usize = 2;

/// Returns the priority with which each class is placed, and all priorities, highest first. A group is placed with the
/// highest priority of its classes.
fn levels(model: &Model) -> (Vec<i32>, Vec<i32>) {
    let mut level_of: Vec<i32> = model.classes.iter().map(|class| class.priority).collect();
    for choice in &model.choices {
        let highest = choice.cells().map(|class| level_of[class as usize]).max().unwrap_or(0);
        for class in choice.cells() {
            level_of[class as usize] = highest;
        }
    }
    let mut levels = level_of.clone();
    levels.sort_unstable_by(|a, b| b.cmp(a));
    levels.dedup();
    (level_of, levels)
}

/// One way to value pods and nodes.
struct Attempt<'a> {
    model: &'a Model,
    totals: &'a [u64],
    values: &'a [f64],
    taste: Taste,
}

/// The divisions already known to fail.
#[derive(Clone)]
struct Tried {
    /// The most pods of each class.
    caps: Vec<u64>,
    /// The gangs that are left out.
    out: BTreeSet<usize>,
}

/// The number of times that groups that do not fit are divided again, before they are reduced to the pods that fit.
const ROUNDS: usize = 12;
/// The maximum number of gangs that get a second offer of room.
const AGAIN: usize = 64;

impl Attempt<'_> {
    fn plans(&self, stop: &mut dyn FnMut(u64) -> bool) -> Vec<Plan> {
        let mut tried = Tried { caps: vec![u64::MAX; self.totals.len()], out: BTreeSet::new() };
        let demand = self.demand(self.totals, &mut tried);
        let mut plan = Plan::default();
        let left = self.place(&mut plan, demand, stop);
        if tried.out.is_empty() && self.complete(&plan) && left.iter().all(|count| *count == 0) {
            plan.downgrade(self.model, stop);
            return vec![plan];
        }
        let scarce: Vec<f64> = self
            .model
            .classes
            .iter()
            .zip(self.values)
            .map(|(class, value)| if class.value > 0 { class.value as f64 * 1e6 } else { value.min(1.0) })
            .collect();
        let worth = Attempt { values: &scarce, ..*self };
        vec![self.by_priority(stop), worth.by_priority(stop)]
    }

    /// Returns whether all pods are placed.
    fn complete(&self, plan: &Plan) -> bool {
        self.model.gathered(&plan.placed(self.model)) == self.totals
    }

    /// Fills free room first, then new nodes. Returns the pods left.
    fn place(&self, plan: &mut Plan, mut left: Vec<u64>, stop: &mut dyn FnMut(u64) -> bool) -> Vec<u64> {
        plan.fill(self.model, &mut left, &greedy::by_value(self.values), stop);
        let stock = Stock::after(self.model, plan);
        greedy::extend(self.model, plan, left, stock, (self.values, self.taste), stop)
    }

    /// Returns a demand by class for `totals`: every choice in its cheapest division that did not fail. Gangs without a
    /// division left are left out.
    fn demand(&self, totals: &[u64], tried: &mut Tried) -> Vec<u64> {
        let mut demand = totals.to_vec();
        let prices: Vec<u64> = self.values.iter().map(|value| *value as u64).collect();
        for (index, choice) in self.model.choices.iter().enumerate() {
            for class in choice.cells() {
                demand[class as usize] = 0;
            }
            if tried.out.contains(&index) {
                continue;
            }
            let caps = Some(tried.caps.as_slice());
            let split = match choice.cheapest(totals, &prices, caps) {
                Some((_, split)) => split,
                None if choice.is_gang() => {
                    tried.out.insert(index);
                    continue;
                }
                None => choice.largest(totals, &prices, caps),
            };
            for (class, count) in split {
                demand[class as usize] = count;
            }
        }
        demand
    }

    /// Places the highest priority first; each level may use the room that the levels above left.
    fn by_priority(&self, stop: &mut dyn FnMut(u64) -> bool) -> Plan {
        self.from(Plan::default(), None, stop)
    }

    /// Adds the levels below `above`, or all levels, to `plan`.
    fn from(&self, mut plan: Plan, above: Option<i32>, stop: &mut dyn FnMut(u64) -> bool) -> Plan {
        let model = self.model;
        let (level_of, levels) = levels(model);
        for level in levels.into_iter().filter(|level| above.is_none_or(|above| *level < above)) {
            let totals: Vec<u64> = self
                .totals
                .iter()
                .zip(&level_of)
                .map(|(count, of)| if *of == level { *count } else { 0 })
                .collect();
            let kept = plan.placed(model);
            self.level(&mut plan, &totals, &kept, stop);
        }
        plan.downgrade(model, stop);
        plan
    }

    /// Returns whether gangs are whole, spreads are even, and no pod is placed twice.
    fn is_allowed(&self, plan: &Plan) -> bool {
        let placed = plan.placed(self.model);
        self.model.gathered(&placed).iter().zip(self.totals).all(|(placed, wanted)| placed <= wanted)
            && self.model.choices.iter().all(|choice| choice.allows(self.totals, &placed))
    }

    /// Places as many pods of `totals` as possible; `kept` are placed already. When `stop` returns true, fewer are placed, and
    /// gangs are still whole and spreads even.
    fn level(&self, plan: &mut Plan, totals: &[u64], kept: &[u64], stop: &mut dyn FnMut(u64) -> bool) {
        let model = self.model;
        let mut tried = Tried { caps: vec![u64::MAX; totals.len()], out: BTreeSet::new() };
        let base = plan.clone();
        for round in 0..ROUNDS {
            *plan = base.clone();
            let demand = self.demand(totals, &mut tried);
            self.place(plan, demand.clone(), stop);
            let placed = plan.placed(model);
            let short = |class: u32| placed[class as usize] - kept[class as usize] < demand[class as usize];
            let mut gangs: Vec<usize> = Vec::new();
            let mut changed = false;
            for (index, choice) in model.choices.iter().enumerate() {
                if !choice.cells().any(short) {
                    continue;
                }
                if choice.is_gang() {
                    gangs.push(index);
                    continue;
                }
                for class in choice.cells().filter(|class| short(*class)) {
                    tried.caps[class as usize] = placed[class as usize] - kept[class as usize];
                    changed = true;
                }
            }
            if gangs.is_empty() && !changed || round + 1 == ROUNDS || stop(POLL) {
                break;
            }
            // The gangs with the lowest value per cost make room first, half of them at a time.
            gangs.sort_by(|a, b| {
                let worth = |index: &usize| self.density(&model.choices[*index], totals);
                worth(a).total_cmp(&worth(b)).then(b.cmp(a))
            });
            for &index in &gangs[..gangs.len().div_ceil(2)] {
                let choice = &model.choices[index];
                // Try another value first, if the gang has one.
                for class in choice.cells().filter(|class| demand[*class as usize] > 0) {
                    tried.caps[class as usize] = 0;
                }
            }
        }
        self.repair(plan, kept);
        if !plan.is_payable(model) {
            // Removing a gang also removed nodes that made room in a row.
            *plan = base;
        }
        self.again(plan, totals, stop);
    }

    /// Returns the value of a gang's pods per cost.
    fn density(&self, choice: &Choice, totals: &[u64]) -> f64 {
        let (mut worth, mut cost) = (0.0, 0.0);
        for part in &choice.parts {
            let count = totals[part.owner as usize] as f64;
            worth += self.model.classes[part.owner as usize].value.max(1) as f64 * count;
            cost += self.values[part.owner as usize] * count;
        }
        worth / cost.max(1e-9)
    }

    /// Removes incomplete gangs, and pods that make spreads uneven. [`Self::again`] offers the room to gangs and plain
    /// classes of the plan's own level.
    fn repair(&self, plan: &mut Plan, kept: &[u64]) {
        let model = self.model;
        let placed = plan.placed(model);
        let gathered = model.gathered(&placed);
        let prices = vec![0; placed.len()];
        let mut target = placed.clone();
        for choice in &model.choices {
            if choice.allows(self.totals, &placed) || choice.cells().any(|class| kept[class as usize] > 0) {
                continue;
            }
            for class in choice.cells() {
                target[class as usize] = 0;
            }
            if !choice.is_gang() {
                for (class, count) in choice.largest(&gathered, &prices, Some(&placed)) {
                    target[class as usize] = count;
                }
            }
        }
        if target != placed {
            plan.trim(model, &target);
        }
    }

    /// Offers the remaining room to whole gangs and then to plain classes once more.
    fn again(&self, plan: &mut Plan, totals: &[u64], stop: &mut dyn FnMut(u64) -> bool) {
        let model = self.model;
        if !model.stages.has(SearchStage::OfferAgain) || stop(POLL) {
            return;
        }
        let missing = |plan: &Plan| -> Vec<u64> {
            let placed = model.gathered(&plan.placed(model));
            totals.iter().zip(placed).map(|(wanted, placed)| wanted.saturating_sub(placed)).collect()
        };
        let left = missing(plan);
        let mut waiting: Vec<&Choice> = model
            .choices
            .iter()
            .filter(|choice| {
                choice.is_gang() && choice.parts.iter().any(|part| left[part.owner as usize] > 0)
            })
            .collect();
        waiting.sort_by(|a, b| self.density(b, totals).total_cmp(&self.density(a, totals)));
        for choice in waiting.into_iter().take(AGAIN) {
            let mut caps = vec![u64::MAX; totals.len()];
            let prices: Vec<u64> = self.values.iter().map(|value| *value as u64).collect();
            for _ in 0..8 {
                let Some((_, split)) = choice.cheapest(totals, &prices, Some(&caps)) else { break };
                let mut demand = vec![0; totals.len()];
                for (class, count) in split {
                    demand[class as usize] = count;
                    caps[class as usize] = 0;
                }
                let mut tried = plan.clone();
                if self.place(&mut tried, demand, stop).iter().all(|count| *count == 0) {
                    *plan = tried;
                    break;
                }
            }
        }
        let mut left = missing(plan);
        for (left, class) in left.iter_mut().zip(&model.classes) {
            if class.choice.is_some() {
                *left = 0;
            }
        }
        if left.iter().any(|count| *count > 0) {
            self.place(plan, left, stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{candidate, class, problem};

    #[test]
    fn a_first_plan_that_is_told_to_stop_is_whole_and_little_work_follows() {
        let all: Vec<u32> = (0..40).collect();
        let classes = (0..120).map(|at| class("class", [1 + at % 7, 1 + at % 11, 0], 5, &all)).collect();
        let node = |at: u64| candidate("node", 10_000 * (at + 3) + at * at, [8 + at, 40 - at / 2, 0]);
        let model = Model::new(&problem(classes, (0..40).map(node).collect()));
        let mut all = Looks { patience: u64::MAX, ..Looks::default() };
        let best = plan_until(&model, &mut all);
        assert!(all.at_better > 50, "{} looks", all.at_better);
        for patience in [0, 1, 2, 5, 10, 20, 40] {
            let mut signal = Looks { patience, ..Looks::default() };
            let plan = plan_until(&model, &mut signal);
            let Looks { at_better: looks, units_after, .. } = signal;
            assert_eq!(model.gathered(&plan.placed(&model)), model.totals());
            assert!(plan.cost(&model) >= best.cost(&model), "fewer tries find no cheaper plan");
            assert!(looks <= patience + 20, "{looks} looks with patience for {patience}");
            assert!(units_after <= 20 * POLL, "{units_after} units after it was told to stop");
        }
    }

    #[test]
    fn a_first_plan_that_nobody_waits_for_is_given_up_at_the_next_look() {
        let all: Vec<u32> = (0..40).collect();
        let classes = (0..120).map(|at| class("class", [1 + at % 7, 1 + at % 11, 0], 5, &all)).collect();
        let node = |at: u64| candidate("node", 10_000 * (at + 3) + at * at, [8 + at, 40 - at / 2, 0]);
        let model = Model::new(&problem(classes, (0..40).map(node).collect()));
        let mut whole = Looks { patience: u64::MAX, ..Looks::default() };
        plan_until(&model, &mut whole);
        assert!(whole.at_first > 50, "{} looks", whole.at_first);
        for waits in [0, 1, 10, 40] {
            let mut signal = Looks { waits: Some(waits), ..Looks::default() };
            let plan = plan_until(&model, &mut signal);
            assert!(signal.at_first <= waits + 20, "{} looks after {waits}", signal.at_first);
            assert!(signal.units_after <= 20 * POLL, "{} units after {waits}", signal.units_after);
            assert!(plan.placed(&model).iter().zip(model.totals()).all(|(placed, wanted)| *placed <= wanted));
        }
    }

    /// A brake that stops after some looks, or gives up after some. It counts the looks, and the units that follow the last one that
    /// matters.
    #[derive(Default)]
    struct Looks {
        patience: u64,
        waits: Option<u64>,
        at_better: u64,
        at_first: u64,
        units_after: u64,
    }

    impl Looks {
        fn has_given_up(&self) -> bool {
            self.waits.is_some_and(|waits| self.at_first > waits)
        }
    }

    impl Brake for Looks {
        fn stops(&mut self, units: u64) -> bool {
            self.at_better += 1;
            self.units_after += if self.at_better > self.patience.saturating_add(1) { units } else { 0 };
            self.at_better > self.patience
        }

        fn gives_up(&mut self, units: u64) -> bool {
            if self.has_given_up() {
                self.units_after += units;
            }
            self.at_first += 1;
            self.has_given_up()
        }
    }
}
