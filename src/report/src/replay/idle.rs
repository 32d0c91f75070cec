//! The regret of idle time: what nodes without work cost, against the best choices in hindsight.
//!
//! A node that a pod has left costs its price until the next pod comes, or until it is gone. If it goes, and such a node is bought
//! again soon, that start was avoidable. In hindsight, a node is kept if a pod comes before keeping it costs as much as a start;
//! otherwise it goes at once.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_core::BREAK_EVEN;

use super::history::{History, Machine};
use crate::money::Usd;

/// The cost of nodes without work, after a pod has left them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The price of these nodes until a pod came or they were gone.
    pub cost: Usd,
    /// The starts of nodes that would not have been needed if another one had been kept for less than a start costs.
    pub starts: u64,
    /// The cost of these starts.
    pub start_cost: Usd,
    /// The cost of the best choices in hindsight.
    pub best: Usd,
}

impl Idle {
    /// Computes it.
    pub(super) fn new(history: &History) -> Self {
        let mut idle = Self::default();
        let break_even = BREAK_EVEN.unsigned_abs();
        let mut given_up: Vec<(Duration, &Machine)> = Vec::new();
        for (at, spells) in spells(history) {
            let machine = &history.machines[at];
            for Spell { from, until, used } in spells {
                let length = until.saturating_sub(from);
                idle.cost.0 += Usd::of(machine.price, length).0;
                if used {
                    idle.best.0 += Usd::of(machine.price, length.min(break_even)).0;
                } else {
                    given_up.push((from, machine));
                }
            }
        }
        given_up.sort_by_key(|(from, _)| *from);
        let mut bought: Vec<&Machine> = history.machines.iter().collect();
        bought.sort_by_key(|machine| machine.launched);
        for next in bought {
            let like = |(from, gone): &(Duration, &Machine)| {
                *from <= next.launched
                    && next.launched.saturating_sub(*from) < break_even
                    && gone.pool == next.pool
                    && gone.offering.instance_type == next.offering.instance_type
            };
            if let Some(last) = given_up.iter().rposition(like) {
                let (from, gone) = given_up.remove(last);
                idle.starts += 1;
                idle.start_cost.0 += Usd::of(gone.price, break_even).0;
                idle.best.0 += Usd::of(gone.price, next.launched.saturating_sub(from)).0;
            }
        }
        idle
    }

    /// Returns what the best choices would have saved.
    pub fn regret(&self) -> Usd {
        Usd((self.cost.0 + self.start_cost.0).saturating_sub(self.best.0))
    }
}

/// A time without work, after a pod has left.
struct Spell {
    from: Duration,
    until: Duration,
    /// Whether a pod came.
    used: bool,
}

/// Returns the times without work of each machine, except for one that lasts until the end of the replay.
fn spells(history: &History) -> BTreeMap<usize, Vec<Spell>> {
    let mut busy: BTreeMap<usize, Vec<(Duration, Duration)>> = BTreeMap::new();
    for pod in &history.pods {
        if let (Some(span), Some((_, machine))) = (history.on_machine(pod), pod.bound) {
            busy.entry(machine).or_default().push(span);
        }
    }
    let of_machine = |(at, mut spans): (usize, Vec<(Duration, Duration)>)| {
        spans.sort_unstable();
        let mut spells = Vec::new();
        let mut end = spans.first().map(|(_, until)| *until).unwrap_or_default();
        for (from, until) in spans {
            if from > end {
                spells.push(Spell { from: end, until: from, used: true });
            }
            end = end.max(until);
        }
        if let Some(gone) = history.machines[at].gone.filter(|gone| *gone <= history.played && *gone > end) {
            spells.push(Spell { from: end, until: gone, used: false });
        }
        (at, spells)
    };
    busy.into_iter().map(of_machine).collect()
}
