//! Offerings that fit a pod, each judged by itself. This second opinion on the planner shares no code with it.

use std::collections::BTreeMap;

use poolwright_catalog::{Catalogue, Offering, ResourceList};
use poolwright_core::rules;
use poolwright_core::{Pod, PodPhase, PodRole, Pool, PoolName};
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels;

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

/// Returns whether such an offering is in stock now and within quota and the limits of its pool.
pub(super) fn can_be_had(scene: &Scene<'_>, pod: &Pod) -> bool {
    let catalogue = scene.cluster.cloud.catalogue();
    scene.cluster.view().pools.values().any(|pool| {
        let held = pool_limits::held(scene, pool);
        takes(scene, pool, &catalogue, pod).any(|offering| {
            let kind = &catalogue.types()[&offering.id.instance_type];
            if !pod.spec.requests.fits(&without_daemons(scene, &kind.allocatable)) {
                return false;
            }
            let price = offering.price.known().unwrap_or_default();
            held.clone().with(price, &kind.allocatable).passed(pool).is_none()
                && scene.cluster.cloud.has(&offering.id)
        })
    })
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
