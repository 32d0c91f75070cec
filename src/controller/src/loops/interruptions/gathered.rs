//! The notices in hand, by claim. Those about one claim are recorded one after the other, and each write contains all of them.
//!
//! A cloud often sends several notices about one instance at once: a recommendation, a warning, and repetitions. Concurrent
//! writes of them would conflict, and take four calls to the API server where one is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use poolwright_core::{Interruption, Uid};
use tokio::sync::{OwnedMutexGuard, Semaphore, SemaphorePermit};

/// How many claims are written concurrently.
const AT_A_TIME: usize = 32;

/// The notices in hand.
#[derive(Debug)]
pub struct Gathered {
    claims: Mutex<BTreeMap<Uid, Notices>>,
    slots: Semaphore,
}

/// The notices in hand about one claim.
#[derive(Debug)]
struct Notices {
    merged: Interruption,
    count: usize,
    /// Locked while one of them is recorded.
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A notice in hand, until it is dropped.
#[derive(Debug)]
pub struct Notice<'a> {
    gathered: &'a Gathered,
    uid: Uid,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// The right to write a claim.
#[must_use]
#[derive(Debug)]
pub struct Turn<'a> {
    _claim: OwnedMutexGuard<()>,
    _slot: Option<SemaphorePermit<'a>>,
}

impl Default for Gathered {
    fn default() -> Self {
        Self { claims: Mutex::default(), slots: Semaphore::new(AT_A_TIME) }
    }
}

impl Gathered {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uid, Notices>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a notice about the claim with this UID.
    pub fn add(&self, uid: &Uid, said: &Interruption) -> Notice<'_> {
        let mut claims = self.lock();
        let first = || Notices { merged: said.clone(), count: 0, turn: Arc::default() };
        let notices = claims.entry(uid.clone()).or_insert_with(first);
        notices.merged = notices.merged.merged(said);
        notices.count += 1;
        Notice { gathered: self, uid: uid.clone(), turn: notices.turn.clone() }
    }
}

impl Notice<'_> {
    /// Waits until no other notice about the claim is being recorded, and then for one of the slots that all claims share.
    pub async fn turn(&self) -> Turn<'_> {
        let claim = self.turn.clone().lock_owned().await;
        // The semaphore is never closed.
        Turn { _claim: claim, _slot: self.gathered.slots.acquire().await.ok() }
    }

    /// Returns what this notice says, merged with all others in hand about the claim.
    pub fn merged(&self, said: &Interruption) -> Interruption {
        self.gathered.lock().get(&self.uid).map_or_else(|| said.clone(), |all| all.merged.clone())
    }
}

impl Drop for Notice<'_> {
    fn drop(&mut self) {
        let mut claims = self.gathered.lock();
        let Some(notices) = claims.get_mut(&self.uid) else { return };
        notices.count -= 1;
        if notices.count == 0 {
            claims.remove(&self.uid);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use jiff::Timestamp;
    use poolwright_terms::InterruptionKind;

    use super::*;

    fn said(kind: InterruptionKind) -> Interruption {
        Interruption { kind, noticed: Timestamp::UNIX_EPOCH, deadline: None, message: kind.to_string() }
    }

    #[test]
    fn notices_about_one_claim_take_turns_and_each_write_contains_all_of_them() {
        let (hint, warning) = (said(InterruptionKind::Rebalance), said(InterruptionKind::Reclaim));
        let (gathered, claim) = (Gathered::default(), Uid("a".into()));
        let first = gathered.add(&claim, &hint);
        let second = gathered.add(&claim, &warning);
        let other = gathered.add(&Uid("b".into()), &hint);
        assert_eq!((first.merged(&hint), other.merged(&hint)), (warning.clone(), hint.clone()));
        let turn = first.turn().now_or_never().expect("nobody else writes");
        assert!(second.turn().now_or_never().is_none(), "the first is being recorded");
        assert!(other.turn().now_or_never().is_some(), "another claim does not wait");
        drop(turn);
        assert!(second.turn().now_or_never().is_some());
        drop((first, second));
        assert_eq!(gathered.add(&claim, &hint).merged(&hint), hint, "what was handled is forgotten");
    }

    #[test]
    fn only_as_many_claims_are_written_at_a_time_as_there_are_slots() {
        let gathered = Gathered::default();
        let hint = said(InterruptionKind::Rebalance);
        let notices: Vec<_> =
            (0..=AT_A_TIME).map(|number| gathered.add(&Uid(number.to_string()), &hint)).collect();
        let turns: Vec<_> = notices.iter().map_while(|notice| notice.turn().now_or_never()).collect();
        assert_eq!(turns.len(), AT_A_TIME);
        drop(turns);
        assert!(notices[AT_A_TIME].turn().now_or_never().is_some());
    }
}
