//! The volume binder: which volume an unbound PersistentVolumeClaim gets, with its first pod or at once.
//!
//! Facts: `findMatchingVolumes` and `checkVolumeProvisions` (volumebinding/binder.go), `FindMatchingVolume`
//! (component-helpers/storage/volume/pv_helpers.go), Kubernetes 1.36. Difference: it takes all claims of a pod in their order, not
//! the smallest first.

use std::collections::BTreeSet;

use poolwright_core::rules::{Labels, check_volumes, matches};
use poolwright_core::{ObjectKey, Pod, PodVolume, StorageClass, Volume, VolumeClaim};

use super::cluster::{Around, Cluster, NodeLabels};

/// Where a claim gets its volume from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// This PersistentVolume.
    Volume(String),
    /// The provisioner of this StorageClass.
    Class(String),
}

/// An unbound claim, with what it may be bound to.
#[derive(Clone, Debug)]
pub(super) struct Unbound<'a> {
    /// The free volumes that fit it, the smallest first; or only the one that is kept for it.
    free: Vec<&'a Volume>,
    /// The class whose provisioner can create a volume for it.
    class: Option<&'a StorageClass>,
    /// Whether a volume is kept for it.
    is_kept: bool,
}

impl<'a> Unbound<'a> {
    /// Collects what a claim may be bound to.
    pub fn new(around: &'a Around, claim: &VolumeClaim) -> Self {
        let all = around.volumes.values().map(AsRef::as_ref);
        let mut free: Vec<&'a Volume> = all.filter(|volume: &&'a Volume| holds(volume, claim)).collect();
        if let Some(kept) = free.iter().find(|volume| volume.claim.as_ref() == Some(&claim.key)) {
            return Self { free: vec![*kept], class: None, is_kept: true };
        }
        free.retain(|volume| is_free_for(volume, claim));
        free.sort_by_key(|volume| (volume.shape.size, &volume.name));
        let class = claim.class.as_ref().and_then(|name| around.storage_classes.get(name));
        let class = class.map(AsRef::as_ref).filter(|class: &&'a StorageClass| class.provisioner.is_some());
        Self { free, class, is_kept: false }
    }

    /// Returns what the claim gets on a node with these labels, besides these volumes.
    pub fn on(&self, labels: &impl Labels, taken: &BTreeSet<String>) -> Option<Supply> {
        let is_near = |volume: &&&Volume| {
            !taken.contains(&volume.name) && check_volumes(&volume.topology, labels).is_ok()
        };
        if let Some(volume) = self.free.iter().find(is_near) {
            return Some(Supply::Volume(volume.name.clone()));
        }
        let class = self.class?;
        let allowed = class.allowed.as_ref();
        let is_allowed =
            allowed.is_none_or(|terms| check_volumes(std::slice::from_ref(terms), labels).is_ok());
        is_allowed.then(|| Supply::Class(class.name.clone()))
    }

    /// Returns what the claim gets if no pod decides where.
    fn anywhere(&self) -> Option<Supply> {
        let volume = self.free.first().map(|volume| Supply::Volume(volume.name.clone()));
        volume.or_else(|| Some(Supply::Class(self.class?.name.clone())))
    }
}

/// Returns whether a claim is bound where its first pod goes (`WaitForFirstConsumer`).
pub(super) fn waits_for_pod(around: &Around, claim: &VolumeClaim) -> bool {
    let class = claim.class.as_ref().and_then(|name| around.storage_classes.get(name));
    class.is_some_and(|class| class.waits_for_pod)
}

/// Returns whether a volume is as large as a claim asks, and of its mode.
fn holds(volume: &Volume, claim: &VolumeClaim) -> bool {
    let (has, wants) = (&volume.shape, &claim.shape);
    !volume.deleting
        && has.size >= wants.size
        && has.block == wants.block
        && has.attributes_class == wants.attributes_class
}

/// Returns whether a claim may choose a volume that is kept for no other.
fn is_free_for(volume: &Volume, claim: &VolumeClaim) -> bool {
    volume.claim.is_none()
        && volume.available
        && volume.class == claim.class.as_deref().unwrap_or_default()
        && claim.shape.access_modes.is_subset(&volume.shape.access_modes)
        && claim.selector.iter().all(|wanted| matches(wanted, &volume.labels))
}

impl Cluster {
    /// Returns what the unbound claims of a pod get if it goes to this node.
    pub fn supplies(&self, pod: &Pod, node: &str) -> Vec<(ObjectKey, Supply)> {
        let Some(at) = self.node(node) else { return Vec::new() };
        let labels = NodeLabels(&at.node);
        let (mut all, mut taken) = (Vec::new(), BTreeSet::new());
        for volume in &pod.volumes {
            let PodVolume::Claim { name, .. } = volume else { continue };
            let key = ObjectKey::new(pod.key.namespace(), name);
            let claim = self.around.volume_claims.get(&key).filter(|claim| !claim.bound);
            let Some(claim) = claim else { continue };
            let Some(supply) = Unbound::new(&self.around, claim).on(&labels, &taken) else { continue };
            if let Supply::Volume(name) = &supply {
                taken.insert(name.clone());
            }
            all.push((key, supply));
        }
        all
    }

    /// Returns what an unbound claim gets at once, without a pod; `None` if it has to wait.
    pub fn supply_at_once(&self, claim: &VolumeClaim) -> Option<Supply> {
        if let Some(name) = &claim.volume {
            let named = self.around.volumes.get(name)?;
            let is_its = named.claim.as_ref().is_none_or(|kept| *kept == claim.key);
            return is_its.then(|| Supply::Volume(name.clone()));
        }
        let unbound = Unbound::new(&self.around, claim);
        // A volume that is kept for the claim needs no pod.
        if !unbound.is_kept && waits_for_pod(&self.around, claim) {
            return None;
        }
        unbound.anywhere()
    }
}
