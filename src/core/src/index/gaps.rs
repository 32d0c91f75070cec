//! Learns how long it takes until a node without work gets the next pod, from the claims of nodes.
//!
//! The claims record it: the condition `Empty` begins when a node has no work left, and ends when it gets a pod. If a node is
//! terminated, the next purchase of such a node shows when a pod came that it could have held.

use std::sync::Arc;

use jiff::Timestamp;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::index::ClusterIndex;
use crate::model::idle::LONGEST;
use crate::model::{Claim, Gaps};

/// The most terminated nodes that are remembered one by one.
const REMEMBERED: usize = 1_024;

impl ClusterIndex {
    /// Sets what is known about nodes without work.
    pub fn set_gaps(&mut self, gaps: Gaps) {
        self.state.gaps = Arc::new(gaps);
    }

    /// Learns from a claim that is about to be put into the index.
    pub(super) fn learn_gap(&mut self, claim: &Claim) {
        let Some(old) = self.state.claims.get(&claim.name) else {
            self.learn_purchase(claim);
            return;
        };
        if old.since(ConditionType::Initialized).is_none() {
            return;
        }
        let Some(since) = old.since(ConditionType::Empty) else { return };
        if let Some(ended) = got_pod(claim) {
            self.given_up.remove(&claim.name);
            self.observe_gap(&claim.kind_of_node(), since, ended, true);
        } else if is_given_up(claim) && !is_given_up(old) {
            let now = claim.since(ConditionType::Disrupting).unwrap_or(since);
            self.learn_absence(now);
            self.given_up.insert(claim.name.clone(), (claim.kind_of_node(), since));
            if self.given_up.len() > REMEMBERED {
                let oldest = self.given_up.iter().min_by_key(|(_, (_, since))| *since);
                let oldest = oldest.map(|(name, _)| name.clone());
                if let Some((kind, since)) = oldest.and_then(|name| self.given_up.remove(&name)) {
                    self.observe_gap(&kind, since, now, false);
                }
            }
        }
    }

    /// Counts the terminated nodes for which no pod came for long.
    fn learn_absence(&mut self, now: Timestamp) {
        let over = self.given_up.extract_if(.., |_, (_, since)| now.duration_since(*since) > LONGEST);
        for (kind, since) in over.map(|(_, node)| node).collect::<Vec<_>>() {
            self.observe_gap(&kind, since, since + LONGEST, false);
        }
    }

    /// Finds the terminated node that could have held the pods of a new claim.
    fn learn_purchase(&mut self, claim: &Claim) {
        self.learn_absence(claim.created);
        let wanted = claim.kind_of_node();
        let like =
            self.given_up.iter().filter(|(_, (kind, since))| *kind == wanted && *since <= claim.created);
        // The last one would have cost least to keep.
        let last = like.max_by_key(|(_, (_, since))| *since).map(|(name, _)| name.clone());
        if let Some((kind, since)) = last.and_then(|name| self.given_up.remove(&name)) {
            self.observe_gap(&kind, since, claim.created, true);
        }
    }

    fn observe_gap(&mut self, kind: &str, since: Timestamp, until: Timestamp, ended: bool) {
        let gap = until.duration_since(since);
        Arc::make_mut(&mut self.state.gaps).observe(kind, gap, ended, until);
    }
}

/// Returns when the claim's node got a pod after it had none; `None` if it is without work, or is kept for another reason.
fn got_pod(claim: &Claim) -> Option<Timestamp> {
    let condition = claim.conditions.get(&ConditionType::Empty)?;
    let is_pod = matches!(condition.reason, Some(Reason::HasPods | Reason::PodsExpected));
    (condition.status == ConditionStatus::False && is_pod).then_some(condition.since)
}

/// Returns whether the claim's node is terminated because it has no work.
fn is_given_up(claim: &Claim) -> bool {
    let condition = claim.conditions.get(&ConditionType::Disrupting);
    condition.is_some_and(|one| one.status == ConditionStatus::True && one.reason == Some(Reason::Empty))
}
