//! Back-off after failures. It covers offerings that were out of stock or over quota, or whose nodes never became usable;
//! offerings whose instances the cloud reclaimed; node classes that cannot launch; and namespaces whose pods may not be given a
//! toleration.
//!
//! It is lost when the process ends. That does no harm, because lasting failures show again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::OfferingId;
use poolwright_terms::{CapacityType, ConditionType, InterruptionKind, NodeClassRef};

use crate::model::{Claim, Reclaims, Uid};

/// The time for which an offering is avoided after the cloud reclaimed an instance of it. It doubles with each consecutive
/// reclaim.
const RECLAIM_BACKOFF: SignedDuration = SignedDuration::from_mins(5);
/// The time within which several reclaims count as one. Spot instances get a notice of this length.
const TOGETHER: SignedDuration = SignedDuration::from_mins(2);

/// The time for which a refusal to add tolerations is remembered, because permissions may change.
const REFUSED_FOR: SignedDuration = SignedDuration::from_mins(10);

/// Offerings to avoid for a while, or to buy only if everything else is much more expensive, by node class. Each consecutive
/// failure doubles the time. No success shortens it. A success of a claim that was created after that time ends the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setbacks {
    first: SignedDuration,
    most: SignedDuration,
    offerings: BTreeMap<(NodeClassRef, OfferingId), Setback>,
    /// Offerings whose instances the cloud reclaimed. A successful launch does not end this setback, because it does not show how
    /// long the instance will last.
    reclaims: BTreeMap<(NodeClassRef, OfferingId), ReclaimHistory>,
    /// The interruptions counted so far.
    interruptions: BTreeSet<(Uid, InterruptionKind)>,
    /// The reason why launches with a node class cannot succeed.
    launch_problems: BTreeMap<NodeClassRef, String>,
    /// Namespaces where a toleration was refused, and the time until which that is remembered.
    refusals: BTreeMap<String, Timestamp>,
}

/// The reclaims of one offering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ReclaimHistory {
    /// The number of consecutive reclaims.
    consecutive: u32,
    /// The time of the last reclaim.
    last: Timestamp,
    until: Timestamp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setback {
    /// The number of consecutive failures.
    failures: u32,
    until: Timestamp,
    /// The time of the last success of a claim that was created after `until`. Claims created before it may still fail: they belong
    /// to the same round, as the nodes of one gang do, and their failures continue the row.
    succeeded: Option<Timestamp>,
}

impl Default for Setbacks {
    /// Creates setbacks that last one minute at first, doubling up to one hour.
    fn default() -> Self {
        Self::new(SignedDuration::from_mins(1), SignedDuration::from_mins(60))
    }
}

impl Setbacks {
    /// Creates setbacks without failures. The first failure holds an offering back for `first`; no offering is held back for
    /// longer than `most`.
    pub fn new(first: SignedDuration, most: SignedDuration) -> Self {
        Self {
            first,
            most,
            offerings: BTreeMap::new(),
            reclaims: BTreeMap::new(),
            interruptions: BTreeSet::new(),
            launch_problems: BTreeMap::new(),
            refusals: BTreeMap::new(),
        }
    }

    /// Registers that a launch for this claim failed for the offering, or that its node never became usable. Returns the time until
    /// which the offering is held back. A failure while the offering is held back belongs to an earlier launch and does not count
    /// again.
    pub fn failed(&mut self, claim: &Claim, offering: &OfferingId, now: Timestamp) -> Timestamp {
        let setback = self.offerings.entry((claim.node_class.clone(), offering.clone())).or_insert(Setback {
            failures: 0,
            until: Timestamp::MIN,
            succeeded: None,
        });
        if setback.until <= now {
            if setback.succeeded.take().is_some_and(|at| at < claim.created) {
                setback.failures = 0;
            }
            let doublings = setback.failures.min(30);
            let seconds = self.first.as_secs().saturating_mul(1 << doublings).min(self.most.as_secs());
            setback.failures = setback.failures.saturating_add(1);
            setback.until = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        }
        setback.until
    }

    /// Registers that the cloud reclaims an instance of this offering, or is likely to. Reclaims at about the same time count
    /// once. If no reclaim follows for the longest setback time after a back-off ends, the count starts again.
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
        let fresh = ReclaimHistory { consecutive: 0, last: Timestamp::MIN, until: Timestamp::MIN };
        let reclaims = self.reclaims.entry((node_class.clone(), offering.clone())).or_insert(fresh);
        if kind == InterruptionKind::Rebalance {
            // The reclaim is only likely, so it counts for as long as a first failure.
            reclaims.until = reclaims.until.max(at.checked_add(self.first).unwrap_or(Timestamp::MAX));
            return;
        }
        let together = reclaims.last.checked_add(TOGETHER).unwrap_or(Timestamp::MAX);
        if reclaims.consecutive > 0 && at < together {
            return;
        }
        if reclaims.until.checked_add(self.most).is_ok_and(|forgotten| forgotten <= at) {
            reclaims.consecutive = 0;
        }
        let doublings = reclaims.consecutive.min(30);
        let seconds = RECLAIM_BACKOFF.as_secs().saturating_mul(1 << doublings).min(self.most.as_secs());
        let until = at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        *reclaims = ReclaimHistory {
            consecutive: reclaims.consecutive.saturating_add(1),
            last: at,
            until: reclaims.until.max(until),
        };
    }

    /// Registers the interruptions recorded on these claims, each once. `claims` must contain all claims that have one. Returns
    /// whether any exist now or were recorded before.
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

    /// Registers a successful launch for a claim: launches with its node class can succeed. If the claim was created after the
    /// offering was held back, its row of failures may end.
    ///
    /// An earlier claim was planned before the failure. Its success says nothing of the next launch: if a quota has room for one of
    /// two nodes, each round has a success and a failure.
    pub fn succeeded(&mut self, claim: &Claim, offering: &OfferingId, now: Timestamp) {
        self.launch_problems.remove(&claim.node_class);
        let key = (claim.node_class.clone(), offering.clone());
        // The API server records the time of creation in whole seconds.
        let is_later = |setback: &&mut Setback| setback.until.as_second() <= claim.created.as_second();
        if let Some(setback) = self.offerings.get_mut(&key).filter(is_later) {
            setback.succeeded = Some(now);
        }
    }

    /// Registers that launches with a node class cannot succeed until a person changes something.
    pub fn launch_invalid(&mut self, node_class: &NodeClassRef, why: &str) {
        self.launch_problems.insert(node_class.clone(), why.to_owned());
    }

    /// Returns the reasons why launches cannot succeed, by node class.
    pub fn launch_problems(&self) -> &BTreeMap<NodeClassRef, String> {
        &self.launch_problems
    }

    /// Registers that pods of this namespace may not be given a toleration. Returns whether this was not known before.
    pub fn toleration_refused(&mut self, namespace: &str, now: Timestamp) -> bool {
        let until = now.checked_add(REFUSED_FOR).unwrap_or(Timestamp::MAX);
        self.refusals.insert(namespace.to_owned(), until).is_none_or(|until| until <= now)
    }

    /// Returns the namespaces whose pods may not be given a toleration at `now`.
    pub fn unpatchable(&self, now: Timestamp) -> BTreeSet<String> {
        let believed = self.refusals.iter().filter(|(_, until)| **until > now);
        believed.map(|(namespace, _)| namespace.clone()).collect()
    }

    /// Returns the offerings that are held back at `now`, and the time until which they are, for
    /// [`crate::model::Snapshot::held_back`]. They include prepaid offerings that were reclaimed: such offerings cost nothing, so
    /// a raised price would not make another offering preferable.
    pub fn held_back(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Timestamp> {
        let failed = self.offerings.iter().map(|(key, setback)| (key, setback.until));
        let prepaid = self.reclaims.iter().filter(|((_, id), _)| is_prepaid(id));
        let prepaid = prepaid.map(|(key, reclaims)| (key, reclaims.until));
        let mut held = BTreeMap::new();
        for (key, until) in failed.chain(prepaid).filter(|(_, until)| *until > now) {
            let latest = held.entry(key.clone()).or_insert(until);
            *latest = (*latest).max(until);
        }
        held
    }

    /// Returns the offerings that the cloud has reclaimed recently and that may be bought at a higher counted price, for
    /// [`crate::model::Snapshot::reclaims`].
    pub fn reclaims(&self, now: Timestamp) -> BTreeMap<(NodeClassRef, OfferingId), Reclaims> {
        let counts = |((_, id), reclaims): &(&(NodeClassRef, OfferingId), &ReclaimHistory)| {
            !is_prepaid(id) && reclaims.until > now
        };
        let recent = |reclaims: &ReclaimHistory| Reclaims {
            until: reclaims.until,
            consecutive: reclaims.consecutive.max(1),
        };
        self.reclaims.iter().filter(counts).map(|(key, reclaims)| (key.clone(), recent(reclaims))).collect()
    }

    /// Returns the time at which the next setback ends; `None` if there is none.
    pub fn next_release(&self, now: Timestamp) -> Option<Timestamp> {
        let failed = self.offerings.values().map(|setback| setback.until);
        let all = failed.chain(self.reclaims.values().map(|reclaims| reclaims.until));
        all.filter(|until| *until > now).min()
    }
}

fn is_prepaid(id: &OfferingId) -> bool {
    id.capacity_type == CapacityType::Reserved
}
