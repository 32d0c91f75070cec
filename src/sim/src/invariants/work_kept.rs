//! No instance is terminated under running pods.

use std::collections::BTreeSet;
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_core::{PodPhase, PodRole};
use poolwright_provider_contract::InstanceState;

use super::departures::is_due;
use super::{Memory, Scene};

pub(super) const RULE: &str = "no instance is terminated under running pods before the deadline of its claim";

/// Terminating instances checked so far, by key.
pub(super) type Seen = BTreeSet<String>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let ending = scene.machines.iter().filter(|(_, one)| one.instance.state == InstanceState::Terminating);
    for (key, machine) in ending {
        let dies = machine.dies.is_some_and(|dies| dies <= scene.now + Duration::from_millis(1));
        if dies || !memory.work.insert(key.clone()) {
            continue;
        }
        let all = scene.cluster.view();
        let Some(node) = all.nodes.with_provider_id(&machine.instance.provider_id) else { continue };
        let claim = scene.cluster.claims.get(&machine.instance.claim);
        // A node whose kubelet does not report cannot be drained (`docs/disruption.md`, repair).
        if scene.cluster.frozen.contains(&node.name) {
            continue;
        }
        // A node that was never initialized was never opened by the controller, so pods on it were not protected.
        if claim.is_some_and(|claim| !was_initialized(claim) || is_due(claim, scene.cluster.time.now())) {
            continue;
        }
        let mut here = all.pods.on_node(&node.name).into_iter().flat_map(|on_node| &on_node.pods);
        let works = |pod: &&std::sync::Arc<poolwright_core::Pod>| {
            pod.role == PodRole::Workload
                && pod.deleting_since.is_none()
                && matches!(pod.phase, PodPhase::Bound { .. })
        };
        if let Some(pod) = here.find(works) {
            return Some(format!(
                "{} is terminated while {} runs on it",
                machine.instance.provider_id, pod.key
            ));
        }
    }
    None
}

fn was_initialized(claim: &NodeClaim) -> bool {
    let conditions = claim.status.iter().flat_map(|status| &status.conditions);
    conditions.into_iter().any(|one| one.type_ == "Initialized" && one.status == "True")
}
