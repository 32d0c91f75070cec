//! The workload and the delays of a replay, for methods that are played without a cluster.

use std::time::Duration;

use poolwright_report::replay::baselines::{Arrival, Delays};
use poolwright_terms::keys::RAN_FOR_ANNOTATION;
use serde_json::json;

use super::Replay;
use crate::accidents::span;
use crate::cloud::{GOES, JOINS};
use crate::cluster::{ADVERTISES, AGENTS, STARTS};
use crate::dice::Dice;

impl Replay {
    /// Returns the pods that arrive, in order of time.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let mut arrivals = Vec::new();
        for job in &self.jobs {
            let kind = if job.is_set { "ReplicaSet" } else { "Job" };
            let object = json!({
                "metadata": {"name": job.name, "namespace": job.namespace, "labels": job.labels,
                    "annotations": {RAN_FOR_ANNOTATION: format!("{}s", job.ran_before.as_secs())},
                    "ownerReferences": [{"apiVersion": "v1", "kind": kind, "name": job.name, "uid": job.name,
                        "controller": true}]},
                "spec": job.spec,
            });
            let Ok(object) = serde_json::from_value(object) else { continue };
            let Ok(pod) = poolwright_intake::pod(&object) else { continue };
            let arrival = Arrival { pod, arrives: job.arrives, length: job.length };
            arrivals.extend(std::iter::repeat_n(arrival, job.pods as usize));
        }
        arrivals.sort_by_key(|arrival| arrival.arrives);
        arrivals
    }
}

/// The delays of the simulated world, from its seed.
#[derive(Clone, Copy, Debug)]
pub struct SeededDelays {
    /// The seed.
    pub seed: u64,
    /// Whether nodes wait for the agents that remove their startup taints and pass their readiness gates.
    pub agents: bool,
}

impl SeededDelays {
    fn draw(self, name: &str, count: u64, (low, high): (u64, u64)) -> Duration {
        span(&mut Dice::nth(self.seed, name, count), low, high)
    }
}

impl Delays for SeededDelays {
    fn node_start(&self, node: u64) -> Duration {
        // The agents start beside the device plugin, once the node has joined.
        let agents = if self.agents { self.draw("agents", node, AGENTS) } else { Duration::ZERO };
        self.draw("joins", node, JOINS) + self.draw("advertises", node, ADVERTISES).max(agents)
    }

    fn node_end(&self, node: u64) -> Duration {
        self.draw("goes", node, GOES)
    }

    fn pod_start(&self, pod: u64) -> Duration {
        self.draw("starts", pod, STARTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_starts_later_if_its_agents_come_after_its_device_plugin_and_never_earlier() {
        let start = |agents: bool, node: u64| SeededDelays { seed: 7, agents }.node_start(node);
        assert!((0..200).all(|node| start(true, node) >= start(false, node)));
        assert!((0..200).any(|node| start(true, node) > start(false, node)));
    }
}
