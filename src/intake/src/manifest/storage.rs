//! Notes on the CSIDrivers and CSIStorageCapacities of manifests. They are not read, so notes name them where they may change a plan.

use std::collections::BTreeSet;

use super::Manifest;
use super::objects::{Object, group, meta};
use crate::new_volumes::{Driver, NewVolume, new_volumes};

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
    let claims = manifest.volume_claims.iter().chain(&manifest.made_claims);
    let volumes = new_volumes(manifest.pods.iter(), claims, manifest.storage_classes.iter());
    let mut drivers = BTreeSet::new();
    for object in of("CSIDriver") {
        let (name, spec) = (meta(&object.value, "name").unwrap_or_default(), &object.value["spec"]);
        drivers.insert(name);
        let said = Driver {
            name,
            unattached: spec["attachRequired"] == false,
            counts_room: spec["storageCapacity"] == true,
        };
        notes.extend(said.unread(&volumes));
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
