//! The memory of offerings that failed: out of stock, over quota, or nodes that never became usable.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::OfferingId;

use crate::model::NodeClassRef;

/// Which offerings not to buy for a while, per node class. Each failure in a row doubles the time; a success ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setbacks {
    first: SignedDuration,
    most: SignedDuration,
    offerings: BTreeMap<(NodeClassRef, OfferingId), Setback>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setback {
    failures: u32,
    until: Timestamp,
}

impl Default for Setbacks {
    /// 1 minute, doubling to 60 minutes.
    fn default() -> Self {
        Self::new(SignedDuration::from_mins(1), SignedDuration::from_mins(60))
    }
}

impl Setbacks {
    /// Nothing failed yet; the first failure holds an offering back for `first`, and none for longer than `most`.
    pub fn new(first: SignedDuration, most: SignedDuration) -> Self {
        Self { first, most, offerings: BTreeMap::new() }
    }

    /// Takes note of a failure, and says until when the offering is held back. A failure while it is held back is of an
    /// order placed before, and does not count again.
    pub fn failed(&mut self, node_class: &NodeClassRef, offering: &OfferingId, now: Timestamp) -> Timestamp {
        let setback = self
            .offerings
            .entry((node_class.clone(), offering.clone()))
            .or_insert(Setback { failures: 0, until: Timestamp::MIN });
        if setback.until <= now {
            let doublings = setback.failures.min(30);
            let seconds = self.first.as_secs().saturating_mul(1 << doublings).min(self.most.as_secs());
            setback.failures = setback.failures.saturating_add(1);
            setback.until = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        }
        setback.until
    }

    /// Takes note of a success: the offering is bought again, and the next failure counts as the first.
    pub fn succeeded(&mut self, node_class: &NodeClassRef, offering: &OfferingId) {
        self.offerings.remove(&(node_class.clone(), offering.clone()));
    }

    /// What is held back at `now`, and until when: for [`crate::Snapshot::held_back`].
    pub fn held_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Timestamp> {
        let held = self.offerings.iter().filter(|(_, setback)| setback.until > now);
        held.map(|(key, setback)| (key.clone(), setback.until)).collect()
    }

    /// When the next offering is free again; `None` when none is held back.
    pub fn next_release(&self, now: Timestamp) -> Option<Timestamp> {
        self.offerings.values().map(|setback| setback.until).filter(|until| *until > now).min()
    }
}
