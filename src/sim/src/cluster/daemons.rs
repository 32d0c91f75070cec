//! The DaemonSet controller: one pod of each DaemonSet for each node that it may run on.

use axum::http::Method;
use poolwright_core::{Pod, PodKey, PodRole, rules};
use serde_json::{Value, json};

use super::scheduling::NAME;
use super::{Cluster, Due, NAMESPACE, model_of, pod_path};
use crate::scheduler::waits_for;

/// Milliseconds from a new node, or from the end of a pod, to the new pod of a DaemonSet.
const MADE: (u64, u64) = (100, 5_000);
/// The taints that pods of DaemonSets tolerate without saying so
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>).
const TOLERATED: [&str; 5] =
    ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "unschedulable"];
/// The label of a pod with the name of the node that it is for.
const FOR_NODE: &str = "for-node";

/// Returns whether a pod is that of a DaemonSet for this node.
fn is_for(pod: &Pod, node: &str) -> bool {
    pod.role == PodRole::DaemonSet && pod.labels.get(FOR_NODE).is_some_and(|name| name == node)
}

fn namespace_of(set: &Value) -> &str {
    set["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE)
}

impl Cluster {
    /// Runs the pods of a stored DaemonSet.
    pub(crate) fn add_daemon_set(&mut self, set: Value) {
        self.daemon_sets.push(set);
    }

    /// Returns a pod of each DaemonSet, as its template describes it.
    pub(crate) fn daemons(&self) -> impl Iterator<Item = Pod> {
        self.daemon_sets.iter().filter_map(|set| {
            let template = &set["spec"]["template"];
            let metadata = json!({"name": "template", "namespace": namespace_of(set), "uid": "template"});
            model_of(&json!({"object": {"metadata": metadata, "spec": template["spec"]}}))
        })
    }

    /// Makes the missing pods of all DaemonSets for a node, at once or soon.
    pub(super) fn want_daemons(&mut self, node: &str) {
        let mut is_made = false;
        for set in 0..self.daemon_sets.len() {
            if !self.daemon_pods.insert((set, node.to_owned())) {
                continue;
            }
            if self.daemons_first {
                is_made |= self.make_daemon(set, node);
            } else {
                self.after(MADE.0, MADE.1, Due::Daemon { set, node: node.to_owned() });
            }
        }
        if is_made {
            self.place_daemons(node);
        }
    }

    /// Places the waiting pods of DaemonSets on their node, before the scheduler tries others.
    fn place_daemons(&mut self, node: &str) {
        while let Ok(event) = self.pods_feed.try_recv() {
            self.on_pod(&event);
        }
        let waits = |pod: &&Pod| is_for(pod, node) && waits_for(NAME, pod);
        let pods: Vec<Pod> = self.view().pods.unbound().filter(waits).cloned().collect();
        self.nodes.set_around(self.index.view());
        for pod in pods {
            self.place_pod(&pod);
        }
    }

    /// Makes the pod of a DaemonSet for a node, if the node still exists and admits it. Returns whether it is made.
    pub(super) fn make_daemon(&mut self, set: usize, node: &str) -> bool {
        self.serial += 1;
        let made = self.daemon_for(set, node).and_then(|pod| {
            let namespace = pod["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
            self.ask(&Method::POST, &format!("/api/v1/namespaces/{namespace}/pods"), &pod)
        });
        if made.is_none() {
            self.daemon_pods.remove(&(set, node.to_owned()));
        }
        made.is_some()
    }

    /// Returns the pod of a DaemonSet for a node; `None` if the node does not exist, or does not admit it.
    fn daemon_for(&self, set: usize, node: &str) -> Option<Value> {
        let host = self.view().nodes.get(node)?;
        let daemon_set = &self.daemon_sets[set];
        let name = format!("{}-{}", daemon_set["metadata"]["name"].as_str().unwrap_or_default(), self.serial);
        let mut labels = daemon_set["spec"]["template"]["metadata"]["labels"].clone();
        labels[FOR_NODE] = json!(node);
        let mut spec = daemon_set["spec"]["template"]["spec"].clone();
        let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
        let tolerated = TOLERATED.iter().map(|name| format!("node.kubernetes.io/{name}"));
        tolerations.extend(tolerated.map(|key| json!({"key": key, "operator": "Exists"})));
        spec["tolerations"] = json!(tolerations);
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace_of(daemon_set), "labels": labels,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                    "name": daemon_set["metadata"]["name"], "uid": daemon_set["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true}]},
            "spec": spec});
        let mut template = pod.clone();
        template["metadata"]["uid"] = json!("template");
        let model = model_of(&json!({"object": template}))?;
        rules::admits(&model.spec, &rules::Discovered(&host.labels), &host.taints).ok()?;
        // The DaemonSet's own rule about nodes is met. In the pod, the name of its node replaces the rule.
        let this_node = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
            json!({"nodeSelectorTerms": [{"matchFields": [this_node]}]});
        Some(pod)
    }

    /// Replaces a deleted pod of a DaemonSet, if its node still exists.
    pub(super) fn daemon_deleted(&mut self, pod: &Pod) {
        if pod.role != PodRole::DaemonSet {
            return;
        }
        let Some(node) = pod.labels.get(FOR_NODE).cloned() else { return };
        let owner = pod.owner.as_ref().map(|owner| owner.0.as_str());
        let set = self.daemon_sets.iter().position(|set| set["metadata"]["uid"].as_str() == owner);
        let Some(set) = set else { return };
        self.daemon_pods.remove(&(set, node.clone()));
        if self.view().nodes.contains_key(&node) {
            self.want_daemons(&node);
        }
    }

    /// Deletes the pods of DaemonSets that wait for a deleted node.
    pub(super) fn give_up_daemons(&self, node: &str) {
        let waits = |pod: &&Pod| is_for(pod, node);
        let keys: Vec<PodKey> = self.view().pods.unbound().filter(waits).map(|pod| pod.key.clone()).collect();
        for key in keys {
            self.ask(&Method::DELETE, &pod_path(&key), &json!({"gracePeriodSeconds": 0}));
        }
    }
}
