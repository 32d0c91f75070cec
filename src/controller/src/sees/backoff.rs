//! How long a watch that failed waits before it is begun anew.

use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};

/// The first wait; it doubles.
const FIRST: Duration = Duration::from_millis(800);
/// No wait is longer, but for what scatters it.
const LONGEST: Duration = Duration::from_secs(30);
/// After this long without a failure the next one counts as the first.
const FORGET: Duration = Duration::from_mins(2);

/// Waits as client-go's reflector does, scattered so that not all watches of all replicas come at once: by up to as much
/// again. What scatters them is who waits, not chance, so that a simulated run is the same each time.
#[derive(Debug)]
pub struct WatchBackoff {
    seed: u64,
    failures: u32,
}

impl WatchBackoff {
    /// For the watch of this kind by this replica.
    pub fn new(identity: &str, kind: &str) -> ResetTimerBackoff<Self> {
        // FNV-1a: any spread of names over numbers will do.
        let seed = identity
            .bytes()
            .chain(*b"/")
            .chain(kind.bytes())
            .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        ResetTimerBackoff::new(Self { seed, failures: 0 }, FORGET)
    }
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // The upper bits of a product with an odd constant are well mixed (Knuth's multiplicative hashing).
        let mixed = (self.seed ^ u64::from(self.failures)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        Some(wait + Duration::from_millis(mixed % millis.max(1)))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_ceiling_and_differ_between_replicas_and_kinds() {
        let waits = |identity: &str, kind: &str| -> Vec<Duration> {
            WatchBackoff::new(identity, kind).take(10).collect()
        };
        let mine = waits("a", "Pod");
        assert_eq!(mine, waits("a", "Pod"), "the same each time");
        for (step, wait) in mine.iter().enumerate() {
            let least = FIRST.saturating_mul(1 << step).min(LONGEST);
            assert!(least <= *wait && *wait < least * 2, "wait {step} is {wait:?}");
        }
        assert_ne!(mine, waits("b", "Pod"));
        assert_ne!(mine, waits("a", "Node"));
    }

    #[test]
    fn a_reset_begins_again() {
        let mut backoff = WatchBackoff { seed: 7, failures: 0 };
        let first = backoff.next();
        backoff.next();
        backoff.reset();
        assert_eq!(backoff.next(), first);
    }
}
