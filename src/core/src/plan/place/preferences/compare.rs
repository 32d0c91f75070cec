//! Compares plans with and without preferences. Preferences must leave no pod unplaced, and a plan with them must cost at most
//! [`DEARER`] times as much.

use crate::plan::pack::solves::inputs::SolveInputs;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use poolwright_catalog::{ResourceList, UsdPerHour};
use poolwright_solver::StopSignal;

use crate::model::plan::Plan;
use crate::model::relaxed::{PreferencePolicy, WhyRelaxed};
use crate::plan::attempt::Attempt;
use crate::plan::context::PlanContext;
use crate::plan::pack::solves::packing::Packing;
use crate::plan::place::preferences::estimates;
use crate::plan::place::preferences::kept::PreferenceChoice;
use crate::plan::place::topology::DEARER;
use crate::supply::offerings::Supply;

impl PreferenceChoice<'_> {
    /// Returns a lower bound for the cost of new nodes without preferences; `None` if it is unknown or not needed. It is unknown
    /// if pods use existing nodes, if there are commitments, or if preferences decided between places.
    pub fn floor(&self, inputs: &SolveInputs<'_, '_>, outcome: &Packing<'_>) -> Option<UsdPerHour> {
        if !self.narrows()
            || self.is_wished
            || !outcome.on_rooms.is_empty()
            || !inputs.options.commitments.is_empty()
        {
            return None;
        }
        let mut pods: BTreeMap<(usize, &ResourceList), u64> = BTreeMap::new();
        for node in outcome.new.iter().filter(|node| node.offer.availability.price().is_some()) {
            for (class, count) in &node.content {
                let class = &inputs.classes.classes[*class];
                *pods.entry((class.signature, &class.requests)).or_default() += u64::from(*count);
            }
        }
        Some(UsdPerHour::from_micros(estimates::floor(inputs.supply, inputs.admissions, &pods)))
    }
}

impl PlanContext<'_> {
    /// Makes a plan with preferences, or without them if they leave pods unplaced or cost too much.
    pub(crate) fn weigh(&self, supply: &Supply<'_>, stop: &mut dyn StopSignal) -> Attempt {
        let mut made = self.best_attempt(supply, self.options.preferences, stop);
        let preferences = std::mem::take(&mut made.preferences);
        let mut why = WhyRelaxed::LimitReached;
        if preferences.narrows() {
            let refused = !made.plan.refused.is_empty();
            let leaves = made.plan.unplaced.iter().any(|left| left.reason.may_be_for_others());
            let cost = u128::from(cost(&made.plan).micros());
            let within = |least: UsdPerHour| cost <= u128::from(least.micros()).saturating_mul(DEARER);
            if !stop.is_abandoned() && (refused || leaves || !made.floor.is_some_and(within)) {
                let plain = self.best_attempt(supply, PreferencePolicy::Ignore, stop);
                let better = match self.left_over(&made.plan).cmp(&self.left_over(&plain.plan)) {
                    _ if refused => Some(WhyRelaxed::LimitReached),
                    Ordering::Greater => Some(WhyRelaxed::LimitReached),
                    Ordering::Equal if !within(self::cost(&plain.plan)) => Some(WhyRelaxed::TooDear),
                    // A plan that places fewer pods cannot be compared by cost.
                    Ordering::Equal | Ordering::Less => None,
                };
                if let Some(better) = better.filter(|_| plain.plan.refused.is_empty()) {
                    why = better;
                    made = plain;
                }
            }
        }
        preferences.tell(&mut made.plan, self.snapshot, why);
        made
    }
}

fn cost(plan: &Plan) -> UsdPerHour {
    let prices: UsdPerHour = plan.claims.iter().filter_map(crate::model::plan::PlannedClaim::price).sum();
    UsdPerHour::from_micros(prices.micros().saturating_sub(plan.covered.micros()))
}
