//! Interruptions that were received and are not recorded yet. Loops wait for them before they decide.
//!
//! A cloud may interrupt hundreds of instances in one second. If the first of them were handled before the others are recorded,
//! the others would be delayed, the plan would miss them, and the next leader would not know of them. So the deciding loops
//! wait until all are recorded. They do not wait long, because a failing API server must not block other work.

use std::time::Duration;

use tokio::time::timeout;

use crate::edge::clock::SharedClock;
use crate::edge::signal::{self, Sender};

/// How long the loops wait after the first unrecorded interruption: a small part of the two minutes' notice of spot instances. A
/// slow API server records a thousand in this time.
const LIMIT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
struct InHand {
    count: usize,
    since: Duration,
}

/// The interruptions that were received and are not recorded yet.
pub struct Unrecorded {
    in_hand: Sender<InHand>,
    clock: SharedClock,
}

/// A received interruption. Loops stop waiting for it when this is dropped.
#[must_use]
pub struct InterruptionGuard<'a>(&'a Unrecorded);

impl Unrecorded {
    /// Starts without interruptions.
    pub fn new(clock: SharedClock) -> Self {
        Self { in_hand: signal::sender(InHand::default()), clock }
    }

    /// Registers a received interruption.
    pub fn heard(&self) -> InterruptionGuard<'_> {
        let now = self.clock.monotonic();
        self.in_hand.change_if(|in_hand| {
            if in_hand.count == 0 {
                in_hand.since = now;
            }
            in_hand.count += 1;
            false
        });
        InterruptionGuard(self)
    }

    /// Waits until all received interruptions are recorded, or until the limit.
    pub async fn all_recorded(&self) {
        let mut changes = self.in_hand.subscribe();
        let InHand { count, since } = self.in_hand.view(|in_hand| *in_hand);
        let left = LIMIT.saturating_sub(self.clock.monotonic().saturating_sub(since));
        if count > 0 && !left.is_zero() {
            let _ = timeout(left, changes.changed()).await;
        }
    }
}

impl Drop for InterruptionGuard<'_> {
    fn drop(&mut self) {
        self.0.in_hand.change_if(|in_hand| {
            in_hand.count = in_hand.count.saturating_sub(1);
            in_hand.count == 0
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use tokio::time::Instant;

    use super::*;
    use crate::edge::clock::testing::TestClock;

    fn unrecorded() -> (Unrecorded, Arc<TestClock>) {
        let clock = Arc::new(TestClock::new());
        (Unrecorded::new(clock.clone()), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn loops_do_not_wait_without_an_interruption() {
        let (unrecorded, _) = unrecorded();
        assert_eq!(unrecorded.all_recorded().now_or_never(), Some(()));
        drop(unrecorded.heard());
        assert_eq!(unrecorded.all_recorded().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_decides_waits_until_the_last_is_recorded() {
        let (unrecorded, _) = unrecorded();
        let (one, other) = (unrecorded.heard(), unrecorded.heard());
        let mut waiting = Box::pin(unrecorded.all_recorded());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(one);
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(other);
        assert_eq!(waiting.as_mut().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_unrecordable_interruption_delays_loops_only_briefly() {
        let (unrecorded, clock) = unrecorded();
        let never_recorded = unrecorded.heard();
        let begun = Instant::now();
        unrecorded.all_recorded().await;
        assert_eq!(begun.elapsed(), LIMIT);
        clock.advance(LIMIT);
        let heard_later = unrecorded.heard();
        assert_eq!(unrecorded.all_recorded().now_or_never(), Some(()), "it has waited for that long");
        drop((never_recorded, heard_later));
    }
}
