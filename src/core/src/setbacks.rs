//! The memory of offerings that failed: out of stock, over quota, nodes that never became usable, and instances that the cloud
//! took back.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::{CapacityType, OfferingId};

use crate::model::{InterruptionKind, NodeClassRef};

/// For how long an offering is avoided of which the cloud took an instance back; each time in a row doubles it.
const TAKEN_BACK: SignedDuration = SignedDuration::from_mins(5);

/// Which offerings not to buy for a while, or only where all else is much dearer, per node class. Each failure in a row doubles the
/// time; a success ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setbacks {
    first: SignedDuration,
    most: SignedDuration,
    offerings: BTreeMap<(NodeClassRef, OfferingId), Setback>,
    /// Those of which the cloud took instances back. That another is sold says nothing of how long it is left to us.
    taken_back: BTreeMap<(NodeClassRef, OfferingId), Setback>,
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
        Self { first, most, offerings: BTreeMap::new(), taken_back: BTreeMap::new() }
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

    /// Takes note of what a cloud said of an instance of this offering, and when: of one that it takes back, or is likely to. Those that
    /// it takes at one time count once; a time after the setback as long as the longest ends a row.
    pub fn interrupted(
        &mut self,
        node_class: &NodeClassRef,
        offering: &OfferingId,
        kind: InterruptionKind,
        at: Timestamp,
    ) {
        if !kind.tells_of_the_offering() {
            return;
        }
        let setback = self
            .taken_back
            .entry((node_class.clone(), offering.clone()))
            .or_insert(Setback { failures: 0, until: Timestamp::MIN });
        if kind == InterruptionKind::Rebalance {
            // A hint: as much as one that is out of stock.
            setback.until = setback.until.max(at.checked_add(self.first).unwrap_or(Timestamp::MAX));
            return;
        }
        if setback.failures > 0 && at < setback.until {
            return;
        }
        if setback.until.checked_add(self.most).is_ok_and(|forgotten| forgotten <= at) {
            setback.failures = 0;
        }
        let doublings = setback.failures.min(30);
        let seconds = TAKEN_BACK.as_secs().saturating_mul(1 << doublings).min(self.most.as_secs());
        setback.failures = setback.failures.saturating_add(1);
        let until = at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        setback.until = setback.until.max(until);
    }

    /// Takes note of a success: the offering is bought again, and the next failure counts as the first.
    pub fn succeeded(&mut self, node_class: &NodeClassRef, offering: &OfferingId) {
        self.offerings.remove(&(node_class.clone(), offering.clone()));
    }

    /// What is held back at `now`, and until when: for [`crate::Snapshot::held_back`]. What failed, and what is paid for beforehand and
    /// was taken back: that costs nothing, and no multiple of nothing says that something else is to be preferred.
    pub fn held_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Timestamp> {
        let prepaid = self.taken_back.iter().filter(|((_, id), _)| is_prepaid(id));
        let mut held = BTreeMap::new();
        for (key, setback) in self.offerings.iter().chain(prepaid).filter(|(_, one)| one.until > now) {
            let until = held.entry(key.clone()).or_insert(setback.until);
            *until = (*until).max(setback.until);
        }
        held
    }

    /// What the cloud takes back at `now` and may be bought all the same, and until when that counts: for
    /// [`crate::Snapshot::taken_back`].
    pub fn taken_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Timestamp> {
        let counts = |((_, id), setback): &(&(NodeClassRef, OfferingId), &Setback)| {
            !is_prepaid(id) && setback.until > now
        };
        self.taken_back.iter().filter(counts).map(|(key, setback)| (key.clone(), setback.until)).collect()
    }

    /// When the next offering is as good as any again; `None` when none is held back and none is taken back.
    pub fn next_release(&self, now: Timestamp) -> Option<Timestamp> {
        let all = self.offerings.values().chain(self.taken_back.values());
        all.map(|setback| setback.until).filter(|until| *until > now).min()
    }
}

fn is_prepaid(id: &OfferingId) -> bool {
    id.capacity_type == CapacityType::Reserved
}
