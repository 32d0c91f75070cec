//! The scheduler at work: every pod that waits is tried, and bound or told why not.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::http::Method;
use poolwright_core::{Pod, PodPhase, rules};
use serde_json::json;

use super::{Cluster, Due, condition, pod_path};

/// From one look to the next while pods wait that could not be placed.
const AGAIN: (u64, u64) = (5_000, 30_000);

impl Cluster {
    pub(super) fn schedule(&mut self) {
        self.scheduling_done();
        let mut waiting: Vec<Arc<Pod>> =
            self.index.view().pods.unbound().map(|pod| Arc::new(pod.clone())).collect();
        waiting.retain(|pod| {
            matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. })
                && pod.deleting_since.is_none()
        });
        waiting.sort_by_key(|pod| (-pod.priority, pod.created, pod.key.clone()));
        let mut left = false;
        for pod in waiting {
            match self.place_of(&pod) {
                Ok(node) => self.bind(&pod, &node),
                Err(message) => {
                    left = true;
                    self.refuse(&pod, &message);
                }
            }
            self.take_in();
        }
        if left && !self.is_scheduling {
            self.is_scheduling = true;
            self.after(AGAIN.0, AGAIN.1, Due::Schedule);
        }
    }

    /// One of the nodes that the pod may run on.
    fn place_of(&mut self, pod: &Pod) -> Result<String, String> {
        let all = self.index.view();
        let mut fitting = Vec::new();
        let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
        for node in all.nodes.values() {
            let mut room = node.allocatable.clone();
            for other in all.pods.on_node(&node.name).into_iter().flat_map(|on_node| &on_node.pods) {
                room.saturating_sub(&other.spec.requests);
            }
            let mut spec = pod.spec.clone();
            spec.tolerations.extend(pod.reserved_for.iter().map(|claim| poolwright_core::Toleration {
                key: Some(poolwright_core::RESERVED_TAINT.to_owned()),
                matches: poolwright_core::TolerationMatch::Equal(claim.0.clone()),
                effect: None,
            }));
            let admitted = rules::admits(&spec, &node.labels, &node.taints)
                .and_then(|()| rules::check_resources(&pod.spec.requests, &room));
            match admitted {
                Ok(()) => fitting.push(node.name.clone()),
                Err(why) => *reasons.entry(format!("node(s) {why}")).or_default() += 1,
            }
        }
        let nodes = all.nodes.len();
        if let Some(node) = pod.nominated_node.as_ref().filter(|node| fitting.contains(node)) {
            return Ok(node.clone());
        }
        self.dice.pick(&fitting).cloned().ok_or_else(|| {
            let reasons: Vec<String> = reasons.iter().map(|(why, count)| format!("{count} {why}")).collect();
            format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
        })
    }

    fn bind(&mut self, pod: &Pod, node: &str) {
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.key.name, "uid": pod.uid.0}, "target": {"kind": "Node", "name": node}});
        if self.ask(&Method::POST, &format!("{}/binding", pod_path(&pod.key)), &binding).is_some() {
            self.record.say(format_args!("scheduler {} -> {node}", pod.key));
        }
    }

    fn refuse(&mut self, pod: &Pod, message: &str) {
        if matches!(&pod.phase, PodPhase::Unschedulable { message: told, .. } if told == message) {
            return;
        }
        let condition = condition("PodScheduled", "False", "Unschedulable", message, self.time.now());
        let status = json!({"status": {"conditions": [condition], "nominatedNodeName": null}});
        self.ask(&Method::PATCH, &format!("{}/status", pod_path(&pod.key)), &status);
    }
}
