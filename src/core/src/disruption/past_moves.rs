//! Nobody is moved for money again before the first move has paid; and what was looked at in vain is looked at last.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::disruption::proposal::{Proposal, SearchResult};
use crate::lifecycle::protection::Facts;
use crate::model::{Cause, Claim, ClaimName, Snapshot, Uid};

/// However soon a move pays, for so long its pods stay where they came.
const LEAST: SignedDuration = SignedDuration::from_hours(1);

/// When pods of which controllers were moved for money. Kept by whoever carries proposals out; what was forgotten (a restart) may
/// be moved once more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    times: BTreeMap<Uid, Vec<Timestamp>>,
    /// Claims that were looked at together with others, in vain, in the round that is under way.
    together: BTreeSet<ClaimName>,
    /// Claims that were tried by themselves, in vain.
    alone: BTreeSet<ClaimName>,
}

impl Moves {
    /// Remembers what was looked at in vain, so that the next look is at others: of thousands of nodes one look sees a few hundred.
    /// When all were seen the next round begins.
    pub fn looked(&mut self, outlook: &SearchResult) {
        if outlook.proposal.is_some() {
            return;
        }
        self.together.extend(outlook.together.iter().cloned());
        self.alone.extend(outlook.alone.iter().cloned());
        if !outlook.more {
            self.together.clear();
        }
        if outlook.alone.is_empty() {
            self.alone.clear();
        }
    }

    /// Whether a claim was looked at together with others in this round.
    pub(crate) fn saw_together(&self, claim: &ClaimName) -> bool {
        self.together.contains(claim)
    }

    /// Whether a claim was tried by itself in this round.
    pub(crate) fn saw_alone(&self, claim: &ClaimName) -> bool {
        self.alone.contains(claim)
    }

    /// Remembers a proposal that is carried out, and forgets what no pool of the snapshot asks about any more.
    pub fn record(&mut self, snapshot: &Snapshot, proposal: &Proposal, now: Timestamp) {
        let longest = snapshot.pools.values().map(|pool| pool.disruption.payback).max().unwrap_or(LEAST);
        let begin = now.checked_sub(longest.max(LEAST)).unwrap_or(Timestamp::MIN);
        self.times.retain(|_, times| {
            times.retain(|at| *at > begin);
            !times.is_empty()
        });
        let facts = Facts::new(snapshot, now);
        for leave in &proposal.leave {
            let Some(claim) = snapshot.claims.get(&leave.claim) else { continue };
            if Cause::named(leave.condition.reason.as_str()) == Some(Cause::Underutilized) {
                for owner in facts.work(claim).filter_map(|pod| pod.owner.clone()) {
                    self.times.entry(owner).or_default().push(now);
                }
            }
        }
    }

    /// Whether these nodes may be emptied for money without moving pods of a controller more often, within the time in which a move
    /// of their pool is to pay, than it has pods.
    pub(crate) fn allow(&self, facts: &Facts<'_>, claims: &[&Claim]) -> bool {
        let mut counts: BTreeMap<&Uid, u64> = BTreeMap::new();
        claims.iter().all(|claim| {
            let payback = facts.pool(claim).map_or(LEAST, |pool| pool.disruption.payback.max(LEAST));
            let begin = facts.now.checked_sub(payback).unwrap_or(Timestamp::MIN);
            facts.work(claim).filter_map(|pod| facts.maker(pod)).all(|maker| {
                let lately = || {
                    let times = self.times.get(&maker.uid).into_iter().flatten();
                    times.filter(|at| **at > begin).count() as u64
                };
                let count = counts.entry(&maker.uid).or_insert_with(lately);
                *count += 1;
                *count <= maker.total
            })
        })
    }
}
