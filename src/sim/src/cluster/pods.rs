//! The kubelets: start, run and end containers.

use std::sync::Arc;

use axum::http::Method;
use poolwright_core::{PodKey, PodPhase};
use serde_json::{Value, json};

use super::{Cluster, Due, at_second, condition, model_of, pod_path};

/// Milliseconds from binding to running, as for image pulls.
pub(crate) const STARTS: (u64, u64) = (1_000, 30_000);
/// Milliseconds from the deletion of a pod to its end.
const ENDS: (u64, u64) = (200, 10_000);

impl Cluster {
    pub(super) fn on_pod(&mut self, event: &Value) {
        let Some(pod) = model_of(event) else { return };
        let (key, uid) = (pod.key.clone(), pod.uid.0.clone());
        if event["type"] == "DELETED" {
            if let Some(key) = key.existing() {
                self.index.delete_pod(key);
            }
            self.nodes.remove_pod(&key);
            self.pod_deleted(&key);
            self.daemon_deleted(&pod);
            self.drop_ephemeral_claims(&pod);
            if let PodPhase::Bound { node } = &pod.phase {
                self.detach_soon(node);
            }
            self.reckon(&pod, false);
            self.schedule_soon();
            self.mount_again();
            return;
        }
        self.index.apply_pod(pod.clone());
        self.nodes.set_pod(Arc::new(pod.clone()));
        self.reckon(&pod, true);
        match &pod.phase {
            PodPhase::Waiting | PodPhase::Unschedulable { .. } => self.schedule_soon(),
            PodPhase::Finished => {
                self.schedule_soon();
                self.mount_again();
            }
            PodPhase::Bound { node } => {
                let there = self.index.view().nodes.contains_key(node);
                if pod.deleting_since.is_some() {
                    if self.arrange(&uid, "end") {
                        self.after(ENDS.0, ENDS.1, Due::Ended { pod: key, uid: uid.clone() });
                    }
                } else if there && self.arrange(&uid, "start") {
                    self.after(STARTS.0, STARTS.1, Due::Start { pod: key, uid: uid.clone() });
                }
            }
            PodPhase::Gated => {}
        }
    }

    /// Returns whether the instance of a pod's node runs.
    fn has_machine(&self, key: &PodKey, uid: &str) -> bool {
        let Some(pod) = self.pod(key, uid) else { return false };
        let PodPhase::Bound { node } = &pod.phase else { return false };
        let id = self.index.view().nodes.get(node).and_then(|node| node.provider_id.as_deref());
        id.is_some_and(|id| self.cloud.is_running(id))
    }

    pub(super) fn start(&mut self, key: &PodKey, uid: &str) {
        if self.is_frozen(key, uid) {
            return self.after(STARTS.0, STARTS.1, Due::Start { pod: key.clone(), uid: uid.to_owned() });
        }
        if !self.has_machine(key, uid) || self.pod(key, uid).is_none_or(|pod| pod.deleting_since.is_some()) {
            return;
        }
        if !self.mount(key, uid) {
            return;
        }
        let now = self.time.now();
        let conditions =
            [condition("PodScheduled", "True", "", "", now), condition("Ready", "True", "", "", now)];
        let status =
            json!({"status": {"phase": "Running", "conditions": conditions, "startTime": at_second(now)}});
        if self.ask(&Method::PATCH, &format!("{}/status", pod_path(key)), &status).is_some() {
            self.record.say(format_args!("kubelet {key} runs"));
            self.pod_runs(key);
            if let Some(PodPhase::Bound { node }) = self.pod(key, uid).map(|pod| pod.phase.clone()) {
                self.attach(key, &node);
            }
            if let Some(length) = self.length_of(key) {
                let at = self.time.elapsed() + length;
                self.at(at, Due::Finish { pod: key.clone(), uid: uid.to_owned() });
            }
        }
    }

    pub(super) fn finish(&mut self, key: &PodKey, uid: &str) {
        if self.is_frozen(key, uid) {
            return self.after(ENDS.0, ENDS.1, Due::Finish { pod: key.clone(), uid: uid.to_owned() });
        }
        if !self.has_machine(key, uid) || self.pod(key, uid).is_none_or(|pod| pod.deleting_since.is_some()) {
            return;
        }
        let end = json!({"terminated": {"exitCode": 0, "finishedAt": at_second(self.time.now())}});
        let container = json!({"name": "work", "image": "work", "imageID": "work", "ready": false, "restartCount": 0,
            "state": end});
        let status = json!({"status": {"phase": "Succeeded", "containerStatuses": [container]}});
        if self.ask(&Method::PATCH, &format!("{}/status", pod_path(key)), &status).is_some() {
            self.record.say(format_args!("kubelet {key} has finished"));
            self.tally.finished += 1;
            if let Some(PodPhase::Bound { node }) = self.pod(key, uid).map(|pod| pod.phase.clone()) {
                self.detach_soon(&node);
            }
            self.pod_succeeded(key);
        }
    }

    /// Returns whether the kubelet of a pod's node does not report. It goes on with the pod later.
    fn is_frozen(&self, key: &PodKey, uid: &str) -> bool {
        let phase = self.pod(key, uid).map(|pod| pod.phase.clone());
        matches!(phase, Some(PodPhase::Bound { node }) if self.frozen.contains(&node))
    }

    pub(super) fn ended(&mut self, key: &PodKey, uid: &str) {
        if self.is_frozen(key, uid) {
            return self.after(ENDS.0, ENDS.1, Due::Ended { pod: key.clone(), uid: uid.to_owned() });
        }
        let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        if self.ask(&Method::DELETE, &pod_path(key), &now).is_some() {
            self.record.say(format_args!("kubelet {key} has ended"));
        }
    }
}
