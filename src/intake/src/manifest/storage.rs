//! What CSIDrivers and CSIStorageCapacities say of volumes that are still to be made. It is not read, so notes name it where it may
//! change a plan.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::rules::is_unattached;
use poolwright_core::{ObjectKey, PodPhase, PodVolume, StorageClass, VolumeClaim};

use super::Manifest;
use super::objects::{Object, group, meta};

/// A volume that is made when its first pod has a node.
struct NewVolume<'m> {
    claim: &'m VolumeClaim,
    class: &'m StorageClass,
    /// How many pods use it.
    users: usize,
}

impl NewVolume<'_> {
    fn is_of(&self, driver: &str) -> bool {
        self.class.provisioner.as_deref() == Some(driver)
    }
}

/// Returns a note for each object that may change the plan and is not read.
pub(super) fn unread(objects: &[Object], manifest: &Manifest) -> Vec<String> {
    let of = |kind: &'static str| {
        objects
            .iter()
            .filter(move |object| object.kind == kind && group(&object.api_version) == "storage.k8s.io")
    };
    let mut notes = Vec::new();
    if of("CSIDriver").chain(of("CSIStorageCapacity")).next().is_none() {
        return notes;
    }
    let volumes = new_volumes(manifest);
    let mut drivers = BTreeSet::new();
    for object in of("CSIDriver") {
        let (driver, spec) = (meta(&object.value, "name").unwrap_or_default(), &object.value["spec"]);
        drivers.insert(driver);
        let its = || volumes.iter().filter(move |volume| volume.is_of(driver));
        let is_shared = |volume: &NewVolume<'_>| volume.claim.is_for_one_node() && volume.users > 1;
        if spec["attachRequired"] == false && !is_unattached(driver) && its().any(is_shared) {
            notes.push(format!(
                "{}: spec.attachRequired is not read, so pods that share a new ReadWriteOnce volume of this driver get one node; if \
                 several nodes may mount it, ask for ReadWriteMany in the PersistentVolumeClaim",
                object.name()
            ));
        }
        if spec["storageCapacity"] == true && its().any(|volume| volume.class.waits_for_pod) {
            notes.push(format!(
                "{}: spec.storageCapacity and the CSIStorageCapacities are not read, so each node counts as having room for new volumes \
                 of this driver; the scheduler may refuse nodes of the plan",
                object.name()
            ));
        }
    }
    let mut told = BTreeSet::new();
    for object in of("CSIStorageCapacity") {
        let class = object.value["storageClassName"].as_str().unwrap_or_default();
        // What its driver says decides whether the scheduler reads it.
        let is_open = |volume: &NewVolume<'_>| {
            let driver = volume.class.provisioner.as_deref().unwrap_or_default();
            volume.class.name == class && volume.class.waits_for_pod && !drivers.contains(driver)
        };
        if volumes.iter().any(is_open) && told.insert(class) {
            notes.push(format!(
                "{}: it is not read, so each node counts as having room for new volumes of StorageClass `{class}`; the scheduler may \
                 refuse nodes of the plan",
                object.name()
            ));
        }
    }
    notes
}

/// Returns the volumes that drivers make for pods of the manifest.
fn new_volumes<'m>(manifest: &'m Manifest) -> Vec<NewVolume<'m>> {
    let mut users: BTreeMap<ObjectKey, usize> = BTreeMap::new();
    for pod in manifest.pods.iter().filter(|pod| pod.phase != PodPhase::Finished) {
        for volume in &pod.volumes {
            if let PodVolume::Claim { name, .. } = volume {
                *users.entry(ObjectKey::new(pod.key.namespace(), name)).or_default() += 1;
            }
        }
    }
    let classes = &manifest.storage_classes;
    let usual = StorageClass::default_of(classes.iter());
    let is_new = |claim: &&VolumeClaim| {
        !claim.bound && claim.volume.is_none() && claim.selected_node.is_none() && claim.over_quota.is_none()
    };
    let claims = manifest.volume_claims.iter().chain(&manifest.made_claims).filter(is_new);
    let volume = |claim: &'m VolumeClaim| {
        let VolumeClaim { key, class, .. } = claim;
        let class = match class {
            Some(name) => classes.iter().find(|class| class.name == *name),
            None => usual,
        };
        Some(NewVolume { claim, class: class?, users: users.get(key).copied()? })
    };
    claims.filter_map(volume).collect()
}
