//! Back-off of failed watches.

use std::time::Duration;

use kube::runtime::utils::{Backoff, ResetTimerBackoff};

/// The first wait; it doubles.
const FIRST: Duration = Duration::from_millis(800);
/// The longest wait, without jitter.
const LONGEST: Duration = Duration::from_secs(30);
/// After this time without a failure, the back-off starts again.
const FORGET: Duration = Duration::from_mins(2);

/// Back-off as in client-go's reflector, with jitter of up to 100 %, so that not all watches of all replicas start at once. The
/// jitter is derived from replica and kind, not random, so that simulated runs are reproducible.
#[derive(Debug)]
pub struct WatchBackoff {
    seed: u64,
    failures: u32,
}

impl WatchBackoff {
    /// Returns the back-off for the watch of this kind by this replica.
    pub fn new(identity: &str, kind: &str) -> ResetTimerBackoff<Self> {
        // FNV-1a: any hash will do.
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
