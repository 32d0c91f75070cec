//! Deterministic random numbers from a seed.

use std::time::Duration;

use fastrand::Rng;

/// The initial value of a digest.
pub(crate) const DIGEST: u64 = 0xcbf2_9ce4_8422_2325;

/// Adds bytes to a digest (FNV-1a).
pub(crate) fn digest(from: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(from, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Returns the n-th number of a named stream. Streams are independent: draws from one do not change another.
pub fn number(seed: u64, name: &str, count: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
    let bytes = name.bytes().chain(count.to_le_bytes()).chain(seed.to_le_bytes());
    let hash = digest(DIGEST, bytes);
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(Rng);

impl Dice {
    /// Starts the stream of this name.
    pub fn new(seed: u64, name: &str) -> Self {
        Self(Rng::with_seed(number(seed, name, 0)))
    }

    /// Starts the n-th stream of this name.
    pub fn nth(seed: u64, name: &str, count: u64) -> Self {
        Self(Rng::with_seed(number(seed, name, count)))
    }

    /// Returns a number from 0 to `n` - 1; 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { self.0.usize(..n) }
    }

    /// Returns true with this probability, in thousandths.
    pub fn per_mille(&mut self, rate: u32) -> bool {
        self.0.u32(..1000) < rate
    }

    /// Returns a duration from `low` to `high`, in whole milliseconds.
    pub fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let (low, high) = (millis(low), millis(high).max(millis(low)));
        Duration::from_millis(self.0.u64(low..=high))
    }

    /// Returns the time until something happens that may happen at any moment, in whole milliseconds: exponentially distributed
    /// with this mean. The method only compares random numbers, so all machines draw the same (von Neumann: Various techniques
    /// used in connection with random digits).
    pub fn exponential(&mut self, mean: Duration) -> Duration {
        let millis = u64::try_from(mean.as_millis()).unwrap_or(u64::MAX);
        let mut whole: u64 = 0;
        loop {
            let first = self.0.u32(..);
            let (mut last, mut is_odd) = (first, true);
            loop {
                let next = self.0.u32(..);
                if next >= last {
                    break;
                }
                (last, is_odd) = (next, !is_odd);
            }
            if is_odd {
                let part = (u128::from(millis) * u128::from(first)) >> 32;
                let part = u64::try_from(part).unwrap_or(u64::MAX);
                return Duration::from_millis(millis.saturating_mul(whole).saturating_add(part));
            }
            whole += 1;
        }
    }

    /// Returns a random element.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_stream_and_streams_differ() {
        let draw = |seed, name| {
            let mut dice = Dice::new(seed, name);
            (0..8).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "cloud"), draw(1, "cloud"));
        assert_ne!(draw(1, "cloud"), draw(1, "network"));
        assert_ne!(draw(1, "cloud"), draw(2, "cloud"));
        assert_eq!(number(7, "call", 3), number(7, "call", 3));
        assert_ne!(number(7, "call", 3), number(7, "call", 4));
    }

    #[test]
    fn rates_are_met_and_ends_are_kept() {
        let mut dice = Dice::new(3, "rates");
        let hits = (0..10_000).filter(|_| dice.per_mille(100)).count();
        assert!((800..1200).contains(&hits), "{hits} of 10,000 at 100 in a thousand");
        let (low, high) = (Duration::from_millis(5), Duration::from_millis(7));
        assert!((0..100).all(|_| (low..=high).contains(&dice.between(low, high))));
        let hour = Duration::from_hours(1);
        let lives: Vec<Duration> = (0..10_000).map(|_| dice.exponential(hour)).collect();
        let mean = lives.iter().sum::<Duration>() / 10_000;
        assert!((hour * 95 / 100..hour * 105 / 100).contains(&mean), "{mean:?}");
        // One in e lives longer than the mean, and one in e * e twice as long.
        let longer = |than: Duration| lives.iter().filter(|life| **life > than).count();
        assert!((3_500..3_860).contains(&longer(hour)), "{}", longer(hour));
        assert!((1_220..1_490).contains(&longer(hour * 2)), "{}", longer(hour * 2));
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), None);
    }
}
