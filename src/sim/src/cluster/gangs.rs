//! PodGroups: their objects, and the scheduling of their pods.

use std::sync::Arc;

use axum::http::Method;
use poolwright_core::{ObjectKey, Pod, PodPhase};
use serde_json::{Value, json};

use super::{Cluster, read};
use crate::scheduler::{Outcome, Preemption, Queued, Scheduler};

const API_VERSION: &str = "scheduling.k8s.io/v1alpha2";

fn groups(namespace: &str) -> String {
    format!("/apis/{API_VERSION}/namespaces/{namespace}/podgroups")
}

impl Cluster {
    /// Creates the PodGroup of a Job, a gang of the same name.
    pub(super) fn make_group(&mut self, name: &str, namespace: &str, least: u32) {
        let group = json!({"apiVersion": API_VERSION, "kind": "PodGroup", "metadata": {"name": name},
            "spec": {"schedulingPolicy": {"gang": {"minCount": least}}}});
        let Some(group) = self.ask(&Method::POST, &groups(namespace), &group) else { return };
        let group = read(&json!({"object": group})).and_then(|read| poolwright_intake::pod_group(&read).ok());
        if let Some(group) = group {
            self.index.apply_pod_group(group);
        }
    }

    pub(super) fn drop_group(&mut self, name: &str, namespace: &str) {
        self.ask(&Method::DELETE, &format!("{}/{name}", groups(namespace)), &Value::Null);
        self.index.delete_pod_group(&ObjectKey::new(namespace, name));
    }

    /// Returns the gang of a pod and its `minCount`, if the pod belongs to one that the simulated scheduler supports.
    pub(super) fn gang_of(&self, pod: &Pod) -> Option<(ObjectKey, usize)> {
        let key = pod.group_key()?;
        let group = self.view().pod_groups.get(&key).filter(|group| group.unmodelled.is_empty())?;
        let least = usize::try_from(group.min_count?).unwrap_or(usize::MAX);
        Some((key, least))
    }

    /// Places the pods of a gang in the queue, all that fit or none. Returns whether one of them must be tried again.
    ///
    /// The scheduler does not try a gang with fewer than `least` pods, and says nothing about it.
    pub(super) fn schedule_gang(&mut self, (gang, least): &(ObjectKey, usize), queue: &[Queued]) -> bool {
        let all = &self.index.view().pods;
        let bound = all.of_group(gang).filter(|pod| matches!(pod.phase, PodPhase::Bound { .. })).count();
        if all.of_group(gang).count() < *least {
            return false;
        }
        let in_queue = queue.iter().filter_map(|queued| all.get(&queued.pod));
        let pods: Vec<Arc<Pod>> =
            in_queue.filter(|pod| pod.group_key().as_ref() == Some(gang)).cloned().collect();
        let mut pick = |count: usize| self.dice.below(count);
        let lacking = least.saturating_sub(bound);
        let outcomes = match Scheduler::default().schedule_gang(&self.nodes, &pods, lacking, &mut pick) {
            Ok(outcomes) => outcomes,
            Err(unmodelled) => {
                for pod in &pods {
                    self.refuse(pod, &unmodelled.to_string(), &Preemption::NotTried);
                }
                return false;
            }
        };
        let mut left = false;
        for (pod, outcome) in pods.iter().zip(outcomes) {
            match outcome {
                Outcome::Bind { node } => {
                    self.bind_claims(pod, &node);
                    if self.bind(pod, &node) {
                        self.nodes.assume(pod, &node);
                    }
                }
                Outcome::Unschedulable { message, preemption } => {
                    left = true;
                    self.refuse(pod, &message, &preemption);
                }
            }
        }
        left
    }
}
