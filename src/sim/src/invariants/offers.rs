//! Offerings that fit a pod, each judged by itself. This second opinion on the planner shares no code with it.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{Catalogue, Offering, OfferingId, ResourceList};
use poolwright_core::rules;
use poolwright_core::{Pod, PodPhase, PodRole, Pool, PoolName};
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{CapacityType, labels};

use super::{Scene, pool_limits};

/// Returns the pods that wait for a node, without gated ones.
pub(super) fn waiting<'s>(scene: &'s Scene<'_>) -> impl Iterator<Item = &'s Pod> {
    scene.cluster.view().pods.unbound().filter(|pod| {
        let waits = matches!(pod.phase, PodPhase::Waiting | PodPhase::Unschedulable { .. });
        waits && pod.role == PodRole::Workload && pod.deleting_since.is_none()
    })
}

/// Returns whether some offering fits the pod on an empty node, regardless of stock, quotas and limits.
pub(super) fn is_sold(scene: &Scene<'_>, pod: &Pod) -> bool {
    let catalogue = scene.cluster.cloud.catalogue();
    scene.cluster.view().pools.values().any(|pool| takes(scene, pool, &catalogue, pod).next().is_some())
}

/// Returns whether the pod could have a node, together with the other pods without which it cannot start: enough nodes of one
/// offering are in stock now and within quota and the limits of their pool. Pods of a gang are all alike.
pub(super) fn can_be_had(scene: &Scene<'_>, pod: &Pod) -> bool {
    let catalogue = scene.cluster.cloud.catalogue();
    let Some(pods) = starting_with(scene, pod) else { return false };
    scene.cluster.view().pools.values().any(|pool| {
        let held = pool_limits::held(scene, pool);
        let buyable = takes(scene, pool, &catalogue, pod).filter(|offering| {
            let kind = &catalogue.types()[&offering.id.instance_type];
            let each = count(&pod.spec.requests, &without_daemons(scene, &kind.allocatable));
            if each == 0 {
                return false;
            }
            let nodes = pods.div_ceil(each);
            let price = offering.price.known().unwrap_or_default();
            let with_all = (0..nodes).fold(held.clone(), |held, _| held.with(price, &kind.allocatable));
            with_all.passed(pool).is_none() && scene.cluster.cloud.has(&offering.id, nodes)
        });
        leaves_choice(pool, &catalogue, &buyable.collect::<Vec<_>>())
    })
}

/// Returns the number of waiting pods that start together with this one, itself included; `None` if its gang has too few pods.
fn starting_with(scene: &Scene<'_>, pod: &Pod) -> Option<u64> {
    let all = scene.cluster.view();
    let Some(key) = pod.group_key() else { return Some(1) };
    let least = all.pod_group(&key)?.min_count.map_or(1, u64::from);
    let bound = all.pods.of_group(&key).filter(|pod| matches!(pod.phase, PodPhase::Bound { .. })).count();
    let is_startable = all.pods.of_group(&key).count() as u64 >= least;
    is_startable.then(|| least.saturating_sub(bound as u64).max(1))
}

/// Returns how many pods with these requests fit into a room.
pub(super) fn count(requests: &ResourceList, room: &ResourceList) -> u64 {
    requests.iter().map(|(name, amount)| room.get(name.as_str()) / amount).min().unwrap_or(u64::MAX)
}

/// Returns whether these offerings leave the choice that `minValues` of a pool asks for. A launch names one capacity type.
fn leaves_choice(pool: &Pool, catalogue: &Catalogue, offerings: &[&Offering]) -> bool {
    let capacity_types: BTreeSet<CapacityType> = offerings.iter().map(|one| one.id.capacity_type).collect();
    capacity_types.into_iter().any(|capacity| {
        let ids = offerings.iter().map(|one| &one.id).filter(|id| id.capacity_type == capacity);
        capacity == CapacityType::Reserved || lacking(pool, catalogue, ids).is_none()
    })
}

/// Returns a label of which these offerings have fewer values than `minValues` of their pool asks for, and the number of its values.
pub(super) fn lacking<'a>(
    pool: &Pool,
    catalogue: &Catalogue,
    ids: impl Iterator<Item = &'a OfferingId>,
) -> Option<(String, usize)> {
    let labels: Vec<_> =
        ids.filter_map(|id| catalogue.offering(id)).map(|one| labels_of(pool, catalogue, one)).collect();
    pool.min_values.iter().find_map(|(key, least)| {
        let values: BTreeSet<&String> = labels.iter().filter_map(|labels| labels.get(key)).collect();
        (values.len() < *least as usize).then(|| (key.clone(), values.len()))
    })
}

/// Returns the resources of a new node of this offering, if the pod fits into it and the pool would buy it.
pub(super) fn room_for(scene: &Scene<'_>, pool: &Pool, id: &OfferingId, pod: &Pod) -> Option<ResourceList> {
    let catalogue = scene.cluster.cloud.catalogue();
    let offering = takes(scene, pool, &catalogue, pod).find(|offering| offering.id == *id)?;
    let room = &catalogue.types()[&offering.id.instance_type].allocatable;
    pod.spec.requests.fits(&without_daemons(scene, room)).then(|| room.clone())
}

/// Returns whether no rule about other pods applies to a pod. This second opinion knows no such rules.
pub(super) fn is_alone(pod: &Pod) -> bool {
    pod.spec.spreads.is_empty() && pod.spec.affinity.is_empty()
}

/// Returns the room that the pods of all DaemonSets would leave, wherever they may run.
fn without_daemons(scene: &Scene<'_>, room: &ResourceList) -> ResourceList {
    let mut left = room.clone();
    for set in scene.cluster.daemons() {
        left.saturating_sub(&set.spec.requests);
    }
    left
}

/// Returns the offerings of a pool that fit a pod on an empty node.
fn takes<'a>(
    scene: &'a Scene<'_>,
    pool: &'a Pool,
    catalogue: &'a Catalogue,
    pod: &'a Pod,
) -> impl Iterator<Item = &'a Offering> {
    let zone = scene.cluster.zone_of_volume(&pod.key);
    catalogue.offerings().iter().filter(move |offering| {
        let kind = &catalogue.types()[&offering.id.instance_type];
        let labels = labels_of(pool, catalogue, offering);
        offering.price.known().is_some()
            && pool.problem.is_none()
            && !pool.deleting
            && pool.replicas.is_none()
            && zone.is_none_or(|zone| zone == offering.id.zone.as_str())
            && pool.requirements.iter().all(|one| rules::matches(one, &labels))
            && pod.spec.unmodelled.is_empty()
            && pod.spec.requests.fits(&kind.allocatable)
            && rules::admits(&pod.spec, &labels, &pool.taints).is_ok()
    })
}

fn labels_of(pool: &Pool, catalogue: &Catalogue, offering: &Offering) -> BTreeMap<String, String> {
    let PoolName(name) = &pool.name;
    let mut all = catalogue.node_labels(offering);
    all.extend(pool.labels.clone());
    all.insert(NODEPOOL_LABEL.to_owned(), name.clone());
    all.insert(labels::HOSTNAME.to_owned(), "a-new-one".to_owned());
    all
}
