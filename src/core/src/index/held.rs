//! Limits that hold pods back. When another pod of a namespace with such a limit gives up its place, the limit may have room again.

use crate::index::{Change, ClusterIndex};
use crate::model::plan::{Plan, UnplacedReason};
use crate::model::{Pod, PodPhase, PodRole};

/// Returns whether a pod may get a node when a limit has room again. Limits may keep it off what is not held back.
const fn may_wait_for_limit(reason: UnplacedReason) -> bool {
    matches!(reason, UnplacedReason::LimitReached | UnplacedReason::OfferingsHeldBack)
}

impl ClusterIndex {
    /// Sets the namespaces whose limits hold pods back, and whether other limits do, from a plan.
    pub fn set_held_by_limits(&mut self, plan: &Plan) {
        let held = plan.unplaced.iter().filter(|left| left.reason == UnplacedReason::NamespaceLimitReached);
        self.held_in = held.map(|left| left.pod.namespace().to_owned()).collect();
        // Limits on all pools together are no finding of a single pool.
        self.limit_reached = plan.pools.values().any(|found| found.limit_reached.is_some())
            || plan.unplaced.iter().any(|left| may_wait_for_limit(left.reason));
    }

    /// Returns the effect of a changed or deleted pod on pods that the limit of its namespace holds back.
    pub(crate) fn frees_limit(&self, before: &Pod, after: Option<&Pod>) -> Change {
        let is_smaller = |after: &Pod| !self.has_place(after) || after.spec.requests != before.spec.requests;
        let frees = before.role == PodRole::Workload
            && self.held_in.contains(before.key.namespace())
            && self.has_place(before)
            && after.is_none_or(is_smaller);
        if frees { Change::Room } else { Change::None }
    }

    /// Returns whether a pod is on a node, or has a place in the last plan.
    fn has_place(&self, pod: &Pod) -> bool {
        match pod.phase {
            PodPhase::Bound { .. } => true,
            PodPhase::Finished => false,
            PodPhase::Waiting | PodPhase::Gated | PodPhase::Unschedulable { .. } => {
                self.state.nominations.contains_key(&pod.key)
            }
        }
    }
}
