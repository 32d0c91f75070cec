//! The ends of pods that the index saw, each once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::{SignedDuration, Timestamp};

use crate::model::{ClaimName, Uid};

/// The number of pods whose ends are remembered one by one.
pub(super) const REMEMBERED: usize = 4_096;

/// Nodes that were terminated without work: the kind of each, and since when it had none.
pub(crate) type GivenUp = BTreeMap<ClaimName, (String, Timestamp)>;

/// What learning needs besides what was learned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learning {
    /// The last pods that ended, in the order in which they did.
    pub(super) ends: VecDeque<End>,
    /// Their UIDs. No pod counts twice.
    pub(super) counted: BTreeSet<Uid>,
    /// UIDs of pods that an earlier leader counted shortly before its last record. They do not count again.
    pub(super) recorded: BTreeSet<Uid>,
    /// When expectations were last worked out.
    pub(super) worked_out: Option<Timestamp>,
}

/// The end of a pod.
#[derive(Clone, Debug)]
pub(super) struct End {
    pub(super) uid: Uid,
    pub(super) kinds: Vec<String>,
    pub(super) age: SignedDuration,
    pub(super) finished: bool,
    pub(super) at: Timestamp,
}

impl Learning {
    /// Remembers the end of a pod. Returns whether it is new.
    pub(super) fn add(&mut self, end: End) -> bool {
        if self.recorded.contains(&end.uid) || !self.counted.insert(end.uid.clone()) {
            return false;
        }
        self.ends.push_back(end);
        if self.ends.len() > REMEMBERED
            && let Some(oldest) = self.ends.pop_front()
        {
            self.counted.remove(&oldest.uid);
        }
        true
    }
}
