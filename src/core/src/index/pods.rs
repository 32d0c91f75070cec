//! Pods in the index. Decides which of their changes are demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Change, ClusterIndex};
use crate::model::{ClaimName, ObjectKey, Pod, PodKey, PodPhase, PodRole};

impl ClusterIndex {
    /// Adds or replaces a pod.
    pub fn apply_pod(&mut self, pod: Pod) -> Change {
        let change = self.pod_change(&pod);
        if change != Change::None {
            self.state.pods.insert(pod.key.clone(), Arc::new(pod));
        }
        change
    }

    /// Removes a pod.
    pub fn delete_pod(&mut self, key: &ObjectKey) -> Change {
        self.state.pods.remove(&PodKey::Existing(key.clone())).map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all pods.
    pub fn reset_pods(&mut self, pods: impl IntoIterator<Item = Pod>) -> Change {
        let pods: BTreeMap<PodKey, Pod> = pods.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        let before = self.state.pods.len();
        self.state.pods.retain(|key, _| pods.contains_key(key));
        let gone = if self.state.pods.len() < before { Change::Life } else { Change::None };
        pods.into_values().map(|pod| self.apply_pod(pod)).fold(gone, Ord::max)
    }

    fn pod_change(&self, pod: &Pod) -> Change {
        let old = self.state.pods.get(&pod.key).map(Arc::as_ref).filter(|old| old.uid == pod.uid);
        if old == Some(pod) {
            return Change::None;
        }
        if wants_node(pod) {
            let as_before = old.is_some_and(|old| {
                wants_node(old)
                    && old.spec == pod.spec
                    && old.volumes == pod.volumes
                    && old.labels == pod.labels
                    && old.priority == pod.priority
                    // A cleared nomination has failed.
                    && (pod.nominated_node.is_some() || old.nominated_node.is_none())
            });
            return if as_before { Change::Life } else { self.demand_of(pod) };
        }
        if old.is_none() && self.lacks_group(pod) {
            // The scheduler holds the pod without a message, so a plan must report what is missing.
            return Change::Demand;
        }
        match (&pod.phase, old.map(|old| &old.phase)) {
            // The pod took capacity that may have been planned for another pod.
            (PodPhase::Bound { node }, before)
                if !matches!(before, Some(PodPhase::Bound { .. }))
                    && pod.role == PodRole::Workload
                    && !self.planned_for(pod, node) =>
            {
                Change::Room
            }
            _ => Change::Life,
        }
    }

    /// Returns whether the pod waits for a PodGroup that does not exist.
    fn lacks_group(&self, pod: &Pod) -> bool {
        pod.phase == PodPhase::Waiting
            && pod.group_key().is_some_and(|key| !self.state.pod_groups.contains_key(&key))
    }

    /// Returns whether the pod is on the node that it was planned for.
    fn planned_for(&self, pod: &Pod, node: &str) -> bool {
        let Some((uid, target)) = self.state.nominations.get(&pod.key) else { return false };
        let claim = self.state.claims.get(&ClaimName(target.clone()));
        *uid == pod.uid && claim.map_or(target == node, |claim| claim.node_name.as_deref() == Some(node))
    }
}

fn wants_node(pod: &Pod) -> bool {
    pod.role == PodRole::Workload
        && pod.deleting_since.is_none()
        && matches!(pod.phase, PodPhase::Unschedulable { .. })
}
