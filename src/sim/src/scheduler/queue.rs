//! The scheduling queue.

use std::cmp::{Ordering, Reverse};

use jiff::Timestamp;
use poolwright_core::{Pod, PodKey, PodPhase};

/// Returns whether the pod waits for the scheduler of this name: it names that scheduler, has no node, has not ended, has no
/// scheduling gates and is not being deleted.
pub fn waits_for(scheduler: &str, pod: &Pod) -> bool {
    pod.scheduler == scheduler
        && pod.deleting_since.is_none()
        && matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. })
}

/// A pod in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queued {
    /// The pod.
    pub pod: PodKey,
    /// Its priority.
    pub priority: i32,
    /// Since when it is in the queue: its creation, or its last return after an attempt.
    pub since: Timestamp,
}

impl Queued {
    /// Makes the entry of a pod that was not tried yet.
    pub fn new(pod: &Pod) -> Self {
        Self { pod: pod.key.clone(), priority: pod.priority, since: pod.created }
    }
}

/// The order of `PrioritySort`: higher priority first, then longer waiting. Ties, which the kube-scheduler leaves open, by name.
impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |one: &Self| (Reverse(one.priority), one.since);
        parts(self).cmp(&parts(other)).then_with(|| self.pod.cmp(&other.pod))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::super::kit::pod;
    use super::*;

    #[test]
    fn the_most_important_pod_comes_first_and_of_equal_ones_the_one_that_waits_longest() {
        let queued = |name: &str, priority, seconds| Queued {
            pod: PodKey::new("default", name),
            priority,
            since: Timestamp::from_second(seconds).expect("in range"),
        };
        let mut queue =
            [queued("late", 0, 9), queued("b", 0, 3), queued("a", 0, 3), queued("important", 7, 20)];
        queue.sort();
        assert_eq!(queue.map(|one| one.pod.name().into_owned()), ["important", "a", "b", "late"]);
    }

    #[test]
    fn pods_of_others_and_pods_that_are_held_placed_ended_or_leaving_do_not_wait() {
        let waiting = pod("one").build();
        assert!(waits_for("default-scheduler", &waiting));
        assert!(!waits_for("another", &waiting));
        for phase in [PodPhase::Gated, PodPhase::Finished, PodPhase::Bound { node: "n".into() }] {
            assert!(!waits_for("default-scheduler", &Pod { phase, ..waiting.clone() }));
        }
        let leaving = Pod { deleting_since: Some(Timestamp::UNIX_EPOCH), ..waiting };
        assert!(!waits_for("default-scheduler", &leaving));
    }
}
