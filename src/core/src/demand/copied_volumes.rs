//! Volumes of expected pods: shared volumes, and volume claims that are created for each pod.

use crate::model::{ObjectKey, Pod, PodKey, PodVolume, Snapshot, Uid, VolumeClaim};

/// The volume that an expected pod uses in place of the volume of its example.
pub(crate) struct CopiedVolume {
    pub volume: PodVolume,
    /// The volume claim that will be created, if any.
    pub claim: Option<VolumeClaim>,
}

/// Returns the volumes of an expected pod that is a copy of `pod`; `None` if they cannot be known. A claim that all pods share
/// must be bound, because an unbound claim would be bound where the first pod goes. If each pod has a claim of its own (an
/// ephemeral volume, or a template of a StatefulSet if `of_set`), the StorageClass must provision volumes where the pods go.
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
        ephemeral_for: ephemeral.then(|| uid.clone()),
        ..claim.as_ref().clone()
    };
    Some(CopiedVolume { volume: PodVolume::Claim { name, ephemeral: *ephemeral }, claim: Some(made) })
}
