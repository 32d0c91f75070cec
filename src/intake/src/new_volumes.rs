//! What CSIDrivers say of volumes that are still to be made. It is not read, so notes name it where it may change a plan.

use std::collections::BTreeMap;

use k8s_openapi::api::storage::v1 as storage;
use poolwright_core::rules::is_unattached;
use poolwright_core::{ObjectKey, Pod, PodPhase, PodVolume, Snapshot, StorageClass, VolumeClaim};

use crate::error::object_name;

/// A volume that is made when its first pod has a node.
pub(crate) struct NewVolume<'m> {
    pub claim: &'m VolumeClaim,
    pub class: &'m StorageClass,
    /// How many pods use it.
    pub users: usize,
}

impl NewVolume<'_> {
    fn is_of(&self, driver: &str) -> bool {
        self.class.provisioner.as_deref() == Some(driver)
    }

    /// Returns whether pods share it, and one node at a time may attach it.
    fn gathers_pods(&self) -> bool {
        self.claim.is_for_one_node() && self.users > 1
    }
}

/// Returns the volumes that drivers make for pods.
pub(crate) fn new_volumes<'m>(
    pods: impl Iterator<Item = &'m Pod>,
    claims: impl Iterator<Item = &'m VolumeClaim>,
    classes: impl Iterator<Item = &'m StorageClass> + Clone,
) -> Vec<NewVolume<'m>> {
    let mut users: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for pod in pods.filter(|pod| pod.phase != PodPhase::Finished) {
        for volume in &pod.volumes {
            if let PodVolume::Claim { name, .. } = volume {
                *users.entry(ObjectKey::new(pod.key.namespace(), name)).or_default() += 1;
            }
        }
    }
    let usual = StorageClass::default_of(classes.clone());
    let is_new = |claim: &&VolumeClaim| {
        !claim.bound && claim.volume.is_none() && claim.selected_node.is_none() && claim.over_quota.is_none()
    };
    let volume = |claim: &'m VolumeClaim| {
        let VolumeClaim { key, class, .. } = claim;
        let class = match class {
            Some(name) => classes.clone().find(|class| class.name == *name),
            None => usual,
        };
        Some(NewVolume { claim, class: class?, users: users.get(key).copied()? })
    };
    claims.filter(is_new).filter_map(volume).collect()
}

/// What a CSIDriver says of new volumes.
pub(crate) struct Driver<'m> {
    pub name: &'m str,
    /// Whether its volumes are not attached to nodes (`attachRequired: false`).
    pub unattached: bool,
    /// Whether the scheduler looks for nodes with room for its volumes (`storageCapacity: true`).
    pub counts_room: bool,
}

impl Driver<'_> {
    /// Returns a note for each field that may change a plan for pods with these volumes.
    pub fn unread(&self, volumes: &[NewVolume<'_>]) -> Vec<String> {
        let name = self.name;
        let object = object_name("CSIDriver", None, Some(name));
        let its = || volumes.iter().filter(move |volume| volume.is_of(name));
        let mut notes = Vec::new();
        if self.unattached && !is_unattached(name) && its().any(NewVolume::gathers_pods) {
            notes.push(format!(
                "{object}: spec.attachRequired is not read, so pods that share a new ReadWriteOnce volume of this driver get one node; if \
                 several nodes may mount it, ask for ReadWriteMany in the PersistentVolumeClaim"
            ));
        }
        if self.counts_room && its().any(|volume| volume.class.waits_for_pod) {
            notes.push(format!(
                "{object}: spec.storageCapacity and the CSIStorageCapacities are not read, so each node counts as having room for new \
                 volumes of this driver; the scheduler may refuse nodes of the plan"
            ));
        }
        notes
    }
}

/// Returns a note for each field of a cluster's CSIDrivers that may change a plan and is not read. `None` stands for CSIDrivers that
/// may not be listed: a note says so if pods wait for a volume of any driver.
pub fn unread_of_drivers(drivers: Option<&[storage::CSIDriver]>, snapshot: &Snapshot) -> Vec<String> {
    let volumes = new_volumes(
        snapshot.pods.values().map(|pod| &**pod),
        snapshot.volume_claims.values().map(|claim| &**claim),
        snapshot.storage_classes.values().map(|class| &**class),
    );
    let Some(drivers) = drivers else {
        let is_made = volumes.iter().any(|volume| volume.class.provisioner.is_some());
        let told = "you may not list csidrivers, so the plan does not tell what else they say of new volumes; allow `list` to see it";
        return is_made.then(|| told.to_owned()).into_iter().collect();
    };
    let driver = |object: &storage::CSIDriver| {
        let said = Driver {
            name: object.metadata.name.as_deref().unwrap_or_default(),
            unattached: object.spec.attach_required == Some(false),
            counts_room: object.spec.storage_capacity == Some(true),
        };
        said.unread(&volumes)
    };
    drivers.iter().flat_map(driver).collect()
}
