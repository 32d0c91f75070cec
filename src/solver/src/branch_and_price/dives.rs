//! Plans of whole nodes from a relaxation: dives, the refinement of a better plan, and large neighbourhood search.

use super::{DEEP, Run, fixings};
use crate::admit::{self, Refinement};
use crate::column_generation::{Goal, Relaxed};
use crate::dive::{self, Style};
use crate::dual_bound::Certificate;
use crate::meter::Meter;
use crate::plan::Plan;
use crate::pricing::Pricer;
use crate::stages::SearchStage;
use crate::{greedy, large_neighbourhood};

/// The number of improvement attempts without success in a row after which the search gives up.
const FAILURES: u32 = 40;
/// A better plan from a dive of one step is refined with the work so far divided by this, until this many changes in a row gain nothing.
const REFINING: u64 = 100;
const REFINING_PATIENCE: u32 = 300;
/// Above this many pairs of a class and a bin, with conflicts, one round of pricing takes seconds. The plan is then refined first,
/// with up to half of the work, until this many changes in a row gain nothing.
const VAST: usize = 1_000_000;
const VAST_PATIENCE: u32 = 4_000;

impl Run<'_> {
    /// Refines the first plan where column generation would take too long.
    pub(super) fn refine_vast(&mut self, certificate: &Certificate, meter: &mut Meter<'_>) {
        let (model, pairs) = (self.model, self.model.classes.len() * self.model.bins.len());
        if pairs < VAST || !model.bins.iter().any(|bin| bin.rules.conflicts) {
            return;
        }
        let sizes = greedy::share(model, &self.demand);
        let how = Refinement { budget: self.options.work / 2, patience: VAST_PATIENCE, is_fine: true };
        self.refine((&certificate.rough(), &sizes), how, meter);
    }

    /// Refines the plan by emptying single nodes, see [`admit::refine`].
    fn refine(&mut self, values: (&[f64], &[f64]), how: Refinement, meter: &mut Meter<'_>) {
        if self.has(SearchStage::Reinsert)
            && let Some(plan) = admit::refine(self.model, &self.best, values, self.options.seed, how, meter)
        {
            self.offer(plan, meter);
        }
    }

    /// Rounds the relaxation in one step, and refines the plan if it is better.
    pub(super) fn glimpse(
        &mut self,
        pricer: &mut Pricer<'_>,
        relaxed: &Relaxed,
        exchanges: &[(u32, u32)],
        meter: &mut Meter<'_>,
    ) {
        let before = self.best.cost(self.model);
        self.dive(pricer, relaxed, exchanges, (0.6, 1), meter);
        if self.best.cost(self.model) < before && !self.done() && !meter.stopped() {
            let budget = meter.spent() / REFINING;
            let how = Refinement { budget, patience: REFINING_PATIENCE, is_fine: false };
            self.refine((&relaxed.pods, &relaxed.pods), how, meter);
        }
    }

    pub(super) fn dive(
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

    /// Returns the plain demands to dive for.
    pub(super) fn fixings(&self, relaxed: &Relaxed) -> Vec<Vec<u64>> {
        if self.open {
            fixings::fixings(self.model, &self.totals, relaxed, &self.best)
        } else {
            vec![self.demand.clone()]
        }
    }

    pub(super) fn style(&self, round_up: f64, steps: u32) -> Style {
        let goal = Goal { gap: 0.0005, rounds: 12, levels: (0, 0), prove: false };
        let part = if self.has(SearchStage::DiveSteps) { 8 } else { usize::MAX };
        Style { round_up, steps, part, goal, seed: self.seed() }
    }

    /// Runs the large neighbourhood search until it failed [`FAILURES`] times in a row.
    pub(super) fn improve(
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
            let kept = large_neighbourhood::kept(self.model, &self.best, &relaxed.pods, share, turn);
            let demand = self.best.placed(self.model);
            let style = self.style(round_up, DEEP);
            let plan = dive::dive(pricer, &demand, kept, relaxed, exchanges, style, meter);
            failures = if plan.is_some_and(|plan| self.offer(plan, meter)) { 0 } else { failures + 1 };
        }
    }
}
