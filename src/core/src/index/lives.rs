//! Learns how long pods run, from the pods that end.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::index::ClusterIndex;
use crate::model::{LifeTable, Lives, Pod, PodPhase, PodRole};

/// The time after which expectations are worked out again.
const REFRESH: SignedDuration = SignedDuration::from_mins(1);

impl ClusterIndex {
    /// Sets what is known about the durations of pods.
    pub fn set_lives(&mut self, lives: Lives) {
        self.state.lives = Arc::new(lives);
        self.lives_worked_out = None;
    }

    /// Adds what was learned before. It replaces what is known about the same kinds.
    pub fn remember_lives(&mut self, kinds: BTreeMap<String, LifeTable>) {
        Arc::make_mut(&mut self.state.lives).remember(kinds);
        self.lives_worked_out = None;
    }

    /// Learns from a change of a pod, before it is applied: a pod that has finished, or that is gone although it ran.
    pub(crate) fn learn_duration(&mut self, before: Option<&Pod>, after: Option<&Pod>) {
        let Some(before) = before.filter(|pod| runs(pod)) else { return };
        if self.state.lives.is_blank() || before.role != PodRole::Workload || before.duration.is_service {
            return;
        }
        let same = after.filter(|pod| pod.uid == before.uid);
        let (last, ended) = match same {
            Some(pod) if runs(pod) => return,
            Some(pod) if pod.phase == PodPhase::Finished => (pod, true),
            // A pod that is deleted while it runs would have run longer.
            _ => (before, false),
        };
        let Some(at) = last.duration.ended.or(last.deleting_since) else { return };
        let lives = Arc::make_mut(&mut self.state.lives);
        lives.observe(&before.duration.kinds, last.duration.age(at), ended, at);
    }

    /// Works expectations out again if they are old.
    pub fn refresh_lives(&mut self, now: Timestamp) {
        let fresh = |at: Timestamp| now.duration_since(at).abs() < REFRESH;
        if self.state.lives.is_blank() || self.lives_worked_out.is_some_and(fresh) {
            return;
        }
        let running = self.state.pods.bound().filter(|pod| runs(pod) && pod.role == PodRole::Workload);
        Arc::make_mut(&mut self.state.lives).refresh(running, now);
        self.lives_worked_out = Some(now);
    }
}

/// Returns whether the pod runs.
fn runs(pod: &Pod) -> bool {
    matches!(pod.phase, PodPhase::Bound { .. }) && pod.duration.started.is_some()
}
