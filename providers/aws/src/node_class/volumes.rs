//! The disks of a node.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// Where it is attached: `/dev/xvda`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9/_-]+$"))]
    pub device_name: String,
    /// The volume.
    pub ebs: EbsVolume,
    /// Whether the kubelet keeps its files there, so that its size is what pods have as ephemeral storage. Where none is, the first
    /// disk of the image is.
    #[serde(default)]
    pub root_volume: bool,
}

/// A volume of EBS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.volumeSize) || has(self.snapshotID)")
        .message("a volume has a volumeSize or a snapshotID, or both"),
    validation = Rule::new("!has(self.iops) || self.volumeType in ['gp3', 'io1', 'io2']")
        .message("iops can be chosen for gp3, io1 and io2 alone"),
    validation = Rule::new("!(self.volumeType in ['io1', 'io2']) || has(self.iops)")
        .message("io1 and io2 need iops"),
    validation = Rule::new("!has(self.throughput) || self.volumeType == 'gp3'")
        .message("throughput can be chosen for gp3 alone"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encrypted) || self.encrypted")
        .message("a kmsKeyID encrypts a volume: remove it, or encrypted: false")
)]
pub struct EbsVolume {
    /// Its size: `100Gi`. That of the snapshot when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = r"^[1-9][0-9]{0,4}(Gi|G|Ti|T)$"))]
    pub volume_size: Option<String>,
    /// What kind of volume it is.
    #[serde(default)]
    pub volume_type: VolumeType,
    /// Operations a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,
    /// MiB a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput: Option<i32>,
    /// Whether it is encrypted. New volumes are when absent; one from a snapshot is as the snapshot is, or as the account says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The KMS key that encrypts it, by id, alias or ARN. The account's own for EBS when absent.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub kms_key_id: Option<String>,
    /// The snapshot that it begins as.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^snap-[0-9a-z]+$"))]
    pub snapshot_id: Option<String>,
    /// Whether it goes with the instance.
    #[serde(default = "yes")]
    pub delete_on_termination: bool,
}

fn yes() -> bool {
    true
}

impl EbsVolume {
    /// What EC2 is told about encryption: what is written, else yes for a new volume, else nothing.
    pub fn encryption(&self) -> Option<bool> {
        let asked = self.encrypted.or(self.kms_key_id.is_some().then_some(true));
        asked.or(self.snapshot_id.is_none().then_some(true))
    }
}

/// Kinds of EBS volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// General purpose.
    #[default]
    Gp3,
    /// General purpose, the older.
    Gp2,
    /// Provisioned operations.
    Io1,
    /// Provisioned operations, more durable.
    Io2,
    /// Throughput optimised disks.
    St1,
    /// Cold disks.
    Sc1,
    /// Magnetic.
    Standard,
}

/// What is done with the disks that some instance types bring along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// All of them are one RAID 0 for what containers and the kubelet write. It is lost with the instance.
    #[serde(rename = "RAID0")]
    Raid0,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_volumes_are_encrypted_unless_somebody_says_otherwise() {
        let volume = |fields: serde_json::Value| {
            serde_json::from_value::<EbsVolume>(fields).expect("a volume").encryption()
        };
        assert_eq!(volume(serde_json::json!({"volumeSize": "100Gi"})), Some(true));
        assert_eq!(volume(serde_json::json!({"volumeSize": "100Gi", "encrypted": false})), Some(false));
        assert_eq!(volume(serde_json::json!({"snapshotID": "snap-1"})), None, "as the snapshot is");
        assert_eq!(volume(serde_json::json!({"snapshotID": "snap-1", "kmsKeyID": "alias/x"})), Some(true));
    }
}
