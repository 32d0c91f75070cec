//! Claims in the index, including those that we created and no watch has shown yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::index::{Change, ClusterIndex};
use crate::model::{Cause, Claim, ClaimName, PoolLimits};

/// The time for which a claim that we created stays in the index although a list does not contain it.
const EXPECTATION: SignedDuration = SignedDuration::from_secs(60);

impl ClusterIndex {
    /// Adds or replaces a claim that a watch showed, or that the API server returned in response to a write.
    pub fn apply_claim(&mut self, claim: Claim) -> Change {
        self.expected.remove(&claim.name);
        self.put_claim(claim)
    }

    /// Adds a claim that we created, as the API server returned it. It stays in the index even if an older list does not contain
    /// it, until a watch shows it or a minute has passed.
    pub fn expect_claim(&mut self, claim: Claim, now: Timestamp) -> Change {
        let until = now.checked_add(EXPECTATION).unwrap_or(Timestamp::MAX);
        if self.state.claims.get(&claim.name).is_some_and(|known| known.uid == claim.uid) {
            return Change::None;
        }
        self.expected.insert(claim.name.clone(), (claim.uid.clone(), until));
        self.put_claim(claim)
    }

    /// Removes a claim.
    pub fn delete_claim(&mut self, name: &ClaimName) -> Change {
        self.expected.remove(name);
        let gone = self.state.claims.remove(name).map_or(Change::None, |_| Change::Room);
        self.forget_ended();
        gone
    }

    /// Replaces all claims with those of a list, which may be older than our own writes.
    pub fn reset_claims(&mut self, claims: impl IntoIterator<Item = Claim>, now: Timestamp) -> Change {
        let mut claims: BTreeMap<ClaimName, Claim> =
            claims.into_iter().map(|claim| (claim.name.clone(), claim)).collect();
        self.expected.retain(|name, (_, until)| *until > now && !claims.contains_key(name));
        for name in self.expected.keys() {
            if let Some(claim) = self.state.claims.get(name) {
                claims.insert(name.clone(), (**claim).clone());
            }
        }
        let before = self.state.claims.len();
        self.state.claims.retain(|key, _| claims.contains_key(key));
        self.forget_ended();
        let gone = if self.state.claims.len() < before { Change::Room } else { Change::None };
        claims.into_values().map(|claim| self.put_claim(claim)).fold(gone, Ord::max)
    }

    fn put_claim(&mut self, claim: Claim) -> Change {
        let before = self.state.claims.get(&claim.name);
        let change = match before {
            Some(old) if **old == claim => return Change::None,
            // From this change on, the successors of its pods are demand.
            Some(old) if is_taken(&claim) && !is_taken(old) => {
                self.note_interrupted(&claim);
                Change::Interrupted
            }
            Some(old) if is_taken(old) && !is_taken(&claim) => {
                self.forget_interrupted(&claim.name);
                Change::Room
            }
            // It no longer counts as the most that it might have become, so a limit may have room again.
            Some(old)
                if old.launched.is_none() && claim.launched.is_some() && self.counted_as_more(&claim) =>
            {
                Change::Room
            }
            Some(old) if old.uid == claim.uid && old.deleting_since == claim.deleting_since => Change::Life,
            None if claim.deleting_since.is_none() => Change::Life,
            _ => Change::Room,
        };
        let name = claim.name.clone();
        self.learn_gap(&claim);
        self.state.claims.insert(name.clone(), Arc::new(claim));
        change.max(self.measure_claim(&name))
    }

    /// Returns whether a limit of its pool or of a namespace may have counted more of a claim before its launch. The last plan tells
    /// whether one that the pool does not state did: the default limit on money, or a limit on all pools together.
    fn counted_as_more(&self, claim: &Claim) -> bool {
        let limits = self.state.pools.get(&claim.pool).map(|pool| &pool.limits);
        let is_limited = limits.is_some_and(|limits| *limits != PoolLimits::default());
        claim.offerings.len() > 1 && (is_limited || self.limit_reached || !self.held_in.is_empty())
    }
}

/// Returns whether the claim's instance is being reclaimed.
fn is_taken(claim: &Claim) -> bool {
    claim.leaving() == Some(Cause::Interrupted)
}
