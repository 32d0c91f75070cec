//! The settings of a node class that affect the allocatable resources of its nodes.

use poolwright_catalog::Catalogue;
use poolwright_provider_aws_model::instance::{
    Efa, KubeletReserved, LocalDisks, MaxPods, ReservedMemoryBasis, Settings, VPC_EFA,
};

use crate::launch::template::gibibytes;
use crate::node_class::{
    self, AmiFamily, BlockDeviceMapping, EC2NodeClassSpec, InstanceStorePolicy, kubelet_disk,
};

/// Records in the catalogue of a class which of its fields adds a resource that its nodes lack.
pub(super) fn with_addable(catalogue: Catalogue, spec: &EC2NodeClassSpec) -> Catalogue {
    match spec.efa {
        node_class::Efa::None => catalogue.with_addable(VPC_EFA, "spec.efa: Auto"),
        node_class::Efa::Auto => catalogue,
    }
}

/// Returns the settings of a class that affect the allocatable resources of its nodes.
pub(super) fn settings(spec: &EC2NodeClassSpec, family: AmiFamily, kept: KubeletReserved) -> Settings {
    let defaults = Settings::default();
    Settings {
        max_pods: spec
            .kubelet
            .max_pods
            .and_then(|pods| u32::try_from(pods).ok())
            .map_or(MaxPods::Addresses, MaxPods::Fixed),
        reserve: match family {
            AmiFamily::Bottlerocket => ReservedMemoryBasis::MaxPods,
            AmiFamily::Al2023 | AmiFamily::Ubuntu | AmiFamily::Custom => ReservedMemoryBasis::Addresses,
        },
        root_disk_gib: root_disk(family, &spec.block_device_mappings).unwrap_or(defaults.root_disk_gib),
        local_disks: match (spec.instance_store_policy, family) {
            // For Custom, the user data of the class makes the array.
            (
                Some(InstanceStorePolicy::Raid0),
                AmiFamily::Al2023 | AmiFamily::Bottlerocket | AmiFamily::Custom,
            ) => LocalDisks::Raid0,
            // A launch with Ubuntu and this policy is refused.
            (Some(InstanceStorePolicy::Raid0), AmiFamily::Ubuntu) | (None, _) => LocalDisks::Unused,
        },
        efa: match spec.efa {
            node_class::Efa::Auto => Efa::All,
            node_class::Efa::None => Efa::None,
        },
        kept,
        ..defaults
    }
}

/// Returns the size of the disk for ephemeral storage in GiB, if the class sets one.
pub(super) fn root_disk(family: AmiFamily, disks: &[BlockDeviceMapping]) -> Option<u32> {
    let root = kubelet_disk(family, disks)?;
    u32::try_from(gibibytes(root.ebs.volume_size.as_deref()?)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ephemeral_storage_of_bottlerocket_is_the_data_disk_and_not_the_small_one_of_the_system() {
        let disk = |device: &str, size: &str| {
            let ebs = serde_json::json!({"volumeSize": size});
            serde_json::from_value(serde_json::json!({"deviceName": device, "ebs": ebs})).expect("a disk")
        };
        let disks: Vec<BlockDeviceMapping> = vec![disk("/dev/xvda", "4Gi"), disk("/dev/xvdb", "200Gi")];
        assert_eq!(root_disk(AmiFamily::Bottlerocket, &disks), Some(200));
        assert_eq!(root_disk(AmiFamily::Al2023, &disks), Some(4));
        assert_eq!(root_disk(AmiFamily::Bottlerocket, &disks[..1]), None, "the disk of the image");
    }
}
