//! What a plan from files assumes about claims and StorageClasses that the files do not have. A cluster most likely has them, and
//! its usual class waits for the pod (`WaitForFirstConsumer`), so the volume is created where the pod runs.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_core::{ObjectKey, PodVolume, Snapshot, StorageClass, VolumeClaim, VolumeShape};

/// The driver of assumed classes. No limit of nodes is known for it.
const PROVISIONER: &str = "assumed";
/// The name of the assumed default class.
const DEFAULT: &str = "default";
/// The name of the assumed class of claims that the files lack. The files' own default class may bind at once, or only in some zones.
const OF_MISSING: &str = "assumed";

/// Adds the claims and classes that waiting pods need and the files lack, with a note for each. `left_out` are the objects of the
/// files that cannot be read.
pub fn assume(snapshot: &mut Snapshot, left_out: &BTreeSet<String>, notes: &mut Vec<String>) {
    let whereabouts = |object: &str| {
        if left_out.contains(object) {
            "is left out, because it cannot be read"
        } else {
            "is not among the files"
        }
    };
    let missing: BTreeSet<ObjectKey> = snapshot
        .pods
        .unbound()
        .flat_map(|pod| {
            let claims = pod.volumes.iter().filter_map(|volume| match volume {
                PodVolume::Claim { name, ephemeral: false } => Some(name),
                _ => None,
            });
            claims.map(|name| ObjectKey::new(pod.key.namespace(), name.clone()))
        })
        .filter(|key| !snapshot.volume_claims.contains_key(key))
        .collect();
    let has_default = snapshot.storage_classes.values().any(|class| class.default_since.is_some());
    if has_default && !missing.is_empty() && !snapshot.storage_classes.contains_key(OF_MISSING) {
        snapshot.storage_classes.insert(OF_MISSING.to_owned(), Arc::new(assumed(OF_MISSING, false)));
    }
    for key in missing {
        let is_where = whereabouts(&format!("PersistentVolumeClaim {key}"));
        notes.push(format!(
            "PersistentVolumeClaim {key} {is_where}; it counts as one whose volume can be created in any zone"
        ));
        let claim = VolumeClaim {
            key: key.clone(),
            class: has_default.then(|| OF_MISSING.to_owned()),
            volume: None,
            bound: false,
            lost: false,
            selected_node: None,
            shape: VolumeShape::default(),
            selector: Vec::new(),
            ephemeral_for: None,
            deleting: false,
            over_quota: None,
        };
        snapshot.volume_claims.insert(key, Arc::new(claim));
    }
    let open = || {
        snapshot
            .volume_claims
            .values()
            .filter(|claim| !claim.bound && claim.volume.is_none() && !claim.deleting)
    };
    let named: BTreeSet<String> = open()
        .filter_map(|claim| claim.class.clone())
        .filter(|class| !class.is_empty() && !snapshot.storage_classes.contains_key(class))
        .collect();
    let wants_default = !has_default && open().any(|claim| claim.class.is_none());
    for name in named {
        let is_where = whereabouts(&format!("StorageClass {name}"));
        notes.push(format!(
            "StorageClass `{name}` {is_where}; it counts as one that waits for the pod (WaitForFirstConsumer)"
        ));
        snapshot.storage_classes.insert(name.clone(), Arc::new(assumed(&name, false)));
    }
    if wants_default {
        let is_lost = left_out.iter().any(|object| object.starts_with("StorageClass "));
        let those = if is_lost { "those that can be read" } else { "the files" };
        notes.push(format!(
            "no default StorageClass is among {those}; one counts that waits for the pod (WaitForFirstConsumer)"
        ));
        snapshot.storage_classes.insert(DEFAULT.to_owned(), Arc::new(assumed(DEFAULT, true)));
    }
}

/// Returns a class that waits for the pod, and allows all zones.
fn assumed(name: &str, is_default: bool) -> StorageClass {
    StorageClass {
        name: name.to_owned(),
        provisioner: Some(PROVISIONER.to_owned()),
        waits_for_pod: true,
        allowed: None,
        default_since: is_default.then_some(Timestamp::UNIX_EPOCH),
    }
}
