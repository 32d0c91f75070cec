//! No gang is bought half.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use poolwright_api::NodeClaim;
use poolwright_catalog::ResourceList;
use poolwright_core::{ObjectKey, PodKey, PodPhase};

use super::{Memory, Scene, no_oscillation};
use crate::cluster::NAMESPACE;

pub(super) const RULE: &str =
    "nodes are bought for a gang only if enough of its pods to start have room, on these nodes and others";

/// The claims of one decision are written one after the other, within this time.
const WRITTEN_WITHIN: Duration = Duration::from_secs(30);
/// The largest age of the state that a controller decides by, because watches stall and requests are late.
const AS_OLD: Duration = Duration::from_mins(5);

/// The memory of this rule.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// UIDs of the claims seen so far.
    claims: BTreeSet<String>,
    /// The gangs for which claims are being written: since when, and the pods that claims have named since then.
    bought: BTreeMap<String, (Duration, BTreeSet<String>)>,
}

pub(super) fn check(scene: &Scene<'_>, memory: &mut Memory) -> Option<String> {
    if scene.cluster.jobs.iter().all(|job| job.plan.gang.is_none()) {
        return None;
    }
    let Seen { claims, bought } = &mut memory.gangs;
    for claim in scene.cluster.claims.values() {
        if claim.metadata.uid.as_ref().is_some_and(|uid| claims.insert(uid.clone())) {
            let named = claim.spec.pods.iter().filter_map(|planned| no_oscillation::job_of(planned));
            for job in named.filter(|job| scene.gang(job).is_some()) {
                bought.entry(job).or_insert_with(|| (scene.now, BTreeSet::new()));
            }
        }
    }
    let mut half = None;
    bought.retain(|job, (since, named)| {
        let Some(least) = scene.gang(job) else { return false };
        named.extend(planned(scene, job));
        let served = served(scene, job, named);
        if served >= least as usize {
            return false;
        }
        if scene.now.saturating_sub(*since) <= WRITTEN_WITHIN {
            return true;
        }
        // After a failure, the rest of a decision may be carried out by a later one, or not at all.
        if scene.last_failure().is_none_or(|last| last + AS_OLD < *since) {
            half = Some(format!(
                "a node is bought for {job}: {served} of its pods have room, and it starts with {least}"
            ));
        }
        false
    });
    half
}

/// Returns the pods of a Job that claims name.
fn planned(scene: &Scene<'_>, job: &str) -> impl Iterator<Item = String> {
    let all = scene.cluster.claims.values().flat_map(|claim| &claim.spec.pods);
    all.filter(move |planned| no_oscillation::job_of(planned).as_deref() == Some(job)).cloned()
}

/// Returns the number of a gang's pods that are on a node, planned for one, or fit on one alone. Several pods may count on the same
/// room, so no gang that has room is found to lack some.
fn served(scene: &Scene<'_>, job: &str, named: &BTreeSet<String>) -> usize {
    let rooms: Vec<ResourceList> =
        scene.cluster.claims.values().filter_map(|claim| room_beside(scene, claim, job)).collect();
    let gang = ObjectKey::new(NAMESPACE, job);
    let pods = scene.cluster.view().pods.of_group(&gang);
    let with_room = pods.filter(|pod| {
        matches!(pod.phase, PodPhase::Bound { .. }) || rooms.iter().any(|room| pod.spec.requests.fits(room))
    });
    let mut served: BTreeSet<String> = with_room.map(|pod| pod.key.to_string()).collect();
    served.extend(named.iter().cloned());
    served.len()
}

/// Returns the room on the node of a claim beside the pods that stay there and those of a gang that wait for it.
fn room_beside(scene: &Scene<'_>, claim: &NodeClaim, job: &str) -> Option<ResourceList> {
    let all = scene.cluster.view();
    let model = poolwright_intake::node_claim(claim).ok()?;
    let mut room = if model.launched.is_some() {
        model.current_offering().allocatable.clone()
    } else {
        let rooms = model.offerings.iter().map(|one| &one.allocatable);
        rooms.fold(ResourceList::new(), |most, room| ResourceList::max(&most, room))
    };
    if let Some(here) = all.pods.on_node(&model.name.0) {
        let mut taken = here.requests.clone();
        taken.saturating_sub(&here.leaving);
        room.saturating_sub(&taken);
    }
    let theirs =
        claim.spec.pods.iter().filter(|planned| no_oscillation::job_of(planned).as_deref() == Some(job));
    for pod in theirs.filter_map(|planned| all.pods.get(&planned.parse::<PodKey>().ok()?)) {
        if matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. }) {
            room.saturating_sub(&pod.spec.requests);
        }
    }
    Some(room)
}
