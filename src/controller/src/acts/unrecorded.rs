//! What clouds say is written down before anything new is begun.
//!
//! Hundreds of instances may be told of in one second. Were the first of them fenced and replaced while the others are not written down
//! yet, those would wait for it, be unknown to whoever leads next, and be missing in the plan. So who decides waits until all that was
//! heard is recorded, though not for long: an API server that takes no records must not keep the rest from being done.

use std::time::Duration;

use tokio::time::timeout;

use crate::edge::clock::SharedClock;
use crate::edge::signal::{self, Sender};

/// How long others wait, from when the first of what is not recorded was heard: a small part of the two minutes that spot instances have.
const LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, Default)]
struct InHand {
    count: usize,
    since: Duration,
}

/// What was heard and is not recorded.
pub struct Rush {
    in_hand: Sender<InHand>,
    clock: SharedClock,
}

/// One thing that was heard. Nobody waits for it any more when this is dropped.
#[must_use]
pub struct Heard<'a>(&'a Rush);

impl Rush {
    /// Nothing was heard.
    pub fn new(clock: SharedClock) -> Self {
        Self { in_hand: signal::sender(InHand::default()), clock }
    }

    /// Something was heard.
    pub fn heard(&self) -> Heard<'_> {
        let now = self.clock.monotonic();
        self.in_hand.change_if(|in_hand| {
            if in_hand.count == 0 {
                in_hand.since = now;
            }
            in_hand.count += 1;
            false
        });
        Heard(self)
    }

    /// Waits until all that was heard is recorded, or others have waited long enough.
    pub async fn is_over(&self) {
        let mut changes = self.in_hand.subscribe();
        let InHand { count, since } = self.in_hand.view(|in_hand| *in_hand);
        let left = LIMIT.saturating_sub(self.clock.monotonic().saturating_sub(since));
        if count > 0 && !left.is_zero() {
            let _ = timeout(left, changes.changed()).await;
        }
    }
}

impl Drop for Heard<'_> {
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

    fn rush() -> (Rush, Arc<TestClock>) {
        let clock = Arc::new(TestClock::new());
        (Rush::new(clock.clone()), clock)
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_when_nothing_was_heard() {
        let (rush, _) = rush();
        assert_eq!(rush.is_over().now_or_never(), Some(()));
        drop(rush.heard());
        assert_eq!(rush.is_over().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_decides_waits_until_the_last_is_recorded() {
        let (rush, _) = rush();
        let (one, other) = (rush.heard(), rush.heard());
        let mut waiting = Box::pin(rush.is_over());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(one);
        assert_eq!(waiting.as_mut().now_or_never(), None);
        drop(other);
        assert_eq!(waiting.as_mut().now_or_never(), Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_recorded_holds_nobody_up_for_long() {
        let (rush, clock) = rush();
        let never_recorded = rush.heard();
        let begun = Instant::now();
        rush.is_over().await;
        assert_eq!(begun.elapsed(), LIMIT);
        clock.advance(LIMIT);
        let heard_later = rush.heard();
        assert_eq!(rush.is_over().now_or_never(), Some(()), "it has waited for that long");
        drop((never_recorded, heard_later));
    }
}
