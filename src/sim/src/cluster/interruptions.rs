//! The life of an interrupted node between the notice and its end.

use axum::http::Method;
use poolwright_core::{PodKey, PodPhase, PodRole};
use poolwright_terms::keys::{NOT_READY_TAINT, UNREACHABLE_TAINT};
use serde_json::{Value, json};

use super::{Cluster, condition, pod_path};
use crate::cloud::Notice;

/// The taint with which a cloud's termination handler closes a node.
const INTERRUPTED: &str = "node-termination-handler/interrupted";

impl Cluster {
    /// Delivers the cloud's notice for the machine of this key to its node.
    pub(super) fn warn(&mut self, key: &str) {
        let Some(machine) = self.cloud.running(key) else { return };
        let Some((_, notice)) = machine.notice else { return };
        let id = &machine.instance.provider_id;
        self.record.say(format_args!("cloud takes {id} back in {} s", notice.ahead().as_secs()));
        let found = self.index.view().nodes.with_provider_id(id).map(|node| node.name.clone());
        let Some(node) = found else { return };
        match notice {
            Notice::Closes(_) => self.close(&node),
            Notice::ShutsDown(_) => self.shut_down(&node),
        }
    }

    /// Stops the kubelet of a machine. The node controller notices that, and closes the node.
    pub(super) fn freeze(&mut self, key: &str) {
        let Some(node) = self.node_of_machine(key) else { return };
        self.record.say(format_args!("kubelet of {node} does not report"));
        self.set_ready(&node, &("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."));
        self.add_taint(&node, &json!({"key": UNREACHABLE_TAINT, "effect": "NoSchedule"}));
        self.frozen.insert(node);
    }

    /// Lets the kubelet of a machine report again.
    pub(super) fn thaw(&mut self, key: &str) {
        let Some(node) = self.node_of_machine(key).filter(|node| self.frozen.remove(node)) else { return };
        self.record.say(format_args!("kubelet of {node} reports again"));
        self.set_ready(&node, &("True", "KubeletReady", "kubelet is posting ready status"));
        let path = format!("{}/{node}", super::NODES);
        let Some(object) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let taints: Vec<&Value> = object["spec"]["taints"].as_array().into_iter().flatten().collect();
        let left: Vec<&&Value> = taints.iter().filter(|taint| taint["key"] != UNREACHABLE_TAINT).collect();
        let version = &object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
        self.ask(&Method::PATCH, &path, &patch);
    }

    /// Returns the node of the running machine of this key.
    fn node_of_machine(&self, key: &str) -> Option<String> {
        let machine = self.cloud.running(key)?;
        let node = self.view().nodes.with_provider_id(&machine.instance.provider_id);
        node.map(|node| node.name.clone())
    }

    /// Sets the condition `Ready` of a node, and keeps its other conditions.
    fn set_ready(&self, node: &str, (status, reason, message): &(&str, &str, &str)) {
        let path = format!("{}/{node}", super::NODES);
        let Some(object) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.retain(|one| one["type"] != "Ready");
        conditions.push(condition("Ready", status, reason, message, self.time.now()));
        let status = json!({"status": {"conditions": conditions}});
        self.ask(&Method::PATCH, &format!("{path}/status"), &status);
    }

    fn close(&self, node: &str) {
        self.add_taint(node, &json!({"key": INTERRUPTED, "effect": "NoSchedule"}));
    }

    /// Shuts a node down: the kubelet makes it not ready and ends its pods (`GracefulNodeShutdown`), and the node controller
    /// taints it.
    fn shut_down(&mut self, node: &str) {
        let words = "node is shutting down";
        let ready = condition("Ready", "False", "KubeletNotReady", words, self.time.now());
        let path = format!("{}/{node}/status", super::NODES);
        self.ask(&Method::PATCH, &path, &json!({"status": {"conditions": [ready]}}));
        self.add_taint(node, &json!({"key": NOT_READY_TAINT, "effect": "NoSchedule"}));
        let here = self.index.view().pods.on_node(node);
        let pods = here.into_iter().flat_map(|on_node| &on_node.pods);
        let works = pods.filter(|pod| pod.role == PodRole::Workload && is_bound(&pod.phase));
        let ending: Vec<(PodKey, String)> = works.map(|pod| (pod.key.clone(), pod.uid.0.clone())).collect();
        for (key, uid) in ending {
            let status = json!({"phase": "Failed", "reason": "Terminated",
                "message": "Pod was terminated in response to imminent node shutdown."});
            if self
                .ask(&Method::PATCH, &format!("{}/status", pod_path(&key)), &json!({"status": status}))
                .is_some()
            {
                self.record.say(format_args!("kubelet {key} ends: its node shuts down"));
                self.tally.lost += 1;
                self.pod_failed(&key, &uid);
            }
        }
    }

    fn add_taint(&self, node: &str, taint: &Value) {
        let path = format!("{}/{node}", super::NODES);
        let Some(object) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let mut taints = object["spec"]["taints"].as_array().cloned().unwrap_or_default();
        taints.push(taint.clone());
        let version = &object["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        self.ask(&Method::PATCH, &path, &patch);
    }
}

fn is_bound(phase: &PodPhase) -> bool {
    matches!(phase, PodPhase::Bound { .. })
}
