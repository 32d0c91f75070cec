//! Leader terms: the right to write while we lead.

use tokio::time::sleep;

use crate::edge::clock::{Moment, SharedClock};
use crate::edge::signal::Receiver;

/// A term of leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderTerm {
    /// When it expires unless renewed, on whichever clock comes first.
    pub expires: Moment,
    /// The number of the term. It grows each time that we become leader.
    pub number: u64,
}

impl LeaderTerm {
    /// Whether it has not expired.
    pub fn is_current(&self, now: Moment) -> bool {
        !now.until(self.expires).is_zero()
    }
}

/// Access to the current term.
#[derive(Clone)]
pub struct LeaderTerms {
    term: Receiver<Option<LeaderTerm>>,
    clock: SharedClock,
}

impl LeaderTerms {
    pub(crate) fn new(term: Receiver<Option<LeaderTerm>>, clock: SharedClock) -> Self {
        Self { term, clock }
    }

    /// The current term, if we lead.
    pub fn current(&self) -> Option<LeaderTerm> {
        let term = self.term.view(|term| *term);
        term.filter(|term| term.is_current(self.clock.moment()))
    }

    /// Whether the term with this number is the current one.
    pub fn is_current(&self, number: u64) -> bool {
        self.current().is_some_and(|term| term.number == number)
    }

    /// Waits until we lead; for ever if the elector is gone.
    pub async fn gained(&self) -> LeaderTerm {
        let mut changes = self.term.clone();
        loop {
            changes.mark_seen();
            if let Some(term) = self.current() {
                return term;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until the term with this number is over: lost, expired or released.
    pub async fn lost(&self, number: u64) {
        let mut changes = self.term.clone();
        loop {
            changes.mark_seen();
            let term = changes.view(|term| *term);
            let Some(term) = term.filter(|term| term.number == number) else { return };
            let left = self.clock.moment().until(term.expires);
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
    //! Leader terms that a test grants and revokes.

    use std::time::Duration;

    use super::{LeaderTerm, LeaderTerms, SharedClock};
    use crate::edge::signal::{self, Sender};

    pub fn granted(clock: &SharedClock) -> (Sender<Option<LeaderTerm>>, LeaderTerms) {
        let expires = clock.moment().after(Duration::from_secs(15));
        let sender = signal::sender(Some(LeaderTerm { expires, number: 1 }));
        let terms = LeaderTerms::new(sender.subscribe(), clock.clone());
        (sender, terms)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::edge::clock::testing::TestClock;

    #[test]
    fn a_term_ends_by_itself_also_when_the_machine_slept() {
        let clock = Arc::new(TestClock::new());
        let shared: SharedClock = clock.clone();
        let (_sender, terms) = testing::granted(&shared);
        assert!(terms.current().is_some());
        clock.advance(Duration::from_secs(14));
        assert!(terms.current().is_some());
        clock.advance_wall(Duration::from_secs(1));
        assert!(terms.current().is_none());
    }

    #[tokio::test]
    async fn losing_the_term_is_noticed_at_once() {
        let clock: SharedClock = Arc::new(TestClock::new());
        let (sender, terms) = testing::granted(&clock);
        let term = terms.gained().await;
        let lost = tokio::spawn({
            let terms = terms.clone();
            async move { terms.lost(term.number).await }
        });
        sender.replace(None);
        lost.await.unwrap();
        assert!(terms.current().is_none());
    }

    #[tokio::test]
    async fn a_term_is_lost_when_the_next_one_begins() {
        let clock: SharedClock = Arc::new(TestClock::new());
        let (sender, terms) = testing::granted(&clock);
        let first = terms.gained().await;
        sender.change_if(|term| {
            let Some(term) = term else { return false };
            term.number += 1;
            true
        });
        terms.lost(first.number).await;
        assert!(terms.current().is_some());
    }
}
