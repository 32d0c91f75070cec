//! The DaemonSet controller: one pod of each DaemonSet for each node that it may run on.

use axum::http::Method;
use poolwright_core::{Pod, PodKey, PodRole, Uid, rules};
use serde_json::{Value, json};

use super::{Cluster, Due, NAMESPACE, model_of, pod_path};

/// Milliseconds from a new node, or from the end of a pod, to the new pod of a DaemonSet.
const MADE: (u64, u64) = (100, 5_000);
/// The taints that pods of DaemonSets tolerate without saying so
/// (<https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations>).
const TOLERATED: [&str; 5] =
    ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "unschedulable"];
/// The label of a pod with the name of the node that it is for.
const FOR_NODE: &str = "for-node";

impl Cluster {
    /// Runs the pods of a stored DaemonSet.
    pub(crate) fn add_daemon_set(&mut self, set: Value) {
        self.daemon_sets.push(set);
    }

    /// Returns a pod of each DaemonSet, as its template describes it.
    pub(crate) fn daemons(&self) -> impl Iterator<Item = Pod> {
        self.daemon_sets.iter().filter_map(|set| {
            let template = &set["spec"]["template"];
            let metadata = json!({"name": "template", "namespace": NAMESPACE, "uid": "template"});
            model_of(&json!({"object": {"metadata": metadata, "spec": template["spec"]}}))
        })
    }

    /// Schedules the missing pods of all DaemonSets for a node.
    pub(super) fn want_daemons(&mut self, node: &str) {
        for set in 0..self.daemon_sets.len() {
            if self.has_daemon(set, node) || !self.daemons_due.insert((set, node.to_owned())) {
                continue;
            }
            self.after(MADE.0, MADE.1, Due::Daemon { set, node: node.to_owned() });
        }
    }

    fn has_daemon(&self, set: usize, node: &str) -> bool {
        let uid = Uid(self.daemon_sets[set]["metadata"]["uid"].as_str().unwrap_or_default().to_owned());
        let mut pods = self.view().pods.of_owner(&uid);
        pods.any(|pod| pod.labels.get(FOR_NODE).is_some_and(|name| name == node))
    }

    /// Makes the pod of a DaemonSet for a node, if the node still exists and admits it.
    pub(super) fn make_daemon(&mut self, set: usize, node: &str) {
        self.daemons_due.remove(&(set, node.to_owned()));
        self.serial += 1;
        let Some(host) = self.view().nodes.get(node) else { return };
        let daemon_set = &self.daemon_sets[set];
        let name = format!("{}-{}", daemon_set["metadata"]["name"].as_str().unwrap_or_default(), self.serial);
        let mut labels = daemon_set["spec"]["template"]["metadata"]["labels"].clone();
        labels[FOR_NODE] = json!(node);
        let mut spec = daemon_set["spec"]["template"]["spec"].clone();
        let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
        let tolerated = TOLERATED.iter().map(|name| format!("node.kubernetes.io/{name}"));
        tolerations.extend(tolerated.map(|key| json!({"key": key, "operator": "Exists"})));
        spec["tolerations"] = json!(tolerations);
        let this_node = json!({"key": "metadata.name", "operator": "In", "values": [node]});
        spec["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
            {"nodeSelectorTerms": [{"matchFields": [this_node]}]}}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels,
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet",
                    "name": daemon_set["metadata"]["name"], "uid": daemon_set["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true}]},
            "spec": spec});
        // The affinity names the node, which the labels of a node do not contain.
        let mut admitted = pod.clone();
        admitted["spec"]["affinity"] = Value::Null;
        admitted["metadata"]["uid"] = json!("template");
        let Some(model) = model_of(&json!({"object": admitted})) else { return };
        if rules::admits(&model.spec, &host.labels, &host.taints).is_ok() {
            self.ask(&Method::POST, &format!("/api/v1/namespaces/{NAMESPACE}/pods"), &pod);
        }
    }

    /// Replaces a deleted pod of a DaemonSet, if its node still exists.
    pub(super) fn daemon_deleted(&mut self, pod: &Pod) {
        if pod.role != PodRole::DaemonSet {
            return;
        }
        let Some(node) = pod.labels.get(FOR_NODE).cloned() else { return };
        if self.view().nodes.contains_key(&node) {
            self.want_daemons(&node);
        }
    }

    /// Deletes the pods of DaemonSets that wait for a deleted node.
    pub(super) fn give_up_daemons(&self, node: &str) {
        let waits = |pod: &&Pod| {
            pod.role == PodRole::DaemonSet && pod.labels.get(FOR_NODE).is_some_and(|name| name == node)
        };
        let keys: Vec<PodKey> = self.view().pods.unbound().filter(waits).map(|pod| pod.key.clone()).collect();
        for key in keys {
            self.ask(&Method::DELETE, &pod_path(&key), &json!({"gracePeriodSeconds": 0}));
        }
    }
}
