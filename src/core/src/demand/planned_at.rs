//! The place that an earlier plan gave to a pending pod.

use crate::model::{Claim, ClaimName, Pod, Snapshot};

/// Returns the place that an earlier plan gave to the pod: the name of a claim, or of a node without a claim. The last plan has
/// precedence, then the claims that list the pod, then the pod's tolerations for reserved nodes.
pub(crate) fn planned_at<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> Option<&'a str> {
    match snapshot.nominations.get(&pod.key) {
        Some((uid, target)) if *uid == pod.uid => Some(target),
        _ => {
            let planned = snapshot.claims.planned_for(&pod.key);
            planned.or_else(|| reserved_for(snapshot, pod)).map(|name| name.0.as_str())
        }
    }
}

/// Returns the last existing claim whose reserved node the pod tolerates and has room for it. Anybody can write such a toleration,
/// so a pod that does not fit there keeps no place, and no node.
fn reserved_for<'a>(snapshot: &Snapshot, pod: &'a Pod) -> Option<&'a ClaimName> {
    let stays = |name: &&ClaimName| {
        snapshot
            .claims
            .get(*name)
            .is_some_and(|claim| claim.deleting_since.is_none() && fits(snapshot, claim, pod))
    };
    pod.reserved_for.iter().rev().find(stays)
}

/// Returns whether the node of a claim has room for a pod beside those that are bound to it.
fn fits(snapshot: &Snapshot, claim: &Claim, pod: &Pod) -> bool {
    let there = claim.node_name.as_ref().and_then(|name| snapshot.pods.on_node(name));
    let mut requests = there.map(|there| there.requests.clone()).unwrap_or_default();
    requests.add(&pod.spec.requests);
    requests.fits(&claim.current_offering().allocatable)
}
