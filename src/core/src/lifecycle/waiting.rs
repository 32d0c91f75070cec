//! The time at which a pod began to wait, and whether a plan may have considered it yet.

use crate::model::{Pod, PodPhase};
use jiff::SignedDuration;

/// The waiting time within which a pod may not have been planned yet.
pub(crate) const UNPLANNED: SignedDuration = SignedDuration::from_secs(15);

pub(crate) fn waits_since(pod: &Pod) -> Option<jiff::Timestamp> {
    match &pod.phase {
        PodPhase::Unschedulable { since, .. } => Some(*since),
        PodPhase::Waiting => Some(pod.created),
        _ => None,
    }
}
