//! The place that an earlier plan gave to a pending pod.

use crate::model::{Claim, ClaimName, Node, Pod, Snapshot};
use crate::rules;
use crate::rules::claim_node::{labels_and_taints, node_of};

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

/// Returns the last existing claim whose reserved node the pod tolerates and can run on. Anybody can write such a toleration, so a
/// pod that cannot run there keeps no place, and no node.
fn reserved_for<'a>(snapshot: &Snapshot, pod: &'a Pod) -> Option<&'a ClaimName> {
    let stays = |name: &&ClaimName| {
        snapshot
            .claims
            .get(*name)
            .is_some_and(|claim| claim.deleting_since.is_none() && can_run(snapshot, claim, pod))
    };
    pod.reserved_for.iter().rev().find(stays)
}

/// Returns whether the node of a claim has room for a pod beside those that are bound to it, and admits it by its labels and
/// taints. No plan has a place for a pod with a rule that Poolwright does not model.
fn can_run(snapshot: &Snapshot, claim: &Claim, pod: &Pod) -> bool {
    let node: Option<&Node> = node_of(snapshot, claim).map(AsRef::as_ref);
    let name = node.map(|node| node.name.as_str()).or(claim.node_name.as_deref());
    let there = name.and_then(|name| snapshot.pods.on_node(name));
    let mut requests = there.map(|there| there.requests.clone()).unwrap_or_default();
    requests.add(&pod.spec.requests);
    pod.spec.unmodelled.is_empty() && requests.fits(&claim.current_offering().allocatable) && {
        let (labels, taints) = labels_and_taints(snapshot, claim, node);
        rules::admits(&pod.spec, &labels, &taints).is_ok()
    }
}
