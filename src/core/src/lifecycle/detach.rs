//! Waits until the volumes of a drained node are detached before its instance is terminated.
//!
//! Kubernetes attaches a volume to another node only after it is detached, or six minutes after its node is gone. So terminating
//! the instance earlier would delay the pods that moved.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::lifecycle::context::{LifecycleContext, after, is, is_not};
use crate::model::{Claim, ObjectKey, Pod, PodVolume};

/// The time to wait for volumes to be detached. After that time, Kubernetes itself force-detaches a volume
/// (kube-controller-manager, `maxWaitForUnmountDuration`).
const PATIENCE: SignedDuration = SignedDuration::from_mins(6);

/// Returns whether to wait until a volume is detached.
pub(crate) fn waits(context: &mut LifecycleContext<'_>, claim: &Claim, node: &str) -> bool {
    let kept = of_pods(context, node);
    let attachments = context.snapshot.attachments.values().filter(|one| one.node == node);
    let attached: Vec<&str> = attachments
        .filter(|one| one.volume.as_ref().is_none_or(|volume| !kept.contains(volume.as_str())))
        .map(|one| one.volume.as_deref().unwrap_or(&one.name))
        .collect();
    let recorded = claim.conditions.get(&ConditionType::VolumesDetached);
    if attached.is_empty() {
        if recorded.is_some() {
            let message = format!("no volume is attached to node {node} any more");
            context.conditions(claim, [is(ConditionType::VolumesDetached, Reason::Detached, message)]);
        }
        return false;
    }
    let since =
        recorded.filter(|one| one.status == ConditionStatus::False).map_or(context.now, |one| one.since);
    let until = claim.ends_at().map_or(after(since, PATIENCE), |end| end.min(after(since, PATIENCE)));
    let shown = attached.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    let more = if attached.len() > 3 { ", ..." } else { "" };
    let what = format!("still attached to node {node}: {shown}{more}");
    let waits = !context.ended(until);
    let update = if waits {
        let message = format!("{what}; Poolwright waits for that until {until} at the latest");
        is_not(ConditionType::VolumesDetached, Reason::VolumesAttached, message)
    } else {
        let message = format!("{what}, for too long; its instance is terminated anyway");
        is_not(ConditionType::VolumesDetached, Reason::NotDetachedInTime, message)
    };
    context.conditions(claim, [update]);
    waits
}

/// Returns the volumes of pods that are still on a node. These volumes are not waited for.
fn of_pods<'a>(context: &LifecycleContext<'a>, node: &str) -> BTreeSet<&'a str> {
    let there = context.snapshot.pods.on_node(node);
    let pods = there.into_iter().flat_map(|there| &there.pods).map(AsRef::as_ref);
    pods.flat_map(|pod: &Pod| {
        pod.volumes.iter().filter_map(|volume| {
            let PodVolume::Claim { name, .. } = volume else { return None };
            let claim = context.snapshot.volume_claims.get(&ObjectKey::new(pod.key.namespace(), name))?;
            claim.volume.as_deref()
        })
    })
    .collect()
}
