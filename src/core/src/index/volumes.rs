//! PersistentVolumeClaims, PersistentVolumes, StorageClasses, VolumeAttachments and CSINodes in the index.

use crate::index::{Change, ClusterIndex, put, reset};
use crate::model::{Attachment, NodeDrivers, ObjectKey, StorageClass, Volume, VolumeClaim};

impl ClusterIndex {
    /// Adds or replaces a PersistentVolumeClaim.
    pub fn apply_volume_claim(&mut self, claim: VolumeClaim) -> Change {
        put(&mut self.state.volume_claims, claim.key.clone(), claim)
    }

    /// Removes a PersistentVolumeClaim.
    pub fn delete_volume_claim(&mut self, key: &ObjectKey) -> Change {
        self.state.volume_claims.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all PersistentVolumeClaims.
    pub fn reset_volume_claims(&mut self, all: impl IntoIterator<Item = VolumeClaim>) -> Change {
        reset(&mut self.state.volume_claims, all, |claim| claim.key.clone())
    }

    /// Adds or replaces a PersistentVolume.
    pub fn apply_volume(&mut self, volume: Volume) -> Change {
        put(&mut self.state.volumes, volume.name.clone(), volume)
    }

    /// Removes a PersistentVolume.
    pub fn delete_volume(&mut self, key: &str) -> Change {
        self.state.volumes.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all PersistentVolumes.
    pub fn reset_volumes(&mut self, all: impl IntoIterator<Item = Volume>) -> Change {
        reset(&mut self.state.volumes, all, |volume| volume.name.clone())
    }

    /// Adds or replaces a StorageClass.
    pub fn apply_storage_class(&mut self, class: StorageClass) -> Change {
        put(&mut self.state.storage_classes, class.name.clone(), class)
    }

    /// Removes a StorageClass.
    pub fn delete_storage_class(&mut self, key: &str) -> Change {
        self.state.storage_classes.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all StorageClasses.
    pub fn reset_storage_classes(&mut self, all: impl IntoIterator<Item = StorageClass>) -> Change {
        reset(&mut self.state.storage_classes, all, |class| class.name.clone())
    }

    /// Adds or replaces a VolumeAttachment.
    pub fn apply_attachment(&mut self, attachment: Attachment) -> Change {
        put(&mut self.state.attachments, attachment.name.clone(), attachment).min(Change::Life)
    }

    /// Removes a VolumeAttachment.
    pub fn delete_attachment(&mut self, key: &str) -> Change {
        self.state.attachments.remove(key).map_or(Change::None, |_| Change::Life)
    }

    /// Replaces all VolumeAttachments.
    pub fn reset_attachments(&mut self, all: impl IntoIterator<Item = Attachment>) -> Change {
        reset(&mut self.state.attachments, all, |attachment| attachment.name.clone()).min(Change::Life)
    }

    /// Adds or replaces a CSINode.
    pub fn apply_node_drivers(&mut self, drivers: NodeDrivers) -> Change {
        put(&mut self.state.node_drivers, drivers.node.clone(), drivers)
    }

    /// Removes a CSINode.
    pub fn delete_node_drivers(&mut self, key: &str) -> Change {
        self.state.node_drivers.remove(key).map_or(Change::None, |_| Change::Room)
    }

    /// Replaces all CSINodes.
    pub fn reset_all_node_drivers(&mut self, all: impl IntoIterator<Item = NodeDrivers>) -> Change {
        reset(&mut self.state.node_drivers, all, |drivers| drivers.node.clone())
    }
}
