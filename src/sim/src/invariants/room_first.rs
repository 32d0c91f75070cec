//! A pod leaves a working node only after it has room elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_core::{Node, Pod, PodPhase, PodRole, Snapshot, rules};
use poolwright_terms::keys::RESERVED_TAINT;

use super::{Memory, Scene, disruption_budgets};

pub(super) const RULE: &str =
    "no healthy node is drained before each of its pods had room on another open node";

/// The largest age of the state that a controller decides by, because watches stall and requests are late.
const AS_OLD: Duration = Duration::from_mins(5);
/// How often room for the pods of all nodes is checked.
const EVERY: Duration = Duration::from_secs(30);

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    looked: Duration,
    /// Since when each pod is on its node, by UID.
    here: BTreeMap<String, Duration>,
    /// When each pod last had room on another node, by UID.
    room: BTreeMap<String, Duration>,
    /// Deleted claims checked so far.
    judged: BTreeSet<String>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    let (all, seen) = (scene.cluster.view(), &mut memory.room);
    let everywhere = scene.now.saturating_sub(seen.looked) >= EVERY || seen.looked.is_zero();
    if everywhere {
        seen.looked = scene.now;
    }
    for claim in scene.cluster.claims.values() {
        let leaves = disruption_budgets::leaves(claim).is_some();
        let deleted = claim.metadata.deletion_timestamp.is_some();
        let uid = claim.metadata.uid.as_deref().unwrap_or_default();
        if !(leaves || everywhere) || seen.judged.contains(uid) {
            continue;
        }
        let Some(node) = node_of(scene, claim).filter(|node| node.ready) else { continue };
        let here: Vec<&Pod> = working_on(all, node).collect();
        for pod in &here {
            seen.here.entry(pod.uid.0.clone()).or_insert(scene.now);
            if others(scene, node).any(|other| has_room(all, other, pod)) {
                seen.room.insert(pod.uid.0.clone(), scene.now);
            }
        }
        if !deleted {
            continue;
        }
        seen.judged.insert(uid.to_owned());
        let by_somebody = scene.withdrawn.iter().any(|at| scene.now.saturating_sub(*at) <= EVERY);
        let without = here.iter().find(|pod| {
            let lately = |times: &BTreeMap<String, Duration>| {
                times.get(&pod.uid.0).is_some_and(|at| scene.now.saturating_sub(*at) <= AS_OLD)
            };
            // The controller may not have seen a pod that came this recently.
            let known = !lately(&seen.here);
            known && !lately(&seen.room) && !is_held(scene, pod)
        });
        if let Some(pod) = without.filter(|_| leaves && !by_somebody) {
            return Some(format!("{} is drained, and {} had no room elsewhere", node.name, pod.key));
        }
    }
    None
}

/// Returns the node of a claim, if its machine is healthy.
fn node_of<'s>(scene: &'s Scene<'_>, claim: &NodeClaim) -> Option<&'s Node> {
    let name = claim.metadata.name.as_deref()?;
    let (_, machine) = scene.machines.iter().find(|(_, one)| one.instance.claim == name)?;
    let well = machine.dies.is_none_or(|dies| dies > scene.now);
    scene
        .cluster
        .view()
        .nodes
        .with_provider_id(&machine.instance.provider_id)
        .map(AsRef::as_ref)
        .filter(|_| well)
}

fn working_on<'s>(all: &'s Snapshot, node: &Node) -> impl Iterator<Item = &'s Pod> {
    let here = all.pods.on_node(&node.name).into_iter().flat_map(|here| &here.pods).map(AsRef::as_ref);
    here.filter(|pod: &&Pod| {
        pod.role == PodRole::Workload
            && pod.deleting_since.is_none()
            && matches!(pod.phase, PodPhase::Bound { .. })
    })
}

/// Returns whether the replacement of the pod waits for a scheduling gate, not for room.
fn is_held(scene: &Scene<'_>, pod: &Pod) -> bool {
    let job = pod.labels.get("job");
    scene.cluster.jobs.iter().any(|one| Some(&one.plan.name) == job && one.plan.gated.is_some())
}

/// Returns the open nodes that stay, other than this one.
fn others<'s>(scene: &'s Scene<'_>, node: &'s Node) -> impl Iterator<Item = &'s Node> {
    let goes = |other: &Node| {
        scene.cluster.claims.get(&other.name).is_some_and(|claim| {
            claim.metadata.deletion_timestamp.is_some() || disruption_budgets::leaves(claim).is_some()
        })
    };
    let nodes = scene.cluster.view().nodes.values().map(AsRef::as_ref);
    nodes.filter(|other| is_open(other)).filter(move |other| other.name != node.name && !goes(other))
}

/// Returns whether a node is ready and not cordoned. Reservations do not count.
pub(super) fn is_open(node: &Node) -> bool {
    node.ready && !node.cordoned && node.deleting_since.is_none()
}

/// Returns whether the node has room for this pod alone, without rules about other pods and without reservations.
pub(super) fn has_room(all: &Snapshot, node: &Node, pod: &Pod) -> bool {
    let taints: Vec<_> = node.taints.iter().filter(|taint| taint.key != RESERVED_TAINT).cloned().collect();
    let mut free = node.allocatable.clone();
    if let Some(here) = all.pods.on_node(&node.name) {
        let mut taken = here.requests.clone();
        taken.saturating_sub(&here.leaving);
        free.saturating_sub(&taken);
    }
    pod.spec.requests.fits(&free) && rules::admits(&pod.spec, &node.labels, &taints).is_ok()
}
