//! Empty nodes are terminated.

use std::collections::BTreeMap;
use std::time::Duration;

use poolwright_core::{Pod, PodRole};
use poolwright_provider_contract::InstanceState;

use super::{Memory, Scene, offers};
use crate::scenario::BUFFER_UNTIL;

pub(super) const RULE: &str = "an empty node is terminated within 30 minutes without trouble, unless a pod waits for which a node could be bought";

/// Allows eight minutes of `scaleToZero.after`, clocks that are wrong by ten minutes for five, room kept by buffers, and failing
/// calls. A node that never became usable has three deadlines of five minutes.
const GONE_WITHIN: Duration = Duration::from_mins(30);

/// Since when each machine is without work, by key.
pub(super) type Seen = BTreeMap<String, Duration>;

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let before = std::mem::take(&mut memory.empty);
    let may_get_one = |pod: &Pod| offers::is_sold(scene, pod) && !is_hopeless(scene, pod);
    if scene.machines.is_empty() || offers::waiting(scene).any(may_get_one) {
        return None;
    }
    let all = scene.cluster.view();
    let kept = all.pools.values().any(|pool| !pool.buffer.is_empty());
    let not_before = if kept { scene.troubled.max(BUFFER_UNTIL) } else { scene.troubled };
    for (key, machine) in scene.machines {
        let instance = &machine.instance;
        if scene.is_static(&instance.claim) {
            continue;
        }
        let node = all.nodes.with_provider_id(&instance.provider_id);
        let here = node.and_then(|node| all.pods.on_node(&node.name));
        let mut here = here.into_iter().flat_map(|here| &here.pods);
        if instance.state != InstanceState::Running || here.any(|pod| pod.role == PodRole::Workload) {
            continue;
        }
        let since = before.get(key).copied().unwrap_or(scene.now);
        if scene.now.saturating_sub(since.max(not_before)) > GONE_WITHIN {
            let id = &instance.provider_id;
            return Some(format!("{id} of claim {} is without work since {since:?}", instance.claim));
        }
        memory.empty.insert(key.clone(), since);
    }
    None
}

/// Returns whether a pod belongs to a gang that no pool may hold.
fn is_hopeless(scene: &Scene<'_>, pod: &Pod) -> bool {
    let plan = pod.labels.get("job").and_then(|job| scene.plan_of(job));
    plan.is_some_and(|plan| plan.never && plan.gang.is_some())
}
