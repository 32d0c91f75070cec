//! Nodes: they join, advertise their GPUs, and disappear with their instances.

use axum::http::Method;
use k8s_openapi::api::core::v1 as k8s;
use poolwright_api::NodeClaim;
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::rules::add_repeated;
use poolwright_core::{PodKey, PodPhase, PodRole};
use poolwright_terms::keys::NOT_READY_TAINT;
use poolwright_terms::labels;
use serde_json::{Value, json};

use super::{Cluster, Due, condition, pod_path, read};
/// Milliseconds from joining until the node advertises its GPUs.
pub(crate) const ADVERTISES: (u64, u64) = (2_000, 40_000);
/// Milliseconds from joining until the agents run that startup taints and readiness gates wait for.
pub(crate) const AGENTS: (u64, u64) = (2_000, 20_000);
/// Milliseconds from ready until the not-ready taint is removed.
const LIFTED: (u64, u64) = (50, 5_000);
/// Milliseconds from the end of an instance to the deletion of its node.
const NOTICED: (u64, u64) = (2_000, 60_000);
/// Milliseconds from the deletion of a node to that of its pods.
const COLLECTED: (u64, u64) = (5_000, 40_000);

impl Cluster {
    pub(super) fn on_node(&mut self, event: &Value) {
        let Some(object) = read::<k8s::Node>(event) else { return };
        let Ok(node) = poolwright_intake::node(&object) else { return };
        if event["type"] == "DELETED" {
            self.index.delete_node(&node.name);
            self.nodes.remove_node(&node.name);
            self.give_up_daemons(&node.name);
            self.frozen.remove(&node.name);
            self.detach_soon(&node.name);
            self.after(COLLECTED.0, COLLECTED.1, Due::Orphans { node: node.name });
        } else {
            if node.ready && node.taints.iter().any(|taint| taint.key == NOT_READY_TAINT) {
                self.after(LIFTED.0, LIFTED.1, Due::Lift { node: node.name.clone() });
            }
            let name = node.name.clone();
            self.index.apply_node(node);
            if let Some(node) = self.index.view().nodes.get(&name) {
                self.nodes.set_node(node.clone());
            }
            self.want_daemons(&name);
            self.schedule_soon();
        }
    }

    /// Removes the not-ready taint of a ready node, like the node lifecycle controller.
    pub(super) fn lift(&mut self, name: &str) {
        let path = format!("{}/{name}", super::NODES);
        let Some(node) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let taints: Vec<&Value> = node["spec"]["taints"].as_array().into_iter().flatten().collect();
        let left: Vec<&&Value> = taints.iter().filter(|taint| taint["key"] != NOT_READY_TAINT).collect();
        if left.len() < taints.len() {
            let version = &node["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
            self.ask(&Method::PATCH, &path, &patch);
        }
    }

    pub(super) fn join(&mut self, key: &str) {
        let Some(machine) = self.cloud.running(key) else { return };
        let request = &machine.request;
        let name = &request.claim;
        let mut labels = request.labels.clone();
        labels.extend(self.cloud.labels_of(&machine.instance.offering));
        labels.insert(labels::HOSTNAME.to_owned(), name.clone());
        // Those of CSI drivers and of older components. Volumes name the former.
        add_repeated(&mut labels);
        let taints: Vec<Value> = request
            .taints
            .iter()
            .map(|taint| json!({"key": taint.key, "value": taint.value, "effect": taint.effect}))
            .collect();
        // Without GPUs at first: the device plugin adds them later.
        let room = request.offerings[0].allocatable.clone();
        let gpus = room.get(ResourceName::NVIDIA_GPU);
        let room = quantities(&room.with(ResourceName::NVIDIA_GPU, 0));
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": request.annotations},
            "spec": {"providerID": machine.instance.provider_id, "taints": taints},
            "status": {"capacity": room, "allocatable": room,
                "conditions": [condition("Ready", "True", "KubeletReady", "ready", self.time.now())]},
        });
        if self.ask(&Method::POST, super::NODES, &node).is_some() {
            self.record.say(format_args!("kubelet node {name} joins"));
            self.tally.joined += 1;
            let waits = |claim: &NodeClaim| {
                !claim.spec.startup_taints.is_empty() || !claim.spec.readiness_gates.is_empty()
            };
            if self.claims.get(name).is_some_and(waits) {
                self.after(AGENTS.0, AGENTS.1, Due::AgentsRun { node: name.clone() });
            }
            if gpus > machine.lacks {
                self.after(ADVERTISES.0, ADVERTISES.1, Due::Advertise { key: key.to_owned() });
            }
        }
    }

    /// Removes the startup taints of a node and sets the conditions of its readiness gates, like the agents that they are for.
    pub(super) fn agents_run(&mut self, name: &str) {
        let Some(claim) = self.claims.get(name) else { return };
        let path = format!("{}/{name}", super::NODES);
        let Some(node) = self.ask(&Method::GET, &path, &Value::Null) else { return };
        let is_startup = |taint: &Value| {
            let mut startup = claim.spec.startup_taints.iter();
            startup.any(|one| taint["key"] == one.key && taint["effect"] == one.effect.as_str())
        };
        let taints: Vec<&Value> = node["spec"]["taints"].as_array().into_iter().flatten().collect();
        let left: Vec<&&Value> = taints.iter().filter(|taint| !is_startup(taint)).collect();
        let gates = claim.spec.readiness_gates.iter().map(|gate| gate.condition_type.as_str());
        let gates = gates.filter(|gate| *gate != "Ready");
        let now = self.time.now();
        let passed: Vec<Value> =
            gates.map(|gate| condition(gate, "True", "AgentRuns", "simulated", now)).collect();
        if left.len() < taints.len() {
            let version = &node["metadata"]["resourceVersion"];
            let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": left}});
            if self.ask(&Method::PATCH, &path, &patch).is_none() {
                // Somebody else changed the node meanwhile.
                return self.after(AGENTS.0, AGENTS.1, Due::AgentsRun { node: name.to_owned() });
            }
            self.record.say(format_args!("agents of node {name} run"));
        }
        if !passed.is_empty() {
            let mut conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.extend(passed);
            let status = json!({"status": {"conditions": conditions}});
            self.ask(&Method::PATCH, &format!("{path}/status"), &status);
        }
    }

    pub(super) fn advertise(&mut self, key: &str) {
        let Some(machine) = self.cloud.running(key) else { return };
        let room = &machine.request.offerings[0].allocatable;
        let gpus = room.get(ResourceName::NVIDIA_GPU).saturating_sub(machine.lacks);
        let room = quantities(&room.clone().with(ResourceName::NVIDIA_GPU, gpus));
        let name = &machine.request.claim;
        let status = json!({"status": {"capacity": room, "allocatable": room}});
        if self.ask(&Method::PATCH, &format!("{}/{name}/status", super::NODES), &status).is_some() {
            self.record.say(format_args!("kubelet node {name} has {gpus} GPUs"));
        }
    }

    /// Schedules the consequences of an instance's end.
    pub(super) fn lose(&mut self, provider_id: &str) {
        let gone = self.cloud.gone_at(provider_id).unwrap_or_else(|| self.time.elapsed());
        let pause = self.dice.between(
            std::time::Duration::from_millis(NOTICED.0),
            std::time::Duration::from_millis(NOTICED.1),
        );
        self.at(gone + pause, Due::NodeGone { provider_id: provider_id.to_owned() });
    }

    pub(super) fn node_gone(&mut self, provider_id: &str) {
        let found = self.index.view().nodes.with_provider_id(provider_id).map(|node| node.name.clone());
        let Some(name) = found else { return };
        if self.ask(&Method::DELETE, &format!("{}/{name}", super::NODES), &Value::Null).is_some() {
            self.record.say(format_args!("cloud controller: node {name} has no instance"));
        }
    }

    pub(super) fn collect_orphans(&mut self, node: &str) {
        if self.index.view().nodes.contains_key(node) {
            return;
        }
        let here = self.index.view().pods.on_node(node);
        let pods: Vec<(PodKey, String, PodRole)> = here
            .into_iter()
            .flat_map(|on_node| &on_node.pods)
            .filter(|pod| matches!(pod.phase, PodPhase::Bound { .. }))
            .map(|pod| (pod.key.clone(), pod.uid.0.clone(), pod.role))
            .collect();
        for (key, uid, role) in pods {
            let now = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            if self.ask(&Method::DELETE, &pod_path(&key), &now).is_some() {
                self.record.say(format_args!("pod collector: {key} has lost its node"));
                self.tally.lost += u64::from(role == PodRole::Workload);
            }
        }
    }
}

fn quantities(list: &ResourceList) -> Value {
    list.iter().map(|(name, amount)| (name.to_string(), json!(name.quantity(amount)))).collect()
}
