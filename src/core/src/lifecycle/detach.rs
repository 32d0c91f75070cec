//! Volumes of the work that was on a node: detached by those whose business it is, before its instance ends.
//!
//! Kubernetes attaches a volume elsewhere only when it is detached, or six minutes after its node is gone. So an instance that ended
//! sooner would hold up the very pods that were moved.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use poolwright_terms::{ConditionStatus, ConditionType, Reason};

use crate::lifecycle::context::{LifecycleContext, after, is, is_not};
use crate::model::{Claim, ObjectKey, Pod, PodVolume};

/// For how long detaching is waited for: after as long Kubernetes itself takes a volume away from a node
/// (kube-controller-manager, `maxWaitForUnmountDuration`).
const PATIENCE: SignedDuration = SignedDuration::from_mins(6);

/// Whether a volume is still waited for.
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

/// Volumes of the pods that are still on a node: nobody waits for those, nor for what they use.
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
