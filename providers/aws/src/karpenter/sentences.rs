//! What `convert` says of the fields of an EC2NodeClass. Each sentence is true of this provider.

use poolwright_provider_contract::karpenter::Outcome::{self, Changed, Kept};

use crate::node_class::AmiFamily;

/// Returns the outcome of a field with the same name here; `None` for other fields.
pub(super) fn of_field(key: &str, family: Option<AmiFamily>) -> Option<(Outcome, &'static str)> {
    Some(match key {
        "subnetSelectorTerms" => (Kept, "It selects the same subnets."),
        "securityGroupSelectorTerms" => (Kept, "It selects the same security groups."),
        "capacityReservationSelectorTerms" => (
            Changed,
            "It selects the same reservations. Poolwright uses none that is interruptible, for dedicated hardware, or for systems other \
             than Linux.",
        ),
        "role" => (Kept, "Nodes get this role, in an instance profile that Poolwright creates."),
        "instanceProfile" => (Kept, "Nodes get this instance profile."),
        "instanceStorePolicy" if family == Some(AmiFamily::Custom) => {
            (Kept, "Plans count the local disks as one RAID 0. As in Karpenter, your user data must make it.")
        }
        "instanceStorePolicy" => (Kept, "The local disks become one RAID 0, as in Karpenter."),
        "detailedMonitoring" | "associatePublicIPAddress" => (Kept, "It has the same meaning."),
        "tags" => (
            Changed,
            "Instances, their volumes and fleets get these tags. In Karpenter, network interfaces, spot requests and launch templates get \
             them, too.",
        ),
        _ => return None,
    })
}

/// Says how nodes of a family join the cluster.
pub(super) fn of_family(family: Option<AmiFamily>) -> &'static str {
    match family {
        Some(AmiFamily::Custom) => "Nodes join by your user data alone, as in Karpenter.",
        _ => "Nodes of this family join the cluster as in Karpenter.",
    }
}

/// Says what happens to the terms for images. Terms without an owner are by name, or by tags alone.
pub(super) fn of_images(by_name: bool, by_tags: bool) -> String {
    let mut said = match (by_name, by_tags) {
        (false, false) => "New nodes get the same images.",
        (true, false) => {
            "Poolwright requires an owner for images selected by name. The result has a term for `self` and one for `amazon`, Karpenter's \
             defaults. Remove the one that you do not need."
        }
        (_, true) => {
            "Poolwright requires an owner for images selected by name or tags. The result has a term for `self` and one for `amazon`. \
             Karpenter takes images of any owner that have your tags: name the account if another one shares them."
        }
    }
    .to_owned();
    said.push_str(
        " Karpenter also replaces running nodes when other images are selected. Poolwright does not: delete their NodeClaims, or set \
         `expireAfter`.",
    );
    said
}

/// Says what happens to user data.
pub(super) fn of_user_data(family: Option<AmiFamily>, has_karpenters_taint: bool) -> (Outcome, String) {
    let mut said = match family {
        Some(AmiFamily::Custom) => "Nodes get it unchanged, as in Karpenter.",
        Some(AmiFamily::Bottlerocket) => {
            "Poolwright adds its settings to it, which win. Taints in it are removed, as in Karpenter."
        }
        _ => "Poolwright adds its own part at the end, which wins.",
    }
    .to_owned();
    said.push_str(" Plans do not read kubelet settings in it: repeat them under `kubelet`.");
    if has_karpenters_taint {
        said.push_str(
            " It contains `karpenter.sh/unregistered`, a taint that only Karpenter removes: take it out, because pods could never start.",
        );
    }
    (if has_karpenters_taint { Changed } else { Kept }, said)
}

/// Says what happens to the settings of the kubelet.
pub(super) fn of_kubelet(family: Option<AmiFamily>) -> &'static str {
    match family {
        Some(AmiFamily::Custom) => {
            "Plans use these settings. As in Karpenter, they do not reach the node: your user data must set them, too."
        }
        Some(AmiFamily::Bottlerocket) => {
            "The kubelet gets the same settings. Of several addresses in `clusterDNS`, Bottlerocket takes the first."
        }
        _ => "The kubelet gets the same settings.",
    }
}

/// Says why `podsPerCore` is left out for Bottlerocket.
pub(super) const PODS_PER_CORE: &str = "Left out: Bottlerocket has no such setting. Karpenter ignores it, and Poolwright would refuse the class. Write `maxPods` to limit \
     pods.";

/// Absent fields whose default differs: the field, a field of Karpenter that stands in for it, and what to do.
pub(super) const ABSENT: &[(&str, &str, &str)] = &[
    (
        "associatePublicIPAddress",
        "associatePublicIPAddress",
        "It is absent. Karpenter then uses the setting of the subnet; Poolwright gives nodes no public address. Write `true` if they \
         need one.",
    ),
    (
        "efa",
        "networkInterfaces",
        "Karpenter attaches fabric adapters when pods request `vpc.amazonaws.com/efa`; Poolwright attaches none. Write `efa: Auto` if \
         pods use them.",
    ),
    (
        "alsoInstanceTypes",
        "alsoInstanceTypes",
        "Karpenter sells most instance types. Poolwright leaves out burstable, Xen, bare-metal and HPC types and those with other \
         accelerators than NVIDIA GPUs (docs/aws-catalogue.md): list those that you need.",
    ),
];

/// Returns whether Karpenter has a field of this name that Poolwright lacks.
pub(super) fn is_known(key: &str) -> bool {
    const LACKING: [&str; 6] = [
        "connectionTracking",
        "context",
        "cpuOptions",
        "enclaveOptions",
        "ipPrefixCount",
        "volumeInitializationRate",
    ];
    LACKING.contains(&key)
}

/// Returns the alternative to a field that Poolwright does not have.
pub(super) fn instead(key: &str) -> String {
    match key {
        "ipPrefixCount" => "Poolwright cannot request prefixes at launch. Let the VPC CNI attach them (ENABLE_PREFIX_DELEGATION).",
        "context" => "Poolwright does not set this field, which EC2 reserves. Leave it out.",
        "connectionTracking" => "Poolwright does not set the timeouts of connection tracking. Set them in the user data, or on the network interfaces.",
        "cpuOptions" => "Poolwright does not set CPU options. Choose other instance types, or keep this pool in Karpenter.",
        "enclaveOptions" => "Poolwright does not support Nitro Enclaves. Keep this pool in Karpenter.",
        "volumeInitializationRate" => "Poolwright does not set `volumeInitializationRate`: EC2 loads the snapshot at its own rate. Leave it out.",
        _ => return format!("Poolwright has no field `{key}`. Check the spelling. If Karpenter has the field, leave it out or keep this class in Karpenter."),
    }
    .to_owned()
}

/// Returns the alternative to a field below `parent` that Poolwright does not have.
pub(super) fn instead_in(parent: &str, key: &str) -> String {
    if parent == "spec.kubelet" {
        return format!(
            "Poolwright has no field `{key}`. Check the spelling. If kubelet has the setting, write it in `userData`, in the format of the \
             image family."
        );
    }
    instead(key)
}
