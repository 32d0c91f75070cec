//! What earlier plans decided about pods that still wait.

use std::collections::BTreeMap;

use crate::model::{ClaimName, Pod, PodKey, Snapshot};

/// The claims' planned pods, by pod.
pub(crate) fn planned_pods(snapshot: &Snapshot) -> BTreeMap<&PodKey, &ClaimName> {
    let mut planned = BTreeMap::new();
    for claim in snapshot.claims.values().filter(|claim| claim.deleting_since.is_none()) {
        planned.extend(claim.planned_pods.iter().map(|pod| (pod, &claim.name)));
    }
    planned
}

/// Where an earlier plan put the pod: the name of a claim, or of a node without one. What the last plan said counts more
/// than what a claim was bought for, and that more than the tolerations it was given: they say where a plan put it that
/// nobody remembers.
pub(crate) fn planned_at<'a>(
    snapshot: &'a Snapshot,
    planned: &BTreeMap<&PodKey, &'a ClaimName>,
    pod: &'a Pod,
) -> Option<&'a str> {
    match snapshot.nominations.get(&pod.key) {
        Some((uid, target)) if *uid == pod.uid => Some(target),
        _ => {
            planned.get(&pod.key).copied().or_else(|| reserved_for(snapshot, pod)).map(|name| name.0.as_str())
        }
    }
}

/// The last claim that let the pod onto its reserved node, of those that are there.
fn reserved_for<'a>(snapshot: &Snapshot, pod: &'a Pod) -> Option<&'a ClaimName> {
    let stays =
        |name: &&ClaimName| snapshot.claims.get(*name).is_some_and(|claim| claim.deleting_since.is_none());
    pod.reserved_for.iter().rev().find(stays)
}
