//! Nominations: chooses the waiting pods to nominate to a claim's node.

use crate::lifecycle::context::LifecycleContext;
use crate::model::{Claim, ObjectKey, Pod, Uid};

/// Returns the waiting pods that satisfy `these` and are not nominated to the claim's node yet.
pub(crate) fn to_nominate(
    context: &LifecycleContext<'_>,
    claim: &Claim,
    these: impl Fn(&Pod) -> bool,
) -> Vec<(ObjectKey, Uid)> {
    if context.node(claim).is_none_or(|node| node.deleting_since.is_some()) {
        return Vec::new();
    }
    nominable(context, claim)
        .filter(|pod| pod.nominated_node.is_none() || pod.nominated_node != claim.node_name)
        .filter(|pod| these(pod))
        .filter_map(|pod| Some((pod.key.existing()?.clone(), pod.uid.clone())))
        .collect()
}

/// Returns the waiting pods that are planned for the claim. Pods for which the scheduler preempts other pods on a node without a
/// claim are left out.
pub(crate) fn nominable<'s>(
    context: &'s LifecycleContext<'_>,
    claim: &'s Claim,
) -> impl Iterator<Item = &'s Pod> {
    let ours = |node: &String| context.snapshot.claims.named_node(node).is_some();
    let theirs = move |node: &String| context.snapshot.nodes.contains_key(node) && !ours(node);
    context
        .expected(claim)
        .iter()
        .copied()
        .filter(move |pod| !pod.nominated_node.as_ref().is_some_and(theirs))
}
