//! Life tables: for each age, how many pods of one kind reached it, and how many of these ended there. A table gives the hazards
//! of the kind (Kaplan-Meier), also where many pods still run.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of ages in a life table.
pub(crate) const AGES: usize = 150;
/// The number of pods that a wider kind, or a declared duration, counts for.
pub(crate) const WEIGHT: u64 = 10;
/// The number of pods of a kind after which older pods count half.
const MEMORY: u32 = 1_000;
/// Certainty, in the unit of hazards.
pub(crate) const CERTAIN: u64 = 1 << 30;

/// The ends of the steps of ages, in seconds: from ten seconds to about four months, each a tenth later.
pub(crate) static BOUNDS: [u64; AGES] = bounds();

const fn bounds() -> [u64; AGES] {
    let mut bounds = [10_u64; AGES];
    let mut at = 1;
    while at < AGES {
        bounds[at] = bounds[at - 1] + if bounds[at - 1] / 10 > 1 { bounds[at - 1] / 10 } else { 1 };
        at += 1;
    }
    bounds
}

/// Returns the step of an age.
pub(crate) fn step(age: u64) -> usize {
    BOUNDS.partition_point(|bound| *bound <= age).min(AGES - 1)
}

pub(crate) fn seconds(duration: SignedDuration) -> u64 {
    u64::try_from(duration.as_secs()).unwrap_or_default()
}

/// The pods of one kind that ended or were lost, by age.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifeTable {
    /// How many ended at each step of ages. Later steps have none.
    pub(super) ended: Vec<u32>,
    /// How many were lost at each step, such as evicted pods: they would have run longer.
    lost: Vec<u32>,
    /// When the last one was added, in seconds since 1970.
    used: i64,
}

impl LifeTable {
    pub(crate) fn add(&mut self, age: SignedDuration, ended: bool, now: Timestamp) {
        let counts = if ended { &mut self.ended } else { &mut self.lost };
        let at = step(seconds(age));
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] += 1;
        self.used = self.used.max(now.as_second());
        if self.total() > MEMORY {
            halve(&mut self.ended);
            halve(&mut self.lost);
        }
    }

    /// Returns when the last one was added, in seconds since 1970.
    pub(crate) fn used(&self) -> i64 {
        self.used
    }

    /// Returns whether [`Lives`] can have written it.
    pub fn is_sound(&self) -> bool {
        let counts = || [&self.ended, &self.lost].into_iter();
        counts().all(|counts| counts.len() <= AGES)
            && counts().flatten().map(|count| u64::from(*count)).sum::<u64>() <= u64::from(MEMORY)
    }

    /// Returns the number of all that it counts.
    pub(crate) fn total(&self) -> u32 {
        self.ended.iter().chain(&self.lost).sum()
    }

    fn count(counts: &[u32], at: usize) -> u64 {
        counts.get(at).copied().unwrap_or_default().into()
    }

    /// Returns the hazards: for each step, the probability to end in it, of a pod that has reached it. `running` are the pods that
    /// run now, by step of their age. `wider` are the hazards of the wider kind.
    pub(crate) fn hazards(&self, running: &[u32], wider: &[u64]) -> Vec<u64> {
        let mut reached = 0;
        let mut hazards = vec![0; AGES];
        for at in (0..AGES).rev() {
            let ended = Self::count(&self.ended, at);
            let leave = Self::count(&self.lost, at) + Self::count(running, at);
            // A pod that leaves within a step was at risk in half of it.
            let at_risk = reached + ended + leave / 2;
            hazards[at] = (ended * CERTAIN + WEIGHT * wider[at]) / (at_risk + WEIGHT);
            reached += ended + leave;
        }
        hazards
    }
}

/// Halves counts. What is left of an odd count goes to the next, so that rare long lives are not forgotten.
fn halve(counts: &mut [u32]) {
    let mut left = 0;
    for count in counts {
        let both = *count + left;
        (*count, left) = (both / 2, both % 2);
    }
}

/// Returns the hazards for a survival by age.
pub(crate) fn hazards_of(survival: impl Fn(u64) -> u64) -> Vec<u64> {
    let mut before = CERTAIN;
    let hazard = |bound: &u64| {
        let after = survival(*bound).min(before);
        let hazard = (before - after) * CERTAIN / before.max(1);
        before = after;
        hazard
    };
    BOUNDS.iter().map(hazard).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3600;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap()
    }

    fn length(seconds: u64) -> SignedDuration {
        SignedDuration::from_secs(i64::try_from(seconds).unwrap())
    }

    /// Returns the hazard of a table in hundredths, without a wider kind's.
    fn hundredths(table: &LifeTable, running: &[u32], age: u64) -> u64 {
        let hazards = table.hazards(running, &[0; AGES]);
        let at_risk = (step(age)..AGES)
            .map(|at| {
                LifeTable::count(&table.ended, at)
                    + LifeTable::count(&table.lost, at)
                    + LifeTable::count(running, at)
            })
            .sum::<u64>();
        // The wider kind counts as ten pods of which none ends.
        (hazards[step(age)] * (at_risk + WEIGHT) * 100 / at_risk.max(1) + CERTAIN / 2) / CERTAIN
    }

    #[test]
    fn the_steps_of_ages_ascend_to_four_months() {
        assert!(BOUNDS.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(
            (100..140).contains(&(BOUNDS[AGES - 1] / HOUR / 24)),
            "{} days",
            BOUNDS[AGES - 1] / HOUR / 24
        );
        assert_eq!((step(0), step(9), step(10), step(u64::MAX)), (0, 0, 1, AGES - 1));
    }

    #[test]
    fn hazards_are_those_of_kaplan_and_meier() {
        // Ten pods: two end at 100 s, three are evicted at 200 s, one ends at 400 s, four end at 900 s.
        let mut table = LifeTable::default();
        for (age, ended, count) in [(100, true, 2), (200, false, 3), (400, true, 1), (900, true, 4)] {
            (0..count).for_each(|_| table.add(length(age), ended, now()));
        }
        assert_eq!(hundredths(&table, &[], 100), 20, "2 of 10");
        assert_eq!(hundredths(&table, &[], 200), 0, "an eviction is no end");
        assert_eq!(hundredths(&table, &[], 400), 20, "1 of the 5 that got there");
        assert_eq!(hundredths(&table, &[], 900), 100, "all");
        // Five more run, and are 500 s old: they count up to there.
        let mut running = vec![0; AGES];
        running[step(500)] = 5;
        assert_eq!(hundredths(&table, &running, 100), 13, "2 of 15");
        assert_eq!(hundredths(&table, &running, 400), 10, "1 of 10");
        assert_eq!(hundredths(&table, &running, 900), 100, "all that got there");
    }
}
