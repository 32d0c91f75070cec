//! New instances that their cloud does not know.
//!
//! A cloud may show a new instance late, in its listings and by its id: EC2 does. Until its node joins, nothing else proves that it is
//! there. So it counts as gone only when two searches some time apart have not found it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::doubts::Absent;

/// The least time between two searches that together prove that a new instance is gone.
const APART: SignedDuration = SignedDuration::from_secs(20);

/// The new instances that the last searches did not find, and when the first of these searches began.
#[derive(Debug, Default)]
pub(super) struct Missed(BTreeMap<String, Timestamp>);

impl Missed {
    /// Forgets the instances that a listing does not lack any more.
    pub(super) fn retain(&mut self, absent: &[Absent]) {
        self.0.retain(|id, _| absent.iter().any(|one| one.provider_id == *id));
    }

    /// Forgets an instance that was found by its id.
    pub(super) fn found(&mut self, provider_id: &str) {
        self.0.remove(provider_id);
    }

    /// Notes that a search at `at` did not find an instance. Returns whether that proves that it is gone.
    pub(super) fn proves(&mut self, absent: &Absent, at: Timestamp) -> bool {
        if !absent.is_new {
            return true;
        }
        let first = self.0.entry(absent.provider_id.clone()).or_insert(at);
        // The calendar may have been set back.
        *first = at.min(*first);
        at.duration_since(*first) >= APART
    }
}
