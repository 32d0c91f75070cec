//! Counts of pods that wait for a node.

use poolwright_core::{PodPhase, PodRole, Snapshot};
use serde::Serialize;

/// Workload pods without a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingPods {
    /// The scheduler found no node for them.
    pub unschedulable: usize,
    /// The scheduler has not tried them yet.
    pub waiting: usize,
    /// Scheduling gates hold them.
    pub gated: usize,
}

impl WaitingPods {
    /// Counts the pods of a snapshot.
    pub fn of(snapshot: &Snapshot) -> Self {
        let mut waiting = Self::default();
        for pod in snapshot.pods.unbound().filter(|pod| pod.role == PodRole::Workload) {
            match pod.phase {
                PodPhase::Unschedulable { .. } => waiting.unschedulable += 1,
                PodPhase::Waiting => waiting.waiting += 1,
                PodPhase::Gated => waiting.gated += 1,
                PodPhase::Bound { .. } | PodPhase::Finished => {}
            }
        }
        waiting
    }
}
