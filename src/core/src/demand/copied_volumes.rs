//! Volumes of expected pods: volumes that all pods of an owner share, and volume claims that are made for each pod.

use crate::model::{ObjectKey, Pod, PodKey, PodVolume, Snapshot, Uid, VolumeClaim};

/// What a copy of a pod uses instead of one of its volumes.
pub(crate) struct CopiedVolume {
    pub volume: PodVolume,
    /// The claim that will be made for it, if one is.
    pub claim: Option<VolumeClaim>,
}

/// The volumes of a copy of a pod, under another key; `None` where nobody can know what they will be. A claim that all share
/// must be bound: as long as it is not, it is bound where the first pod goes. Of a claim that each pod gets for itself (an
/// ephemeral volume, or a template of a StatefulSet, for pods of which `of_set` is true), the class must make volumes
/// where the pods go.
pub(crate) fn copied(
    snapshot: &Snapshot,
    pod: &Pod,
    of_set: bool,
    (to, uid): (&PodKey, &Uid),
) -> Option<Vec<CopiedVolume>> {
    pod.volumes.iter().map(|volume| one(snapshot, pod, volume, of_set, (to, uid))).collect()
}

fn one(
    snapshot: &Snapshot,
    pod: &Pod,
    volume: &PodVolume,
    of_set: bool,
    (to, uid): (&PodKey, &Uid),
) -> Option<CopiedVolume> {
    let PodVolume::Claim { name, ephemeral } = volume else { return None };
    let claim = snapshot.volume_claims.get(&ObjectKey::new(pod.key.namespace(), name))?;
    if claim.deleting || claim.lost {
        return None;
    }
    let name = if *ephemeral {
        format!("{}-{}", to.name(), name.strip_prefix(&format!("{}-", pod.key.name()))?)
    } else if let Some(template) = name.strip_suffix(&format!("-{}", pod.key.name())).filter(|_| of_set) {
        format!("{template}-{}", to.name())
    } else {
        let shared = claim.bound && !claim.shape.access_modes.contains("ReadWriteOncePod");
        return shared.then(|| CopiedVolume { volume: volume.clone(), claim: None });
    };
    let class = snapshot.storage_classes.get(claim.class.as_ref()?)?;
    if !class.waits_for_pod || class.provisioner.is_none() || !claim.selector.is_empty() {
        return None;
    }
    let made = VolumeClaim {
        key: ObjectKey::new(to.namespace(), &name),
        volume: None,
        bound: false,
        selected_node: None,
        made_for: ephemeral.then(|| uid.clone()),
        ..claim.as_ref().clone()
    };
    Some(CopiedVolume { volume: PodVolume::Claim { name, ephemeral: *ephemeral }, claim: Some(made) })
}
