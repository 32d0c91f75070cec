//! Remaining life: how much longer a pod runs, as a distribution.
//!
//! Lives have heavy tails, so a mean says little: a pod that has run for a day may run for a month. Every question about time
//! ("when is this node empty?", "how much longer does this pod keep it?") is therefore answered with whole distributions, as
//! integrals over [`TIMES`]. They are integers, so the same pods give the same answer on every machine.

use std::sync::Arc;

use jiff::SignedDuration;

/// The number of steps of the time grid.
pub const STEPS: usize = 48;

/// The ends of the steps, in seconds from now. Each is a quarter later than the one before; the last is about 25 days.
pub const TIMES: [u64; STEPS] = times();

/// Certainty: the unit of probabilities.
pub const ONE: u32 = 1 << 20;

const fn times() -> [u64; STEPS] {
    let mut times = [60_u64; STEPS];
    let mut at = 1;
    while at < STEPS {
        times[at] = times[at - 1] * 5 / 4;
        at += 1;
    }
    times
}

/// Returns the length of a step in seconds.
fn length(step: usize) -> u64 {
    TIMES[step] - if step == 0 { 0 } else { TIMES[step - 1] }
}

/// Returns the middle of a step in seconds from now.
pub fn middle(step: usize) -> u64 {
    TIMES[step] - length(step) / 2
}

/// The distribution of a pod's remaining life.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Life(
    /// For each step, the probability that the pod still runs in its middle, in units of 1 / [`ONE`]; descending.
    Arc<[u32]>,
);

impl Life {
    /// Creates a distribution from the probability to survive until each time, given in seconds from now and asked for in
    /// ascending order. Probabilities that rise are lowered to the ones before.
    pub fn from_survival(mut survival: impl FnMut(u64) -> u32) -> Self {
        let mut least = ONE;
        let probabilities = (0..STEPS).map(|step| {
            least = least.min(survival(middle(step)));
            least
        });
        Self(probabilities.collect())
    }

    /// A pod that runs for this long.
    pub fn exactly(duration: SignedDuration) -> Self {
        let seconds = u64::try_from(duration.as_secs()).unwrap_or_default();
        // The part of a step during which it runs stands for the probability, so the mean is exact.
        let within = |step: usize| seconds.saturating_sub(TIMES[step] - length(step)).min(length(step));
        Self((0..STEPS).map(|step| share(within(step), length(step))).collect())
    }

    /// A pod without an end, such as one of a service.
    pub fn unbounded() -> Self {
        Self([ONE; STEPS].into())
    }

    /// The life of a pod chosen at random among pods with these lives; of none, a pod that ends now.
    pub fn average<'a>(lives: impl Iterator<Item = &'a Self>) -> Self {
        let mut sums = [0_u64; STEPS];
        let mut count = 0_u64;
        for life in lives {
            count += 1;
            sums.iter_mut().zip(life.0.iter()).for_each(|(sum, survival)| *sum += u64::from(*survival));
        }
        Self(sums.iter().map(|sum| u32::try_from(sum / count.max(1)).unwrap_or(ONE)).collect())
    }

    /// The life of a pod that leaves at this time at the latest.
    pub fn cut(&self, at: SignedDuration) -> Self {
        let longest = Self::exactly(at);
        Self(self.0.iter().zip(longest.0.iter()).map(|(one, other)| product(*one, *other)).collect())
    }

    /// The probability that the pod still runs in the middle of a step, in units of 1 / [`ONE`].
    pub fn survival(&self, step: usize) -> u32 {
        self.0[step]
    }

    /// The mean, with every life cut at the last of [`TIMES`].
    pub fn mean(&self) -> SignedDuration {
        let ends = Ends::default();
        ends.extension(self)
    }

    /// The time by which the pod has ended with a probability of one half; `None` if that is after the last of [`TIMES`].
    pub fn median(&self) -> Option<SignedDuration> {
        let step = (0..STEPS).find(|step| self.0[*step] <= ONE / 2)?;
        Some(seconds(middle(step)))
    }
}

/// The distribution of the time until all of some pods have ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ends(
    /// For each step, the probability that all have ended by its middle, in units of 1 / [`ONE`]; ascending.
    [u32; STEPS],
);

impl Default for Ends {
    /// No pod: all have ended now.
    fn default() -> Self {
        Self([ONE; STEPS])
    }
}

impl Ends {
    /// The time until all of these pods have ended. Their lives are independent.
    pub fn of<'a>(lives: impl IntoIterator<Item = &'a Life>) -> Self {
        let mut ends = Self::default();
        for life in lives {
            ends.add(life);
        }
        ends
    }

    /// Adds a pod.
    pub fn add(&mut self, life: &Life) {
        for (ended, survival) in self.0.iter_mut().zip(life.0.iter()) {
            *ended = product(*ended, ONE - survival);
        }
    }

    /// Adds pods with equal lives.
    pub fn add_many(&mut self, life: &Life, count: u32) {
        for _ in 0..count {
            self.add(life);
        }
    }

    /// The mean time until all have ended.
    pub fn mean(&self) -> SignedDuration {
        integral(|step| ONE - self.0[step])
    }

    /// The mean time by which a further pod postpones the end of all.
    pub fn extension(&self, life: &Life) -> SignedDuration {
        integral(|step| product(self.0[step], life.0[step]))
    }

    /// The mean time by which the pods of `more` postpone the end of all.
    pub fn extension_by(&self, more: &Self) -> SignedDuration {
        integral(|step| product(self.0[step], ONE - more.0[step]))
    }

    /// The mean part of the time until `within` by which the pods of `more` postpone the end of all.
    pub fn extension_within(&self, more: &Self, within: SignedDuration) -> SignedDuration {
        integral_within(within, |step| product(self.0[step], ONE - more.0[step]))
    }
}

/// Returns `part` of `whole` as a probability.
fn share(part: u64, whole: u64) -> u32 {
    let share = u128::from(part) * u128::from(ONE) / u128::from(whole.max(1));
    u32::try_from(share).unwrap_or(ONE)
}

/// Returns the probability of two independent events.
fn product(one: u32, other: u32) -> u32 {
    let product = (u64::from(one) * u64::from(other)) >> 20;
    u32::try_from(product).unwrap_or(ONE)
}

/// Returns the integral of a probability over time.
fn integral(probability: impl Fn(usize) -> u32) -> SignedDuration {
    integral_within(SignedDuration::MAX, probability)
}

/// Returns the integral of a probability over the time until `within`.
fn integral_within(within: SignedDuration, probability: impl Fn(usize) -> u32) -> SignedDuration {
    let within = u64::try_from(within.as_secs()).unwrap_or_default();
    let part = |step: usize| within.saturating_sub(TIMES[step] - length(step)).min(length(step));
    let sum: u64 = (0..STEPS).map(|step| u64::from(probability(step)) * part(step)).sum();
    SignedDuration::from_millis(i64::try_from((u128::from(sum) * 1000) >> 20).unwrap_or(i64::MAX))
}

fn seconds(seconds: u64) -> SignedDuration {
    SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(hours: i64) -> SignedDuration {
        SignedDuration::from_hours(hours)
    }

    fn near(one: SignedDuration, other: SignedDuration) -> bool {
        let within = other.as_secs() / 8 + 30;
        (one.as_secs() - other.as_secs()).abs() <= within
    }

    #[test]
    fn a_known_life_has_its_own_length_as_mean() {
        for minutes in [1, 7, 61, 600, 10_000] {
            let life = Life::exactly(SignedDuration::from_mins(minutes));
            let off = life.mean().as_secs() - minutes * 60;
            assert!(off.abs() <= 1, "{minutes} min: {off} s off");
        }
    }

    #[test]
    fn an_extension_counts_only_as_far_as_it_lies_within_the_time() {
        let ends = Ends::of(&[Life::exactly(hours(2))]);
        let more = Ends::of(&[Life::unbounded()]);
        assert_eq!(ends.extension_within(&more, hours(1)), SignedDuration::ZERO);
        assert!(near(ends.extension_within(&more, hours(5)), hours(3)));
        assert_eq!(ends.extension_within(&more, SignedDuration::MAX), ends.extension_by(&more));
        assert!(near(Life::unbounded().cut(hours(1)).mean(), hours(1)));
        assert!(near(Life::exactly(hours(1)).cut(hours(9)).mean(), hours(1)));
    }

    #[test]
    fn a_pod_that_ends_before_the_others_extends_nothing() {
        let node = Ends::of(&[Life::exactly(hours(10))]);
        assert_eq!(node.extension(&Life::exactly(hours(2))), SignedDuration::ZERO);
        assert!(near(node.extension(&Life::exactly(hours(13))), hours(3)));
    }

    #[test]
    fn an_old_pod_makes_no_node_free_because_its_end_is_uncertain() {
        // Half of such pods end within an hour, the rest runs for weeks: the mean is weeks.
        let life = Life::from_survival(|time| if time < 3600 { ONE } else { ONE / 2 });
        let node = Ends::of([&life]);
        let extension = node.extension(&Life::exactly(hours(200)));
        assert!(near(extension, hours(100)), "{extension:?}");
    }

    #[test]
    fn the_end_of_many_is_later_than_the_end_of_one() {
        let life = Life::from_survival(|time| ONE / (1 + u32::try_from(time / 600).unwrap_or(u32::MAX - 1)));
        let mut ends = Ends::of([&life]);
        let one = ends.mean();
        assert_eq!(one, life.mean());
        ends.add_many(&life, 7);
        assert!(ends.mean() > one.checked_mul(2).unwrap());
        assert!(ends.mean() < one.checked_mul(8).unwrap());
    }

    #[test]
    fn extensions_add_up_to_the_end_of_all() {
        let lives = [3, 50, 7, 900].map(|minutes| Life::exactly(SignedDuration::from_mins(minutes)));
        let mut ends = Ends::default();
        let mut sum = SignedDuration::ZERO;
        for life in &lives {
            sum += ends.extension(life);
            ends.add(life);
        }
        assert!((sum - ends.mean()).abs() < SignedDuration::from_secs(1));
    }

    #[test]
    fn an_unbounded_pod_has_no_median() {
        assert_eq!(Life::unbounded().median(), None);
        assert!(Life::unbounded().mean() > hours(24 * 20));
    }
}
