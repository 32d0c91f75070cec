//! The scheduling loop: tries each waiting pod in turn, and binds it or reports why it fits nowhere.

use std::collections::BTreeSet;

use axum::http::Method;
use poolwright_core::{Pod, PodPhase};
use serde_json::{Value, json};

use super::{Cluster, Due, condition, pod_path};
use crate::scheduler::{MayPreempt, Outcome, Preemption, Queued, Scheduler, waits_for};

/// The scheduler name of the pods that it schedules.
pub(super) const NAME: &str = "default-scheduler";
/// Milliseconds between two attempts while pods cannot be placed.
const AGAIN: (u64, u64) = (5_000, 30_000);

impl Cluster {
    pub(super) fn schedule(&mut self) {
        self.scheduling_done();
        let waiting = self.index.view().pods.unbound().filter(|pod| waits_for(NAME, pod));
        let mut queue: Vec<Queued> = waiting.map(Queued::new).collect();
        if queue.is_empty() {
            return self.take_in();
        }
        queue.sort();
        let mut left = false;
        self.nodes.set_around(self.index.view());
        let mut gangs = BTreeSet::new();
        for queued in &queue {
            let Some(pod) = self.index.view().pods.get(&queued.pod).cloned() else { continue };
            if let Some(gang) = self.gang_of(&pod) {
                // Its first pod in the queue takes all others along.
                if gangs.insert(gang.0.clone()) {
                    left |= self.schedule_gang(&gang, &queue);
                }
                continue;
            }
            left |= self.place_pod(&pod);
        }
        self.take_in();
        if left && !self.is_scheduling {
            self.is_scheduling = true;
            self.after(AGAIN.0, AGAIN.1, Due::Schedule);
        }
    }

    /// Tries to place a pod that belongs to no gang. Returns whether it must be tried again.
    pub(super) fn place_pod(&mut self, pod: &Pod) -> bool {
        let mut pick = |count: usize| self.dice.below(count);
        match Scheduler::default().schedule(&self.nodes, pod, MayPreempt::LessImportant, &mut pick) {
            Ok(Outcome::Bind { node }) => {
                self.bind_claims(pod, &node);
                if self.bind(pod, &node) {
                    self.nodes.assume(pod, &node);
                }
                false
            }
            Ok(Outcome::Unschedulable { message, preemption }) => {
                self.refuse(pod, &message, &preemption);
                true
            }
            Err(unmodelled) => {
                self.refuse(pod, &unmodelled.to_string(), &Preemption::NotTried);
                false
            }
        }
    }

    pub(super) fn bind(&self, pod: &Pod, node: &str) -> bool {
        let binding = json!({"apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.key.name(), "uid": pod.uid.0}, "target": {"kind": "Node", "name": node}});
        let bound = self.ask(&Method::POST, &format!("{}/binding", pod_path(&pod.key)), &binding).is_some();
        if bound {
            self.record.say(format_args!("scheduler {} -> {node}", pod.key));
        }
        bound
    }

    /// Sets a pod's condition with the scheduler's message, and carries out its preemption. The condition keeps its time as long
    /// as its status stays `False`, as in Kubernetes (`UpdatePodCondition`): it says since when the pod waits, whatever the
    /// message says now.
    pub(super) fn refuse(&self, pod: &Pod, message: &str, preemption: &Preemption) {
        let told = matches!(&pod.phase, PodPhase::Unschedulable { message: told, .. } if told == message);
        let mut status = json!({});
        if !told {
            let mut condition = condition("PodScheduled", "False", "Unschedulable", message, self.time.now());
            let before = self.ask(&Method::GET, &pod_path(&pod.key), &Value::Null).unwrap_or_default();
            let scheduled = before["status"]["conditions"]
                .as_array()
                .and_then(|all| all.iter().find(|one| one["type"] == "PodScheduled"));
            if let Some(before) = scheduled.filter(|one| one["status"] == "False") {
                condition["lastTransitionTime"] = before["lastTransitionTime"].clone();
            }
            status["conditions"] = json!([condition]);
        }
        match preemption {
            Preemption::InVain if pod.nominated_node.is_some() => status["nominatedNodeName"] = Value::Null,
            Preemption::NotTried | Preemption::InVain => {}
            Preemption::Evict { node, victims, set_back } => {
                let nowhere = json!({"status": {"nominatedNodeName": null}});
                for pod in set_back {
                    self.ask(&Method::PATCH, &format!("{}/status", pod_path(pod)), &nowhere);
                }
                status["nominatedNodeName"] = json!(node);
                for victim in victims {
                    self.record.say(format_args!("scheduler {victim} makes room for {}", pod.key));
                    self.ask(&Method::DELETE, &pod_path(victim), &json!({}));
                }
            }
        }
        if status.as_object().is_some_and(|fields| !fields.is_empty()) {
            let path = format!("{}/status", pod_path(&pod.key));
            self.ask(&Method::PATCH, &path, &json!({"status": status}));
        }
    }
}
