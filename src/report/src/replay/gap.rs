//! The gap between the cost and its lower limit, split by cause.
//!
//! Every node is at each moment in one of three states: it starts, it is idle, or it is busy. Starting and idle nodes are the
//! first two parts. Nodes that static pools keep are a part of their own once they have started: the limit has them for nothing. The cost of the busy nodes goes down to the limit in three steps: to the best plan known for their pods,
//! with the part that was there at the purchase apart, and from that plan to the limit. So the parts add up to the gap.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_catalog::UsdPerHour;

use super::bound::Bounds;
use super::history::History;
use super::steps::Steps;
use crate::money::{HOUR, Usd};

/// The number of causes.
pub(super) const CAUSES: usize = 6;

/// A cause of cost above the lower limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nodes that start: from the launch until pods can run on them.
    Start,
    /// Nodes that could run pods and have none.
    Idle,
    /// Nodes that static pools keep, with and without pods.
    StaticPools,
    /// Nodes that were right when they were bought, and whose pods would now fit on cheaper ones.
    Stranded,
    /// Nodes that cost more than the limit for the pods that they were bought for.
    WrongType,
    /// The distance of the limit from the best known plan.
    LimitTooLow,
}

impl Cause {
    /// All causes, in the order in which reports show them.
    pub const ALL: [Self; CAUSES] =
        [Self::Start, Self::Idle, Self::StaticPools, Self::Stranded, Self::WrongType, Self::LimitTooLow];
}

/// The gap between the cost and its lower limit, split by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The amount of each cause, in the order of [`Cause::ALL`].
    amounts: [Usd; CAUSES],
    /// The rate of each cause over time, in micro-dollars per hour.
    steps: [Steps; CAUSES],
}

/// A change of a machine.
enum Event {
    Launched,
    Opened,
    Gone,
    Comes,
    Leaves,
}

/// A machine at a moment.
#[derive(Clone, Copy, Default)]
struct State {
    exists: bool,
    open: bool,
    /// Whether a static pool keeps it.
    kept: bool,
    pods: u32,
}

/// The prices of all machines at a moment, by state, in micro-dollars per hour.
#[derive(Default)]
struct Sums {
    start: u64,
    idle: u64,
    kept: u64,
    busy: u64,
    /// The excess of the busy ones at their purchase.
    excess: u64,
}

impl Gap {
    /// Splits the gap between `cost` and `limit`, the totals of the report.
    pub(super) fn new(history: &History, bounds: &Bounds, cost: Usd, limit: Usd) -> Self {
        let steps = steps(history, bounds);
        let mut amounts = steps.each_ref().map(|steps| Usd(steps.sum(Duration::ZERO, history.played) / HOUR));
        // The cost is rounded up for each machine, and the parts are rounded down. The largest part takes the difference.
        let rest = cost.0.saturating_sub(limit.0).saturating_sub(amounts.iter().map(|part| part.0).sum());
        let largest = (0..amounts.len()).rev().max_by_key(|at| amounts[*at]).unwrap_or(0);
        amounts[largest].0 += rest;
        Self { amounts, steps }
    }

    /// Returns the amount of a cause.
    pub fn amount(&self, cause: Cause) -> Usd {
        self.amounts[cause as usize]
    }

    /// Returns the rate of a cause over time, in micro-dollars per hour.
    pub fn steps(&self, cause: Cause) -> &Steps {
        &self.steps[cause as usize]
    }
}

fn steps(history: &History, bounds: &Bounds) -> [Steps; CAUSES] {
    let mut events: BTreeMap<Duration, Vec<(usize, Event)>> = BTreeMap::new();
    for (at, machine) in history.machines.iter().enumerate() {
        let gone = machine.launched + machine.lasted(history.played);
        events.entry(machine.launched).or_default().push((at, Event::Launched));
        if let Some(opened) = machine.opened.filter(|opened| *opened < gone) {
            events.entry(opened.max(machine.launched)).or_default().push((at, Event::Opened));
        }
        events.entry(gone).or_default().push((at, Event::Gone));
    }
    for pod in &history.pods {
        let (Some((from, until)), Some((_, machine))) = (history.on_machine(pod), pod.bound) else {
            continue;
        };
        events.entry(from).or_default().push((machine, Event::Comes));
        events.entry(until).or_default().push((machine, Event::Leaves));
    }
    for moment in bounds.limit.moments().chain(bounds.best_known.moments()) {
        events.entry(moment).or_default();
    }
    let kept = (0..history.machines.len()).map(|at| bounds.kept.get(at).copied().unwrap_or(false));
    let mut states: Vec<State> = kept.map(|kept| State { kept, ..State::default() }).collect();
    let mut sums = Sums::default();
    let mut levels: [Vec<(Duration, u64)>; CAUSES] = Default::default();
    for (moment, events) in events {
        for (at, event) in events {
            let price = history.machines[at].price.map_or(0, UsdPerHour::micros);
            let excess = bounds.excess.get(at).copied().unwrap_or(0);
            let state = &mut states[at];
            sums.change(*state, price, excess, u64::wrapping_sub);
            match event {
                Event::Launched => state.exists = true,
                Event::Opened => state.open = true,
                Event::Gone => state.exists = false,
                Event::Comes => state.pods += 1,
                Event::Leaves => state.pods -= 1,
            }
            sums.change(*state, price, excess, u64::wrapping_add);
        }
        let parts = sums.parts(bounds.limit.at(moment), bounds.best_known.at(moment));
        for (levels, part) in levels.iter_mut().zip(parts) {
            levels.push((moment, part));
        }
    }
    levels.map(Steps::of_levels)
}

impl Sums {
    /// Adds or subtracts a machine.
    fn change(&mut self, state: State, price: u64, excess: u64, by: fn(u64, u64) -> u64) {
        if !state.exists {
            return;
        }
        // A node that has pods can run them, whatever its labels say.
        let runs = state.open || state.pods > 0;
        let sum = if state.kept && runs {
            &mut self.kept
        } else if state.pods > 0 {
            self.excess = by(self.excess, excess);
            &mut self.busy
        } else if state.open {
            &mut self.idle
        } else {
            &mut self.start
        };
        *sum = by(*sum, price);
    }

    /// Returns the parts in the order of [`Cause::ALL`].
    fn parts(&self, limit: u64, best_known: u64) -> [u64; CAUSES] {
        // The busy nodes are a plan too.
        let best_known = best_known.min(self.busy).max(limit);
        let above = self.busy.saturating_sub(best_known);
        // Later pods may have made use of a node that was too large for the first ones.
        let wrong_type = self.excess.min(above);
        [self.start, self.idle, self.kept, above - wrong_type, wrong_type, best_known - limit]
    }
}
