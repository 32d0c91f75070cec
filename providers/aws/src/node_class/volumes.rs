//! The disks of nodes.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AmiFamily;

/// A disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockDeviceMapping {
    /// The device name: `/dev/xvda`.
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9/_-]+$"))]
    pub device_name: String,
    /// The EBS volume.
    pub ebs: EbsVolume,
    /// Whether the kubelet stores its files on this disk, so that its size is the ephemeral storage of pods. If no disk has this
    /// set, the image family decides: `/dev/xvda` with AL2023, `/dev/xvdb` with Bottlerocket, `/dev/sda1` or else `/dev/xvda` with
    /// Ubuntu, the last disk of the list with Custom. If the list lacks that disk, plans count 20 GiB. With `instanceStorePolicy`,
    /// this holds for types without local disks.
    #[serde(default)]
    pub root_volume: bool,
}

/// Returns the disk on which the kubelet stores its files: the one that says so, else the one that images of this family use. `None`
/// means a disk of the image that the list lacks.
pub fn kubelet_disk(family: AmiFamily, disks: &[BlockDeviceMapping]) -> Option<&BlockDeviceMapping> {
    let named = |device: &&str| disks.iter().find(|disk| disk.device_name == **device);
    disks.iter().find(|disk| disk.root_volume).or_else(|| match kubelet_devices(family) {
        [] => disks.last(),
        devices => devices.iter().find_map(named),
    })
}

/// Returns the devices on which images of this family have the files of the kubelet, the most usual first. None are known for
/// Custom. Karpenter has the same devices
/// (<https://github.com/aws/karpenter-provider-aws/tree/main/pkg/providers/amifamily>, `EphemeralBlockDevice`).
pub(crate) fn kubelet_devices(family: AmiFamily) -> &'static [&'static str] {
    match family {
        AmiFamily::Al2023 => &["/dev/xvda"],
        AmiFamily::Bottlerocket => &["/dev/xvdb"],
        AmiFamily::Ubuntu => &["/dev/sda1", "/dev/xvda"],
        AmiFamily::Custom => &[],
    }
}

/// An EBS volume.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.volumeSize) || has(self.snapshotID)")
        .message("a volume needs a volumeSize, a snapshotID, or both"),
    validation = Rule::new("!has(self.iops) || self.volumeType in ['gp3', 'io1', 'io2']")
        .message("only gp3, io1 and io2 volumes take iops"),
    validation = Rule::new("!(self.volumeType in ['io1', 'io2']) || has(self.iops)")
        .message("io1 and io2 volumes need iops"),
    validation = Rule::new("!has(self.throughput) || self.volumeType == 'gp3'")
        .message("only gp3 volumes take throughput"),
    validation = Rule::new("!has(self.kmsKeyID) || !has(self.encrypted) || self.encrypted")
        .message("kmsKeyID requires encryption: remove kmsKeyID, or remove encrypted: false")
)]
pub struct EbsVolume {
    /// The size: `100Gi`. The default is the size of the snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), regex(pattern = r"^[1-9][0-9]{0,4}(Gi|G|Ti|T)$"))]
    pub volume_size: Option<String>,
    /// The volume type.
    #[serde(default)]
    pub volume_type: VolumeType,
    /// The provisioned I/O operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 100, max = 256_000))]
    pub iops: Option<i32>,
    /// The throughput in MiB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 125, max = 2000))]
    pub throughput: Option<i32>,
    /// Whether the volume is encrypted. By default, new volumes are encrypted, and volumes from a snapshot are encrypted as the
    /// snapshot or the account's default requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<bool>,
    /// The id, alias or ARN of the KMS key. The default is the account's EBS key.
    #[serde(default, rename = "kmsKeyID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 2048))]
    pub kms_key_id: Option<String>,
    /// The id of the snapshot to create the volume from.
    #[serde(default, rename = "snapshotID", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^snap-[0-9a-z]+$"))]
    pub snapshot_id: Option<String>,
    /// Whether the volume is deleted with the instance.
    #[serde(default = "yes")]
    pub delete_on_termination: bool,
}

fn yes() -> bool {
    true
}

impl EbsVolume {
    /// Returns the encryption setting for EC2: the field if set, true for a new volume, and nothing for a volume from a snapshot.
    pub fn encryption(&self) -> Option<bool> {
        let asked = self.encrypted.or(self.kms_key_id.is_some().then_some(true));
        asked.or(self.snapshot_id.is_none().then_some(true))
    }
}

/// The EBS volume types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VolumeType {
    /// General Purpose SSD (gp3).
    #[default]
    Gp3,
    /// General Purpose SSD (gp2).
    Gp2,
    /// Provisioned IOPS SSD (io1).
    Io1,
    /// Provisioned IOPS SSD (io2).
    Io2,
    /// Throughput Optimized HDD.
    St1,
    /// Cold HDD.
    Sc1,
    /// Magnetic (previous generation).
    Standard,
}

/// How nodes use the local disks of the instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum InstanceStorePolicy {
    /// Combines all local disks into a RAID 0 for containers and the kubelet. The data is lost with the instance.
    #[serde(rename = "RAID0")]
    Raid0,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kubelets_disk_is_the_marked_one_or_else_the_one_that_the_image_family_uses() {
        let disk = |family, names: &[&str], marked: Option<&str>| -> Option<String> {
            let disks: Vec<_> = names
                .iter()
                .map(|name| BlockDeviceMapping {
                    device_name: (*name).to_owned(),
                    ebs: EbsVolume::default(),
                    root_volume: marked == Some(*name),
                })
                .collect();
            kubelet_disk(family, &disks).map(|disk| disk.device_name.clone())
        };
        let two = ["/dev/xvda", "/dev/xvdb"];
        for (family, names, wanted) in [
            (AmiFamily::Bottlerocket, &two[..], Some("/dev/xvdb")),
            (AmiFamily::Al2023, &["/dev/xvdb", "/dev/xvda"], Some("/dev/xvda")),
            (AmiFamily::Ubuntu, &["/dev/sdf", "/dev/sda1"], Some("/dev/sda1")),
            (AmiFamily::Ubuntu, &["/dev/xvda"], Some("/dev/xvda")),
            (AmiFamily::Custom, &["/dev/sda1", "/dev/sdb"], Some("/dev/sdb")),
            (AmiFamily::Bottlerocket, &["/dev/xvda"], None),
            (AmiFamily::Al2023, &["/dev/sdf"], None),
            (AmiFamily::Custom, &[], None),
        ] {
            assert_eq!(disk(family, names, None).as_deref(), wanted, "{family:?} {names:?}");
        }
        assert_eq!(disk(AmiFamily::Bottlerocket, &two, Some("/dev/xvda")).as_deref(), Some("/dev/xvda"));
    }

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
