//! The settings of a node class that affect the allocatable resources of its nodes.

use poolwright_catalog::{Catalogue, ResourceName};
use poolwright_provider_aws_model::instance::{
    Efa, KubeletReserved, LocalDisks, MaxPods, ReservedMemoryBasis, Settings, VPC_EFA, described,
};

use crate::launch::template::gibibytes;
use crate::node_class::{
    self, AmiFamily, BlockDeviceMapping, EC2NodeClassSpec, InstanceStorePolicy, kubelet_devices, kubelet_disk,
};

/// The field that adds network adapters.
const EFA: &str = "spec.efa: Auto";

/// The resources that settings of a class give nodes, for users of other kinds of node class.
pub(crate) const ADDS: &[(&str, &str)] = &[
    (VPC_EFA, "`spec.efa: Auto`"),
    (ResourceName::EPHEMERAL_STORAGE, "larger disks in `spec.blockDeviceMappings`"),
];

/// Records in the catalogue of a class which of its fields adds a resource that its nodes lack.
pub(super) fn with_addable(catalogue: Catalogue, spec: &EC2NodeClassSpec, family: AmiFamily) -> Catalogue {
    let catalogue = catalogue.with_addable(ResourceName::EPHEMERAL_STORAGE, &larger_disk(spec, family));
    // A number of pods per core would be a second limit.
    let only_max_pods =
        spec.kubelet.max_pods.is_some() && spec.kubelet.pods_per_core.is_none_or(|of| of <= 0);
    let catalogue = if only_max_pods {
        catalogue.with_addable(ResourceName::PODS, "raise spec.kubelet.maxPods")
    } else {
        catalogue
    };
    match spec.efa {
        node_class::Efa::None => {
            let kinds = catalogue.types().keys();
            let adapters = kinds.filter_map(|kind| {
                let facts = described(kind)?;
                Some((kind.clone(), u64::from(facts.network.efa_interfaces)))
            });
            let adapters = adapters.collect();
            catalogue.with_addable(VPC_EFA, EFA).with_added(VPC_EFA, adapters)
        }
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
        local_disks: local_disks(spec, family),
        efa: match spec.efa {
            node_class::Efa::Auto => Efa::All,
            node_class::Efa::None => Efa::None,
        },
        kept,
        ..defaults
    }
}

/// Says how the class gets a larger disk for ephemeral storage, as the start of a sentence that the class ends.
fn larger_disk(spec: &EC2NodeClassSpec, family: AmiFamily) -> String {
    let listed = kubelet_disk(family, &spec.block_device_mappings).map(|disk| disk.device_name.as_str());
    let which = match local_disks(spec, family) {
        LocalDisks::Raid0 => ", which types without local disks use,",
        LocalDisks::Unused => "",
    };
    match (listed, kubelet_devices(family).first()) {
        (Some(device), _) => {
            format!("write a larger volumeSize of {device}{which} in spec.blockDeviceMappings")
        }
        (None, Some(device)) => {
            format!("list the kubelet's disk {device}{which} with its volumeSize in spec.blockDeviceMappings")
        }
        (None, None) => {
            format!("list the kubelet's disk{which} with its volumeSize in spec.blockDeviceMappings")
        }
    }
}

/// Returns what becomes of the local disks of nodes.
fn local_disks(spec: &EC2NodeClassSpec, family: AmiFamily) -> LocalDisks {
    match (spec.instance_store_policy, family) {
        // For Custom, the user data of the class makes the array.
        (
            Some(InstanceStorePolicy::Raid0),
            AmiFamily::Al2023 | AmiFamily::Bottlerocket | AmiFamily::Custom,
        ) => LocalDisks::Raid0,
        // A launch with Ubuntu and this policy is refused.
        (Some(InstanceStorePolicy::Raid0), AmiFamily::Ubuntu) | (None, _) => LocalDisks::Unused,
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
    fn a_class_names_the_disk_that_gives_its_nodes_more_ephemeral_storage() {
        let setting = |family: AmiFamily, alias: &str, disks: serde_json::Value, raid: bool| {
            let mut spec = serde_json::json!({"role": "node", "amiSelectorTerms": [{"alias": alias}],
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
                "blockDeviceMappings": disks});
            if raid {
                spec["instanceStorePolicy"] = serde_json::json!("RAID0");
            }
            let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a spec");
            let catalogue = with_addable(poolwright_catalog::builtin(), &spec, family);
            catalogue.addable(ResourceName::EPHEMERAL_STORAGE).expect("a disk").to_owned()
        };
        assert_eq!(
            setting(AmiFamily::Bottlerocket, "bottlerocket@latest", serde_json::json!([]), false),
            "list the kubelet's disk /dev/xvdb with its volumeSize in spec.blockDeviceMappings"
        );
        let disks = serde_json::json!([{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "100Gi"}}]);
        assert_eq!(
            setting(AmiFamily::Al2023, "al2023@latest", disks, true),
            "write a larger volumeSize of /dev/xvda, which types without local disks use, in spec.blockDeviceMappings"
        );
    }

    #[test]
    fn what_users_of_other_kinds_are_told_of_is_what_a_class_of_this_kind_can_set() {
        let spec = serde_json::json!({"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}],
            "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}]});
        let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a spec");
        let catalogue = with_addable(poolwright_catalog::builtin(), &spec, AmiFamily::Al2023);
        for (resource, setting) in ADDS {
            let own = catalogue.addable(resource).expect("the class can set it");
            assert!(own.contains("spec.blockDeviceMappings") || *setting == format!("`{own}`"), "{own}");
        }
        let of = |kind: &str| catalogue.added(VPC_EFA, &kind.into());
        assert_eq!((of("p4d.24xlarge"), of("g5.xlarge")), (Some(4), Some(0)));
    }

    #[test]
    fn a_class_that_sets_the_most_pods_of_its_nodes_names_that_field_where_it_alone_decides() {
        let setting = |kubelet: serde_json::Value| {
            let spec = serde_json::json!({"role": "node", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"id": "subnet-1"}], "securityGroupSelectorTerms": [{"id": "sg-1"}],
                "kubelet": kubelet});
            let spec: EC2NodeClassSpec = serde_json::from_value(spec).expect("a spec");
            let catalogue = with_addable(poolwright_catalog::builtin(), &spec, AmiFamily::Al2023);
            catalogue.addable(ResourceName::PODS).map(str::to_owned)
        };
        let raise = Some("raise spec.kubelet.maxPods".to_owned());
        assert_eq!(setting(serde_json::json!({"maxPods": 2})), raise);
        assert_eq!(setting(serde_json::json!({"maxPods": 2, "podsPerCore": 1})), None);
        assert_eq!(setting(serde_json::json!({})), None);
    }

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
