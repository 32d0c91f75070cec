//! The place that an earlier plan gave to a pending pod.

use crate::model::{ClaimName, Pod, Snapshot};

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

/// Returns the last existing claim whose reserved node the pod tolerates.
fn reserved_for<'a>(snapshot: &Snapshot, pod: &'a Pod) -> Option<&'a ClaimName> {
    let stays =
        |name: &&ClaimName| snapshot.claims.get(*name).is_some_and(|claim| claim.deleting_since.is_none());
    pod.reserved_for.iter().rev().find(stays)
}
