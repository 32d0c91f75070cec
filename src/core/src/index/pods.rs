//! Pods in the index. Decides which of their changes are demand.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::{Change, ClusterIndex, put};
use crate::model::{ClaimName, DaemonSet, ObjectKey, Pod, PodKey, PodPhase, PodRole};

impl ClusterIndex {
    /// Adds or replaces a pod.
    pub fn apply_pod(&mut self, pod: Pod) -> Change {
        let change = self.pod_change(&pod);
        if change == Change::None {
            return change;
        }
        let pod = Arc::new(pod);
        let before = self.state.pods.insert(pod.key.clone(), pod.clone());
        let freed = before.as_ref().map_or(Change::None, |before| {
            self.frees_limit(before, Some(pod.as_ref()).filter(|pod| pod.uid == before.uid))
        });
        let change = change.max(freed);
        let is_resized = before.as_ref().is_none_or(|before| {
            before.spec.requests != pod.spec.requests
                || before.deleting_since.is_some() != pod.deleting_since.is_some()
                || (before.role, &before.daemonset) != (pod.role, &pod.daemonset)
        });
        if !is_resized && pod.phase != PodPhase::Finished {
            return change;
        }
        // A pod whose DaemonSet is deleted without it may get another.
        let former = before.map_or(Change::None, |before| self.size_daemonsets(&before));
        change.max(former).max(self.size_daemonsets(&pod))
    }

    /// Gives the DaemonSets of a pod that has changed the sizes of their pods.
    fn size_daemonsets(&mut self, pod: &Pod) -> Change {
        if pod.role != PodRole::DaemonSet {
            return Change::None;
        }
        let in_namespace = self.templates.values().filter(|set| set.key.namespace == pod.key.namespace());
        let theirs: Vec<DaemonSet> = in_namespace
            .filter(|set| set.has_made(pod, &set.pod_prefix()))
            .map(|set| set.sized_as(&self.state.pods))
            .collect();
        let put_in = |set: DaemonSet| put(&mut self.state.daemonsets, set.key.clone(), set);
        theirs.into_iter().map(put_in).fold(Change::None, Ord::max)
    }

    /// Removes a pod.
    pub fn delete_pod(&mut self, key: &ObjectKey) -> Change {
        let Some(pod) = self.state.pods.remove(&PodKey::Existing(key.clone())) else { return Change::None };
        // The others of its gang may start without it.
        let frees_gang = pod.gang.is_some() && is_unbound(&pod);
        let change = if frees_gang { Change::Room } else { Change::Life };
        change.max(self.size_daemonsets(&pod)).max(self.frees_limit(&pod, None))
    }

    /// Replaces all pods.
    pub fn reset_pods(&mut self, pods: impl IntoIterator<Item = Pod>) -> Change {
        let pods: BTreeMap<PodKey, Pod> = pods.into_iter().map(|pod| (pod.key.clone(), pod)).collect();
        let missing = self.state.pods.keys().filter(|key| !pods.contains_key(key));
        let missing: Vec<ObjectKey> = missing.filter_map(|key| key.existing().cloned()).collect();
        let gone = missing.iter().map(|key| self.delete_pod(key)).fold(Change::None, Ord::max);
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
            && pod.gang.is_none()
            && pod.group_key().is_some_and(|key| !self.state.pod_groups.contains_key(&key))
    }

    /// Returns whether the pod is on the node that it was planned for.
    fn planned_for(&self, pod: &Pod, node: &str) -> bool {
        let Some((uid, target)) = self.state.nominations.get(&pod.key) else { return false };
        let claim = self.state.claims.get(&ClaimName(target.clone()));
        *uid == pod.uid && claim.map_or(target == node, |claim| claim.node_name.as_deref() == Some(node))
    }
}

fn is_unbound(pod: &Pod) -> bool {
    !matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished)
}

fn wants_node(pod: &Pod) -> bool {
    pod.role == PodRole::Workload
        && pod.deleting_since.is_none()
        && matches!(pod.phase, PodPhase::Unschedulable { .. })
}
