//! Whole numbers that change over time, such as the cost per hour or the number of waiting pods.

use std::collections::BTreeMap;
use std::time::Duration;

/// A number over time. Each entry holds from its moment until the next entry. Before the first entry the number is zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(BTreeMap<Duration, u64>);

impl Steps {
    /// Builds the steps from changes at moments.
    pub fn of_spans(spans: impl IntoIterator<Item = (Duration, Duration, u64)>) -> Self {
        let mut changes: BTreeMap<Duration, (u64, u64)> = BTreeMap::new();
        for (from, until, amount) in spans {
            changes.entry(from).or_default().0 += amount;
            changes.entry(until).or_default().1 += amount;
        }
        let mut level: u64 = 0;
        let step = |(at, (more, less)): (Duration, (u64, u64))| {
            level = (level + more).saturating_sub(less);
            (at, level)
        };
        Self(changes.into_iter().map(step).collect())
    }

    /// Builds the steps from levels.
    pub fn of_levels(levels: impl IntoIterator<Item = (Duration, u64)>) -> Self {
        Self(levels.into_iter().collect())
    }

    /// Returns the number at a moment.
    pub fn at(&self, moment: Duration) -> u64 {
        self.0.range(..=moment).next_back().map_or(0, |(_, level)| *level)
    }

    /// Returns the maximum between two moments, excluding the second.
    pub fn most(&self, from: Duration, until: Duration) -> u64 {
        let within = self.0.range(from..until.max(from)).map(|(_, level)| *level);
        within.max().unwrap_or(0).max(self.at(from))
    }

    /// Returns the moments at which the number changes.
    pub fn moments(&self) -> impl Iterator<Item = Duration> {
        self.0.keys().copied()
    }

    /// Returns the integral between two moments, as number times milliseconds.
    pub fn sum(&self, from: Duration, until: Duration) -> u128 {
        let mut sum = 0;
        let (mut since, mut level) = (from, self.at(from));
        let later = self.0.range(from..until.max(from)).map(|(at, next)| (*at, *next));
        for (at, next) in later.chain([(until.max(from), 0)]) {
            sum += (at.as_millis() - since.as_millis()) * u128::from(level);
            (since, level) = (at, next);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_add_up_and_are_over_at_their_ends() {
        let at = Duration::from_secs;
        let steps = Steps::of_spans([(at(1), at(5), 10), (at(2), at(3), 5), (at(5), at(6), 1)]);
        let levels: Vec<u64> = (0..7).map(|second| steps.at(at(second))).collect();
        assert_eq!(levels, [0, 10, 15, 10, 10, 1, 0]);
        assert_eq!(steps.sum(at(0), at(10)), 1000 * (4 * 10 + 5 + 1));
        assert_eq!(steps.sum(at(2), at(4)), 1000 * (15 + 10));
        assert_eq!(steps.sum(at(7), at(6)), 0);
        assert_eq!(
            (steps.most(at(0), at(2)), steps.most(at(0), at(3)), steps.most(at(3), at(4))),
            (10, 15, 10)
        );
    }
}
