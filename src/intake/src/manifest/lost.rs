//! What follows for a plan if an object is left out, because it cannot be read.

use poolwright_terms::GROUP;

use super::objects::{Object, group};

impl Object {
    /// Returns what follows if the object is left out; empty if its name says it.
    pub(super) fn lost_with_it(&self) -> &'static str {
        match (group(&self.api_version), self.kind.as_str()) {
            (GROUP, "NodePool") => ", so nothing is bought in this pool",
            (GROUP, "NodeClaim") => ", so the plan may buy its node again",
            ("", "Node") => ", so the plan may buy nodes for pods that fit there",
            ("", "Pod") if self.value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty()) => {
                ", so a plan counts its room as free"
            }
            ("", "Pod") => "",
            ("apps", "DaemonSet") => ", so new nodes may be too small for its pods",
            ("", "Namespace") => ", so its labels and limits are unknown",
            ("", "ResourceQuota") => ", so the plan may have pods that it forbids",
            ("", "LimitRange") => ", so its defaults and limits may not count",
            ("node.k8s.io", "RuntimeClass") => ", so its overhead and its node selector may not count",
            ("scheduling.k8s.io", "PriorityClass") => ", so its priority does not count",
            ("scheduling.k8s.io" | "scheduling.volcano.sh" | "scheduling.x-k8s.io", "PodGroup") => {
                ", so its pods are not planned"
            }
            ("policy", "PodDisruptionBudget") => ", so it protects no pods",
            ("", "PersistentVolumeClaim") => {
                ", so pods with it may get nodes where its volume cannot be used"
            }
            ("", "PersistentVolume") => ", so pods with it are not planned",
            ("storage.k8s.io", "StorageClass") => ", so its rules for volumes do not count",
            ("storage.k8s.io", "CSINode") => ", so no limit of volumes counts for its node",
            ("", "Service") => ", so the scheduler's default spread of its pods may not count",
            _ if self.makes_pods() => ", so it adds no pods to the plan",
            _ => "",
        }
    }
}
