//! The right to act, with its expiry.

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::edge::clock::{Moment, SharedClock};
use crate::edge::signal::Receiver;

/// We lead until then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderClaim {
    /// When the claim ends if it is not renewed, on whichever clock comes first.
    pub expires: Moment,
    /// Which term of ours this is: a number that grows each time that we become leader.
    pub term: u64,
}

impl LeaderClaim {
    /// Whether it still holds.
    pub fn is_current(&self, now: Moment) -> bool {
        !now.until(self.expires).is_zero()
    }
}

/// Where everyone who acts looks up whether it may.
#[derive(Clone)]
pub struct ClaimWatch {
    claim: Receiver<Option<LeaderClaim>>,
    clock: SharedClock,
}

impl ClaimWatch {
    pub(crate) fn new(claim: Receiver<Option<LeaderClaim>>, clock: SharedClock) -> Self {
        Self { claim, clock }
    }

    /// The claim, if we hold one that is current.
    pub fn current(&self) -> Option<LeaderClaim> {
        let claim = self.claim.view(|claim| *claim);
        claim.filter(|claim| claim.is_current(self.clock.moment()))
    }

    /// Returns when we hold a current claim; never, if the elector is gone.
    pub async fn gained(&self) -> LeaderClaim {
        let mut changes = self.claim.clone();
        loop {
            changes.mark_seen();
            if let Some(claim) = self.current() {
                return claim;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Does the work of a leader in each term of ours, until told to stop. The work of a term is dropped with it, wherever it is.
    pub async fn while_leading<F: Future<Output = ()>>(
        &self,
        what: &str,
        shutdown: &CancellationToken,
        lead: impl Fn(LeaderClaim) -> F,
    ) {
        loop {
            let claim = tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                claim = self.gained() => claim,
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return,
                () = self.lost(claim.term) => debug!(what, "stops: not leading"),
                () = lead(claim) => {}
            }
        }
    }

    /// Returns as soon as this term is over: lost, expired or given up.
    pub async fn lost(&self, term: u64) {
        let mut changes = self.claim.clone();
        loop {
            changes.mark_seen();
            let claim = changes.view(|claim| *claim);
            let Some(claim) = claim.filter(|claim| claim.term == term) else { return };
            let left = self.clock.moment().until(claim.expires);
            if left.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = sleep(left) => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }
}

#[cfg(test)]
pub mod testing {
    //! A claim that a test grants and takes away.

    use std::time::Duration;

    use super::{ClaimWatch, LeaderClaim, SharedClock};
    use crate::edge::signal::{self, Sender};

    pub fn granted(clock: &SharedClock) -> (Sender<Option<LeaderClaim>>, ClaimWatch) {
        let expires = clock.moment().after(Duration::from_secs(15));
        let sender = signal::sender(Some(LeaderClaim { expires, term: 1 }));
        let claims = ClaimWatch::new(sender.subscribe(), clock.clone());
        (sender, claims)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::edge::clock::testing::TestClock;

    #[test]
    fn a_claim_ends_by_itself_also_when_the_machine_slept() {
        let clock = Arc::new(TestClock::new());
        let shared: SharedClock = clock.clone();
        let (_sender, claims) = testing::granted(&shared);
        assert!(claims.current().is_some());
        clock.advance(Duration::from_secs(14));
        assert!(claims.current().is_some());
        clock.advance_wall(Duration::from_secs(1));
        assert!(claims.current().is_none());
    }

    #[tokio::test]
    async fn losing_the_claim_is_noticed_at_once() {
        let clock: SharedClock = Arc::new(TestClock::new());
        let (sender, claims) = testing::granted(&clock);
        let claim = claims.gained().await;
        let lost = tokio::spawn({
            let claims = claims.clone();
            async move { claims.lost(claim.term).await }
        });
        sender.replace(None);
        lost.await.unwrap();
        assert!(claims.current().is_none());
    }

    #[tokio::test]
    async fn the_work_of_a_term_ends_with_it_and_begins_anew_in_the_next() {
        let clock: SharedClock = Arc::new(TestClock::new());
        let (sender, claims) = testing::granted(&clock);
        let shutdown = CancellationToken::new();
        let (began, mut begins) = tokio::sync::mpsc::unbounded_channel();
        let work = tokio::spawn({
            let (claims, shutdown) = (claims.clone(), shutdown.clone());
            async move {
                let lead = |claim: LeaderClaim| {
                    began.send(claim.term).unwrap();
                    std::future::pending()
                };
                claims.while_leading("work", &shutdown, lead).await;
            }
        });
        assert_eq!(begins.recv().await, Some(1));
        sender.change_if(|claim| {
            claim.as_mut().is_some_and(|claim| {
                claim.term = 2;
                true
            })
        });
        assert_eq!(begins.recv().await, Some(2));
        shutdown.cancel();
        work.await.unwrap();
        assert_eq!(begins.recv().await, None, "nothing began after that");
    }

    #[tokio::test]
    async fn another_term_is_another_claim() {
        let clock: SharedClock = Arc::new(TestClock::new());
        let (sender, claims) = testing::granted(&clock);
        let first = claims.gained().await;
        sender.change_if(|claim| {
            let Some(claim) = claim else { return false };
            claim.term += 1;
            true
        });
        claims.lost(first.term).await;
        assert!(claims.current().is_some());
    }
}
