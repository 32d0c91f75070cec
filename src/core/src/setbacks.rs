//! The memory of what failed: offerings that were out of stock or over quota, or whose nodes never became usable; instances
//! that the cloud took back; node classes that cannot launch; namespaces whose pods may not be given a toleration.
//!
//! It is lost with the process. Nothing goes wrong without it: what still fails is learned again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::OfferingId;
use poolwright_terms::{CapacityType, ConditionType, InterruptionKind, NodeClassRef};

use crate::model::{Claim, TakenBack, Uid};

/// For how long an offering is avoided of which the cloud took an instance back; each time in a row doubles it.
const TAKEN_BACK: SignedDuration = SignedDuration::from_mins(5);
/// Instances that are taken back within this time go together: as long as spot instances have after they were told.
const TOGETHER: SignedDuration = SignedDuration::from_mins(2);

/// How long a refusal to add tolerations is believed: rights may be given.
const REFUSED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Which offerings not to buy for a while, or only where all else is much dearer, per node class. Each failure in a row doubles the
/// time; a success ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setbacks {
    first: SignedDuration,
    most: SignedDuration,
    offerings: BTreeMap<(NodeClassRef, OfferingId), Setback>,
    /// Those of which the cloud took instances back. That another is sold says nothing of how long it is left to us.
    taken_back: BTreeMap<(NodeClassRef, OfferingId), Reclaims>,
    /// The interruptions that it knows.
    interruptions: BTreeSet<(Uid, InterruptionKind)>,
    /// Why launches with a node class can never work.
    launch_problems: BTreeMap<NodeClassRef, String>,
    /// Namespaces where a toleration was refused, and until when that is believed.
    refusals: BTreeMap<String, Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reclaims {
    /// How often in a row.
    row: u32,
    /// When the last of these was.
    last: Timestamp,
    until: Timestamp,
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
        Self {
            first,
            most,
            offerings: BTreeMap::new(),
            taken_back: BTreeMap::new(),
            interruptions: BTreeSet::new(),
            launch_problems: BTreeMap::new(),
            refusals: BTreeMap::new(),
        }
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
    /// it takes together count once; a time after the setback as long as the longest ends a row.
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
        let fresh = Reclaims { row: 0, last: Timestamp::MIN, until: Timestamp::MIN };
        let reclaims = self.taken_back.entry((node_class.clone(), offering.clone())).or_insert(fresh);
        if kind == InterruptionKind::Rebalance {
            // A hint: as much as one that is out of stock.
            reclaims.until = reclaims.until.max(at.checked_add(self.first).unwrap_or(Timestamp::MAX));
            return;
        }
        let together = reclaims.last.checked_add(TOGETHER).unwrap_or(Timestamp::MAX);
        if reclaims.row > 0 && at < together {
            return;
        }
        if reclaims.until.checked_add(self.most).is_ok_and(|forgotten| forgotten <= at) {
            reclaims.row = 0;
        }
        let doublings = reclaims.row.min(30);
        let seconds = TAKEN_BACK.as_secs().saturating_mul(1 << doublings).min(self.most.as_secs());
        let until = at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        *reclaims =
            Reclaims { row: reclaims.row.saturating_add(1), last: at, until: reclaims.until.max(until) };
    }

    /// Takes note of the interruptions that are recorded on these claims, each once. They are all that are known now. Returns
    /// whether there are or were any.
    pub fn note_interruptions<'a>(
        &mut self,
        claims: impl Iterator<Item = &'a Arc<Claim>>,
        now: Timestamp,
    ) -> bool {
        let before = std::mem::take(&mut self.interruptions);
        for claim in claims {
            let Some(interruption) = &claim.interruption else { continue };
            let key = (claim.uid.clone(), interruption.kind);
            if !before.contains(&key) {
                let recorded = claim.conditions.get(&ConditionType::Interrupted);
                let at = recorded.map_or(interruption.noticed, |recorded| recorded.since).min(now);
                let offering = &claim.current_offering().offering;
                self.interrupted(&claim.node_class, offering, interruption.kind, at);
            }
            self.interruptions.insert(key);
        }
        !(before.is_empty() && self.interruptions.is_empty())
    }

    /// Takes note of a success: the offering is bought again, and the next failure counts as the first. Launches with the node
    /// class can work.
    pub fn succeeded(&mut self, node_class: &NodeClassRef, offering: &OfferingId) {
        self.offerings.remove(&(node_class.clone(), offering.clone()));
        self.launch_problems.remove(node_class);
    }

    /// Takes note that launches with a node class can never work until a person changes something.
    pub fn launch_invalid(&mut self, node_class: &NodeClassRef, why: &str) {
        self.launch_problems.insert(node_class.clone(), why.to_owned());
    }

    /// Why launches with a node class can never work, by class.
    pub fn launch_problems(&self) -> &BTreeMap<NodeClassRef, String> {
        &self.launch_problems
    }

    /// Takes note that pods of this namespace may not be given a toleration. Returns whether that is news.
    pub fn toleration_refused(&mut self, namespace: &str, now: Timestamp) -> bool {
        let until = now.checked_add(REFUSED_FOR).unwrap_or(Timestamp::MAX);
        self.refusals.insert(namespace.to_owned(), until).is_none_or(|until| until <= now)
    }

    /// The namespaces whose pods may not be given a toleration, as far as is believed at `now`.
    pub fn unpatchable(&self, now: Timestamp) -> BTreeSet<String> {
        let believed = self.refusals.iter().filter(|(_, until)| **until > now);
        believed.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// What is held back at `now`, and until when: for [`crate::model::Snapshot::held_back`]. What failed, and what is paid for beforehand and
    /// was taken back: that costs nothing, and no multiple of nothing says that something else is to be preferred.
    pub fn held_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Timestamp> {
        let failed = self.offerings.iter().map(|(key, setback)| (key, setback.until));
        let prepaid = self.taken_back.iter().filter(|((_, id), _)| is_prepaid(id));
        let prepaid = prepaid.map(|(key, reclaims)| (key, reclaims.until));
        let mut held = BTreeMap::new();
        for (key, until) in failed.chain(prepaid).filter(|(_, until)| *until > now) {
            let latest = held.entry(key.clone()).or_insert(until);
            *latest = (*latest).max(until);
        }
        held
    }

    /// What the cloud takes back at `now` and may be bought all the same: for [`crate::model::Snapshot::taken_back`].
    pub fn taken_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), TakenBack> {
        let counts = |((_, id), reclaims): &(&(NodeClassRef, OfferingId), &Reclaims)| {
            !is_prepaid(id) && reclaims.until > now
        };
        let said = |reclaims: &Reclaims| TakenBack { until: reclaims.until, row: reclaims.row.max(1) };
        self.taken_back.iter().filter(counts).map(|(key, reclaims)| (key.clone(), said(reclaims))).collect()
    }

    /// When the next offering is as good as any again; `None` when none is held back and none is taken back.
    pub fn next_release(&self, now: Timestamp) -> Option<Timestamp> {
        let failed = self.offerings.values().map(|setback| setback.until);
        let all = failed.chain(self.taken_back.values().map(|reclaims| reclaims.until));
        all.filter(|until| *until > now).min()
    }
}

fn is_prepaid(id: &OfferingId) -> bool {
    id.capacity_type == CapacityType::Reserved
}
