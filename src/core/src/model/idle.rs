//! Idle nodes: how long a node without work is kept.
//!
//! This is the ski rental problem. An idle node costs its price for the time that it is kept. Giving it up costs a start if a pod
//! comes that it could have held: the price of another node until pods can start, and the time that the pod waits. Waiting is
//! counted like paid time of the node. So the price cancels out, and a start costs as much as [`BREAK_EVEN`] without work.
//!
//! A node that is kept for this time costs at most twice the best choice in hindsight, whatever comes. Earlier nodes teach how
//! long it takes until the next pod comes, and the time of the least expected cost follows. It is at most twice the break-even time.
//! So even if the past misleads, a node costs at most two starts more than the best choice.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::duration::SEPARATOR;
use crate::model::life_table::{BOUNDS, CERTAIN, LifeTable, hazards_of};

/// The time from the purchase of a node until its pods can start: the usual time of the clouds.
pub const START: SignedDuration = SignedDuration::from_secs(115);
/// The time without work that costs as much as a start: the new node's start, and the same time for the pods that wait for it.
pub const BREAK_EVEN: SignedDuration = SignedDuration::from_secs(2 * START.as_secs());
/// The longest time for which a node is kept, by what was learned. Longer gaps are all alike.
pub const LONGEST: SignedDuration = SignedDuration::from_secs(2 * BREAK_EVEN.as_secs());
/// The shortest time for which a node is kept, by what was learned: the successor of an ended pod may come in seconds.
pub const SHORTEST: SignedDuration = SignedDuration::from_secs(15);
/// The most kinds to remember.
const KINDS: usize = 200;

/// When a pool's empty nodes are terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScaleToZero {
    /// Never.
    Never,
    /// After this time.
    After(SignedDuration),
    /// After the time that costs least.
    Auto,
}

impl ScaleToZero {
    /// Returns the time that a node is usually kept; `None` for ever.
    pub fn usual(self) -> Option<SignedDuration> {
        match self {
            Self::Never => None,
            Self::After(time) => Some(time),
            Self::Auto => Some(BREAK_EVEN),
        }
    }
}

/// How long a node without work is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// The time.
    pub time: SignedDuration,
    /// Why; `None` if the pool says so.
    pub why: Option<Why>,
}

/// Why a node is kept for a time that no user wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Why {
    /// The number of such nodes that were without work before.
    pub seen: u32,
    /// The percentage of them that would get a pod within the time.
    pub percent: u64,
}

impl Keep {
    /// Returns the reason as a part of a sentence; `None` if the pool says so.
    pub fn reason(&self) -> Option<String> {
        let Why { seen, percent } = self.why?;
        let start = format!("a start costs as much as {} s without work", BREAK_EVEN.as_secs());
        Some(match seen {
            0 => start,
            _ => format!(
                "{start}, and {percent} % of such nodes get another pod within {} s ({seen} seen)",
                self.time.as_secs()
            ),
        })
    }
}

/// What is known about gaps: the times from the moment when a node has no work left until the next pod comes that it could hold.
/// Each kind has a life table. A gap that nobody saw end counts up to the time when it was last seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    tables: BTreeMap<String, LifeTable>,
}

impl Gaps {
    /// Adds a gap of a kind of node. `ended` says that a pod came.
    pub fn observe(&mut self, kind: &str, gap: SignedDuration, ended: bool, now: Timestamp) {
        for kind in with_wider(kind) {
            self.tables.entry(kind.to_owned()).or_default().add(gap, ended, now);
        }
        while self.tables.len() > KINDS {
            let oldest = self.tables.iter().min_by_key(|(kind, table)| (table.used(), *kind));
            let Some(oldest) = oldest.map(|(kind, _)| kind.clone()) else { return };
            self.tables.remove(&oldest);
        }
    }

    /// The tables, by kind.
    pub fn tables(&self) -> &BTreeMap<String, LifeTable> {
        &self.tables
    }

    /// Makes gaps from tables that were learned before.
    pub fn of_tables(tables: BTreeMap<String, LifeTable>) -> Self {
        Self { tables }
    }

    /// Returns the time of the least expected cost for a kind of node.
    pub fn keep(&self, kind: &str) -> Keep {
        let known: Vec<&LifeTable> = with_wider(kind).filter_map(|kind| self.tables.get(kind)).collect();
        if known.is_empty() {
            return Keep { time: BREAK_EVEN, why: Some(Why { seen: 0, percent: 0 }) };
        }
        let seen = known.iter().map(|table| table.total()).find(|total| *total > 0).unwrap_or_default();
        let hazards = known.iter().rev().fold(prior(), |wider, table| table.hazards(&[], &wider));
        let seconds = |time: SignedDuration| u64::try_from(time.as_secs()).unwrap_or_default();
        let (mut survival, mut idle, mut from) = (CERTAIN, 0, 0);
        let mut best: Option<(u64, Keep)> = None;
        for (until, hazard) in
            BOUNDS.iter().zip(&hazards).take_while(|(until, _)| **until <= seconds(LONGEST))
        {
            let after = (survival * (CERTAIN - hazard.min(&CERTAIN))) >> 30;
            idle += u64::midpoint(survival, after) * (until - from);
            (survival, from) = (after, *until);
            let cost = idle + survival * seconds(BREAK_EVEN);
            if *until >= seconds(SHORTEST) && best.is_none_or(|(least, _)| cost < least) {
                let time = SignedDuration::from_secs(i64::try_from(*until).unwrap_or_default());
                let percent = (CERTAIN - survival) * 100 / CERTAIN;
                best = Some((cost, Keep { time, why: Some(Why { seen, percent }) }));
            }
        }
        best.map_or(Keep { time: BREAK_EVEN, why: Some(Why { seen: 0, percent: 0 }) }, |(_, keep)| keep)
    }
}

/// Returns the expectation before anything was learned: of gaps that have lasted for some time, half last as long again. The
/// time of the least cost is then about the break-even time.
fn prior() -> Vec<u64> {
    hazards_of(|age| 10 * CERTAIN / (10 + age))
}

/// Returns a kind and the wider ones.
fn with_wider(kind: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(kind), |kind| kind.split_once(SEPARATOR).map(|(_, wider)| wider))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "g5.xlarge/gpu";

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    /// Gaps of a kind: how many, how long in seconds, and whether a pod came.
    fn gaps(all: &[(u32, i64, bool)]) -> Gaps {
        let mut gaps = Gaps::default();
        for (count, seconds, ended) in all {
            for _ in 0..*count {
                gaps.observe(KIND, SignedDuration::from_secs(*seconds), *ended, now());
            }
        }
        gaps
    }

    fn kept(all: &[(u32, i64, bool)]) -> i64 {
        gaps(all).keep(KIND).time.as_secs()
    }

    #[test]
    fn without_knowledge_a_node_is_kept_as_long_as_a_start_costs() {
        let keep = Gaps::default().keep(KIND);
        assert_eq!(keep.time, BREAK_EVEN);
        assert_eq!(keep.reason().unwrap(), "a start costs as much as 230 s without work");
        let few = kept(&[(1, 100, true)]);
        assert!((180..=260).contains(&few), "one gap changes little: {few}");
    }

    #[test]
    fn a_node_is_kept_longer_where_pods_come_and_shorter_where_none_come() {
        assert_eq!(kept(&[(60, 460, false)]), 15);
        assert!(kept(&[(60, 200, true)]) > 200);
        assert_eq!(kept(&[(60, 300, true)]), 15, "a start costs less than to wait for the pod");
        let soon = kept(&[(60, 30, true), (60, 460, false)]);
        assert!((30..=40).contains(&soon), "who comes, comes soon: {soon}");
    }

    #[test]
    fn no_past_makes_a_node_cost_more_than_two_starts_above_the_best_choice() {
        let start = BREAK_EVEN.as_secs();
        for gap in [1, 20, 100, 200, 230, 300, 440, 459, 100_000] {
            for share in 0..=10 {
                let time = kept(&[(10 * share, gap, true), (10 * (10 - share), 5_000, false)]);
                for gap in [1, time - 1, time, time + 1, start, 100_000] {
                    let cost = if gap <= time { gap } else { time + start };
                    assert!(cost - gap.min(start) <= 2 * start, "kept for {time}, a pod after {gap}");
                }
            }
        }
    }

    #[test]
    fn a_type_without_gaps_of_its_own_is_judged_by_its_pool() {
        let gaps = gaps(&[(100, 300, true)]);
        assert_eq!(gaps.keep("p5.48xlarge/gpu").time, gaps.keep(KIND).time);
        assert_eq!(gaps.keep("g5.xlarge/other").time, BREAK_EVEN, "another pool teaches nothing");
    }

    #[test]
    fn the_reason_says_what_was_seen() {
        let reason = gaps(&[(30, 60, true), (70, 460, false)]).keep(KIND).reason().unwrap();
        assert!(reason.ends_with("of such nodes get another pod within 66 s (100 seen)"), "{reason}");
    }

    #[test]
    fn the_memory_of_kinds_is_bounded() {
        let mut gaps = Gaps::default();
        for number in 0..1_000 {
            gaps.observe(&format!("t{number}/gpu"), START, true, now());
        }
        assert_eq!(gaps.tables().len(), KINDS);
    }
}
