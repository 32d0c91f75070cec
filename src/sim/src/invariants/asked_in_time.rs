//! Pods on an interrupted node are evicted before the instance ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_core::{Pod, PodPhase, PodRole};
use poolwright_provider_contract::InstanceState;
use poolwright_terms::InterruptionKind;

use super::{Memory, Scene};

pub(super) const RULE: &str =
    "every pod is evicted from an interrupted machine within 80 seconds after the interruption is recorded";

/// Of two minutes' notice, the controller has 40 seconds to record it. It must evict pods in the other 80.
const IN_TIME: Duration = Duration::from_secs(80);
/// The last seconds of a machine: all pods must have been evicted by then.
const LAST: Duration = Duration::from_secs(9);

/// When the interruption was recorded, and the UIDs of the pods then on the node, by the key of the machine.
pub(super) type Seen = BTreeMap<String, (Duration, BTreeSet<String>)>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    for (key, machine) in scene.machines {
        let Some(dies) = machine.dies.filter(|dies| *dies > scene.now) else { continue };
        let Some(claim) = scene.cluster.claims.get(&machine.instance.claim) else { continue };
        let said = claim.status.as_ref().and_then(|status| status.interruption.as_ref());
        if said.is_none_or(|said| said.kind != InterruptionKind::Reclaim) {
            continue;
        }
        let here = working(scene, &machine.instance.provider_id);
        let (since, there) = memory
            .asked
            .entry(key.clone())
            .or_insert_with(|| (scene.now, here.iter().map(|pod| pod.uid.0.clone()).collect()));
        let goes =
            machine.instance.state == InstanceState::Terminating || dies.saturating_sub(scene.now) <= LAST;
        // While requests get lost, the controller retries, so the rule waits for a calm time.
        let calm = *since > scene.disturbed;
        if goes && calm && scene.now.saturating_sub(*since) >= IN_TIME {
            let unasked = here.iter().find(|pod| pod.deleting_since.is_none() && there.contains(&pod.uid.0));
            if let Some(pod) = unasked {
                return Some(format!("{} is still on {}", pod.key, machine.instance.provider_id));
            }
        }
    }
    None
}

fn working<'s>(scene: &'s Scene<'_>, provider_id: &str) -> Vec<&'s Pod> {
    let all = scene.cluster.view();
    let node = all.nodes.with_provider_id(provider_id);
    let here = node.and_then(|node| all.pods.on_node(&node.name));
    let pods = here.into_iter().flat_map(|here| &here.pods).map(AsRef::as_ref);
    pods.filter(|pod: &&Pod| pod.role == PodRole::Workload && matches!(pod.phase, PodPhase::Bound { .. }))
        .collect()
}
