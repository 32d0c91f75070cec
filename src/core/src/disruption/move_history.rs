//! The history of consolidation. It prevents that pods move again before the last move has paid off, and it makes nodes that were
//! tried without success come last.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use poolwright_terms::Reason;

use crate::disruption::move_record::{GaveWay, MoveRecord, Moved};
use crate::disruption::proposal::{Proposal, SearchResult};
use crate::lifecycle::protection::Facts;
use crate::model::{Claim, ClaimName, Pod, PodKey, Snapshot, Uid, Workload};
use crate::rules::format::count;

/// The time within which pods do not move again, even if the move pays off sooner.
const LEAST: SignedDuration = SignedDuration::from_hours(1);

/// The time for which consolidation leaves the pods of a controller alone after one of them made room. Otherwise it would move them
/// back to the room that the next pod needs.
const AFTER_ROOM: SignedDuration = SignedDuration::from_hours(2);

/// The time within which an evicted pod should be seen to end. After that, its eviction counts as refused.
const ANSWER: SignedDuration = SignedDuration::from_mins(2);

/// The time within which the pods that give way to a waiting pod should be evicted, after its first nomination. The scheduler may
/// clear each nomination before it is seen.
const NOMINATED: SignedDuration = SignedDuration::from_mins(2);

/// The time for which the pods of a controller do not give way after the API server refused to evict one of them, and no pods give way
/// to a waiting pod after an attempt in vain.
const AFTER_REFUSAL: SignedDuration = SignedDuration::from_mins(15);

/// The times at which consolidation moved pods of each controller, and the claims that it tried without success. The next leader
/// gets a part of it as a [`MoveRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MoveHistory {
    times: Moved,
    /// Claims that were considered together with others in this round, without success.
    together: BTreeSet<ClaimName>,
    /// Claims that were tried alone in this round, without success.
    alone: BTreeSet<ClaimName>,
    /// Claims for whose pods others were asked to make room in this round, without success.
    with_room: BTreeSet<ClaimName>,
    /// Pods that were evicted to make room and may still exist.
    gave_way: BTreeMap<PodKey, GaveWay>,
    /// The claims of nodes that are emptied, whose pods get the room of pods that give way.
    room_for: BTreeSet<ClaimName>,
    /// The controllers of the pods that get room, or these pods, with the time when room for them was last found.
    takers: BTreeMap<Uid, Timestamp>,
    /// The controllers of pods that gave way, with the time of the last eviction.
    made_room: BTreeMap<Uid, Timestamp>,
    /// The attempts to make room for waiting pods.
    attempts: BTreeMap<Uid, Attempt>,
}

/// An attempt to make room for a waiting pod.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    /// The time of the first nomination.
    since: Timestamp,
    /// The pods that were evicted for it.
    evicted: BTreeSet<(PodKey, Uid)>,
}

impl MoveHistory {
    /// Records the claims that a search tried without success, so that the next search tries others. A search covers only a few
    /// hundred nodes. After all claims have been tried, the next round begins.
    pub fn record_search(&mut self, outlook: &SearchResult) {
        if outlook.proposal.is_some() {
            return;
        }
        self.together.extend(outlook.tried_together.iter().cloned());
        self.alone.extend(outlook.tried_alone.iter().cloned());
        if !outlook.has_untried {
            self.together.clear();
        }
        if outlook.tried_alone.is_empty() {
            self.alone.clear();
        }
        self.with_room.extend(outlook.tried_with_room.iter().cloned());
        if outlook.tried_with_room.is_empty() {
            self.with_room.clear();
        }
    }

    /// Returns whether a claim was considered together with others in this round.
    pub(crate) fn tried_together(&self, claim: &ClaimName) -> bool {
        self.together.contains(claim)
    }

    /// Returns whether a claim was tried alone in this round.
    pub(crate) fn tried_alone(&self, claim: &ClaimName) -> bool {
        self.alone.contains(claim)
    }

    /// Returns whether this round has looked for room that other pods would make for a claim's pods.
    pub(crate) fn tried_with_room(&self, claim: &ClaimName) -> bool {
        self.with_room.contains(claim)
    }

    /// Records a proposal that is carried out, and forgets moves that have paid off in every pool.
    pub fn record(&mut self, snapshot: &Snapshot, proposal: &Proposal, now: Timestamp) {
        self.forget(snapshot, now);
        let facts = Facts::new(snapshot, now);
        for leave in &proposal.nodes_to_empty {
            let Some(claim) = snapshot.claims.get(&leave.claim) else { continue };
            if proposal.makes_room {
                self.room_for.insert(claim.name.clone());
                self.takers.extend(facts.work(claim).map(|pod| (Self::identity(pod), now)));
            }
            if leave.condition.reason == Reason::Underutilized {
                for owner in facts.work(claim).filter_map(|pod| pod.owner.clone()) {
                    self.add_move(owner, now);
                }
            }
        }
    }

    /// Records evictions that make room.
    pub fn record_evictions(&mut self, snapshot: &Snapshot, evicted: &[(PodKey, Uid)], now: Timestamp) {
        self.forget(snapshot, now);
        for (key, uid) in evicted {
            if self.gave_way.get(key).is_some_and(|before| before.uid == *uid) {
                continue;
            }
            let owner = snapshot.pods.get(key).and_then(|pod| pod.owner.clone());
            if let Some(owner) = &owner {
                self.made_room.insert(owner.clone(), now);
                self.add_move(owner.clone(), now);
            }
            self.gave_way.insert(key.clone(), GaveWay { uid: uid.clone(), owner, since: now });
        }
    }

    /// Records waiting pods whose room can be made now, each with the pods that are evicted for it.
    pub fn record_nominations(&mut self, nominated: BTreeMap<Uid, Vec<(PodKey, Uid)>>, now: Timestamp) {
        for (pod, evicted) in nominated {
            let new = || Attempt { since: now, evicted: BTreeSet::new() };
            self.attempts.entry(pod).or_insert_with(new).evicted.extend(evicted);
        }
    }

    fn add_move(&mut self, owner: Uid, now: Timestamp) {
        let moved = self.times.entry(owner).or_default().entry(now).or_default();
        *moved = moved.saturating_add(1);
    }

    /// Returns what the next leader must know.
    pub fn record_to_keep(&self) -> MoveRecord {
        MoveRecord::new(&self.times, &self.made_room, &self.gave_way)
    }

    /// Adds what a leader recorded. A move that this history has already does not count twice.
    pub fn add(&mut self, record: MoveRecord) {
        let MoveRecord { moved, made_room, gave_way } = record;
        for (owner, times) in moved {
            let known = self.times.entry(owner).or_default();
            for (at, pods) in times {
                let known = known.entry(at).or_default();
                *known = pods.max(*known);
            }
        }
        for (owner, at) in made_room {
            let known = self.made_room.entry(owner).or_insert(at);
            *known = at.max(*known);
        }
        for (key, given) in gave_way {
            self.gave_way.entry(key).or_insert(given);
        }
    }

    /// Returns whether a pod was evicted to make room a short time ago, so that its end should be seen soon.
    pub(crate) fn gave_way(&self, pod: &Pod, now: Timestamp) -> bool {
        let given = self.gave_way.get(&pod.key).filter(|given| given.uid == pod.uid);
        given.is_some_and(|given| is_within(given.since, now, ANSWER))
    }

    /// Returns whether pods give way to the pods of this node, which is emptied.
    pub(crate) fn makes_room_for(&self, claim: &ClaimName) -> bool {
        self.room_for.contains(claim)
    }

    /// Returns the controller of a pod, or the pod if it has none.
    pub(crate) fn identity(pod: &Pod) -> Uid {
        pod.owner.clone().unwrap_or_else(|| pod.uid.clone())
    }

    /// Records that room was found for the pods of these controllers.
    pub fn record_takers(&mut self, takers: Vec<Uid>, now: Timestamp) {
        self.takers.extend(takers.into_iter().map(|taker| (taker, now)));
    }

    /// Returns whether room for such a pod was found a short time ago.
    pub(crate) fn makes_room_for_pod(&self, pod: &Pod, now: Timestamp) -> bool {
        self.takers.get(&Self::identity(pod)).is_some_and(|at| is_within(*at, now, AFTER_REFUSAL))
    }

    /// Returns whether further pods may give way to a waiting pod: not a short time after others did so in vain, because another pod
    /// took their room, or after it was nominated for two minutes without a lasting nomination.
    pub(crate) fn may_get_room(&self, snapshot: &Snapshot, pod: &Pod, now: Timestamp) -> bool {
        let attempt = self.attempts.get(&pod.uid);
        let attempt = attempt.filter(|attempt| is_within(attempt.since, now, AFTER_REFUSAL));
        let exists =
            |(key, uid): &(PodKey, Uid)| snapshot.pods.get(key).is_some_and(|evicted| evicted.uid == *uid);
        attempt.is_none_or(|attempt| {
            is_within(attempt.since, now, NOMINATED) && attempt.evicted.iter().all(exists)
        })
    }

    /// Returns whether an eviction of one of a controller's pods was refused a short time ago.
    pub(crate) fn is_refused(&self, snapshot: &Snapshot, owner: &Uid, now: Timestamp) -> bool {
        self.gave_way.iter().any(|(key, given)| {
            given.owner.as_ref() == Some(owner)
                && !is_within(given.since, now, ANSWER)
                && is_within(given.since, now, AFTER_REFUSAL)
                && snapshot
                    .pods
                    .get(key)
                    .is_some_and(|pod| pod.uid == given.uid && pod.deleting_since.is_none())
        })
    }

    fn forget(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let longest = snapshot.pools.values().map(|pool| pool.disruption.payback).max().unwrap_or(LEAST);
        let begin = now.checked_sub(longest.max(LEAST)).unwrap_or(Timestamp::MIN);
        self.times.retain(|_, times| {
            // A clock that was set back leaves times in the future.
            times.retain(|at, _| *at > begin && *at <= now);
            !times.is_empty()
        });
        self.room_for.retain(|name| snapshot.claims.get(name).is_some_and(|claim| claim.leaving().is_some()));
        self.takers.retain(|_, at| is_within(*at, now, AFTER_REFUSAL));
        self.made_room.retain(|_, at| is_within(*at, now, AFTER_ROOM));
        self.attempts.retain(|_, attempt| is_within(attempt.since, now, AFTER_REFUSAL));
        self.gave_way.retain(|key, given| {
            let exists = snapshot.pods.get(key).is_some_and(|pod| pod.uid == given.uid);
            exists && is_within(given.since, now, AFTER_REFUSAL)
        });
    }

    /// Returns how many more moves a controller may have on a claim's node now. Within the pool's payback time, no controller may
    /// have more moves than pods.
    pub(crate) fn moves_left(&self, facts: &Facts<'_>, claim: &Claim, maker: &Workload) -> u64 {
        let payback = payback_of(facts, claim);
        let begin = facts.now.checked_sub(payback).unwrap_or(Timestamp::MIN);
        let times = self.times.get(&maker.uid).into_iter().flatten();
        let recent = times.filter(|(at, _)| **at > begin && **at <= facts.now);
        maker.total.saturating_sub(recent.map(|(_, pods)| u64::from(*pods)).sum())
    }

    /// Returns why these nodes may not be consolidated, because their pods moved not long ago; `None` if they may.
    pub(crate) fn refusal(&self, facts: &Facts<'_>, claims: &[&Claim]) -> Option<String> {
        let mut left: BTreeMap<&Uid, u64> = BTreeMap::new();
        claims.iter().find_map(|claim| {
            facts.work(claim).filter_map(|pod| facts.maker(pod)).find_map(|maker| {
                let left = left.entry(&maker.uid).or_insert_with(|| self.moves_left(facts, claim, maker));
                if *left == 0 {
                    return Some(format!(
                        "{} {} has {} and no move left: each may move once within {:#} (disruption.paybackWithin)",
                        maker.kind,
                        maker.key,
                        count(usize::try_from(maker.total).unwrap_or(usize::MAX), "pod"),
                        payback_of(facts, claim)
                    ));
                }
                *left -= 1;
                let made_room = self.made_room.get(&maker.uid)?;
                is_within(*made_room, facts.now, AFTER_ROOM).then(|| {
                    format!(
                        "pods of {} {} gave way to other pods less than {AFTER_ROOM:#} ago",
                        maker.kind, maker.key
                    )
                })
            })
        })
    }
}

fn payback_of(facts: &Facts<'_>, claim: &Claim) -> SignedDuration {
    facts.pool(claim).map_or(LEAST, |pool| pool.disruption.payback.max(LEAST))
}

/// Returns whether a time is less than `within` away. A clock that was set back leaves times in the future.
fn is_within(at: Timestamp, now: Timestamp, within: SignedDuration) -> bool {
    now.duration_since(at).abs() < within
}
