//! Where earlier plans put pods that still wait.

use crate::model::{ClaimName, Pod, Snapshot};

/// Where an earlier plan put the pod: the name of a claim, or of a node without one. The last plan counts most, then the pods that
/// a claim lists. The pod's tolerations count least: a plan gave them that nobody remembers.
pub(crate) fn planned_at<'a>(snapshot: &'a Snapshot, pod: &'a Pod) -> Option<&'a str> {
    match snapshot.nominations.get(&pod.key) {
        Some((uid, target)) if *uid == pod.uid => Some(target),
        _ => {
            let planned = snapshot.claims.planned_for(&pod.key);
            planned.or_else(|| reserved_for(snapshot, pod)).map(|name| name.0.as_str())
        }
    }
}

/// The last claim that let the pod onto its reserved node, of the claims that still exist.
fn reserved_for<'a>(snapshot: &Snapshot, pod: &'a Pod) -> Option<&'a ClaimName> {
    let stays =
        |name: &&ClaimName| snapshot.claims.get(*name).is_some_and(|claim| claim.deleting_since.is_none());
    pod.reserved_for.iter().rev().find(stays)
}
