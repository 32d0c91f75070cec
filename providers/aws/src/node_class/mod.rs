//! EC2NodeClass: the custom resource that describes how Poolwright launches nodes on AWS EC2.
//!
//! Fields that have the same meaning as in Karpenter's EC2NodeClass (`karpenter.k8s.aws/v1`) have the same name. For their meaning
//! in EC2, see the API reference (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html>).

#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column states its type, and several are strings"
)]

pub mod conditions;
mod kubelet;
mod patterns;
mod selectors;
mod settings;
mod status;
mod volumes;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use kubelet::KubeletSettings;
pub(crate) use patterns::PATTERNS;
pub use selectors::{
    AmiFamily, AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use settings::{Efa, HttpTokens, MetadataOptions, PlacementGroup, Switch, UserData};
pub use status::{
    Ec2NodeClassStatus, ResolvedCapacityReservation, ResolvedImage, ResolvedPlacementGroup,
    ResolvedSecurityGroup, ResolvedSubnet,
};
pub(crate) use volumes::kubelet_devices;
pub use volumes::{BlockDeviceMapping, EbsVolume, InstanceStorePolicy, VolumeType, kubelet_disk};

/// How Poolwright launches nodes on AWS EC2: network, image, identity, disks, and settings of the kubelet.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "poolwright.dev",
    version = "v1alpha1",
    kind = "EC2NodeClass",
    plural = "ec2nodeclasses",
    shortname = "ec2nc",
    category = "poolwright",
    status = "Ec2NodeClassStatus",
    derive = "PartialEq",
    cel,
    doc = "How Poolwright launches nodes on AWS EC2: network, image, identity, disks, and settings of the kubelet.",
    printcolumn(name = "Family", type_ = "string", json_path = ".status.imageFamily"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Profile", type_ = "string", json_path = ".status.instanceProfile", priority = "1")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.role) != has(self.instanceProfile)")
        .message("set either role or instanceProfile, but not both: nodes need one IAM role"),
    validation = Rule::new("has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))")
        .message("amiFamily is required if amiSelectorTerms has no alias: it determines how nodes join the cluster"),
    validation = Rule::new(
        "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || \
         (self.amiFamily == 'AL2023' && t.alias.startsWith('al2023@')) || \
         (self.amiFamily == 'Bottlerocket' && t.alias.startsWith('bottlerocket@')))"
    )
    .message("amiFamily differs from the family of the alias: correct one of the two, or remove amiFamily; only Custom works with any alias"),
    validation = Rule::new("!self.associatePublicIPAddress || self.efa != 'Auto'")
        .message("associatePublicIPAddress and efa: Auto exclude each other, because EC2 gives no public address to instances with several \
                  network interfaces: remove one of the two")
)]
pub struct EC2NodeClassSpec {
    /// Selects the subnets of the nodes. A subnet is selected if it matches at least one term.
    #[schemars(length(min = 1, max = 30))]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Selects the security groups of the nodes. Every node gets all groups that match at least one term.
    #[schemars(length(min = 1, max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Selects the images of the nodes. An image is selected if it matches at least one term. A node uses the newest selected image
    /// that fits its instance type, and a deprecated one only if no other fits.
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(
        validation = Rule::new("size(self) == 1 || !self.exists(t, has(t.alias))")
            .message("an alias must be the only term of amiSelectorTerms: remove the other terms, or select the images by id")
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// How nodes with these images join the cluster, which determines the format of the user data. The default is the family of the
    /// alias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// The name of the IAM role of the nodes. Poolwright creates the instance profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9+=,.@_-]+$"))]
    pub role: Option<String>,
    /// The name of an existing IAM instance profile for the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9+=,.@_-]+$"))]
    pub instance_profile: Option<String>,
    /// Your own user data, in the format of the family: MIME parts, a shell script or a NodeConfig (AL2023), TOML (Bottlerocket),
    /// cloud-config or a shell script (Ubuntu), anything (Custom). Poolwright adds what a node needs to join the cluster, except
    /// for Custom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// Settings of the kubelet.
    #[serde(default, skip_serializing_if = "KubeletSettings::is_empty")]
    pub kubelet: KubeletSettings,
    /// Disks of the nodes. They add to the disks of the image, or replace those with the same device name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.filter(b, b.rootVolume).size() <= 1")
            .message("at most one of blockDeviceMappings may set rootVolume"),
        validation = Rule::new("self.all(b, self.exists_one(c, c.deviceName == b.deviceName))")
            .message("each deviceName may occur only once in blockDeviceMappings")
    )]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// How nodes use the local disks of the instance type (the instance store). The default is not to use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// Settings of the instance metadata service.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// Whether nodes get a public IPv4 address. The default is false, whatever the subnet's setting.
    #[serde(default, rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: bool,
    /// The placement group of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<PlacementGroup>,
    /// Elastic Fabric Adapters: `Auto` attaches one to every network card of the instance type that supports it, `None` attaches
    /// none.
    #[serde(default)]
    pub efa: Efa,
    /// Selects the capacity reservations that Poolwright may use. A reservation is selected if it matches at least one term. The
    /// default is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Instance types (`t3.large`) and families (`t3`) to allow in addition, although they are unusual or bare metal. Poolwright
    /// buys such types only if you list them here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9-]+([.][a-z0-9-]+)?$"))
    )]
    pub also_instance_types: Vec<String>,
    /// Tags of the instances and of all resources that are created with them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 40,
        "additionalProperties" = serde_json::json!({ "type": "string", "maxLength": 256 })
    ))]
    #[x_kube(
        validation = Rule::new("self.all(k, size(k) >= 1 && size(k) <= 128)")
            .message("keys of tags have 1 to 128 characters"),
        validation = Rule::new(
            "self.all(k, !k.startsWith('poolwright.dev/') && !k.startsWith('kubernetes.io/cluster/') && \
             !k.startsWith('eks:') && !k.startsWith('aws:'))"
        )
        .message("tags under poolwright.dev/, kubernetes.io/cluster/, eks: and aws: are reserved and cannot be set")
    )]
    pub tags: BTreeMap<String, String>,
    /// Whether CloudWatch collects metrics every minute instead of every five. AWS charges for it.
    #[serde(default)]
    pub detailed_monitoring: bool,
}

/// Tags that an AWS resource must have, all of them. Values may contain the wildcards `*` and `?`; a backslash before one of them
/// takes away its meaning.
pub type TagSelector = BTreeMap<String, String>;

/// Returns the schema of a tag selector.
pub(super) fn tag_selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "Tags that the resource must have, all of them. In values, `*` matches any text and `?` one character.",
        "minProperties": 1,
        "maxProperties": 20,
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 256 },
    })
}

impl EC2NodeClassSpec {
    /// Returns how nodes join the cluster: `amiFamily`, or else the family of the alias. It returns `None` if neither is set; the
    /// API server rejects such objects.
    pub fn family(&self) -> Option<AmiFamily> {
        self.ami_family.or_else(|| {
            let alias = self.ami_selector_terms.iter().find_map(|term| term.alias.as_deref())?;
            match alias.split_once('@')?.0 {
                "al2023" => Some(AmiFamily::Al2023),
                "bottlerocket" => Some(AmiFamily::Bottlerocket),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(fields: serde_json::Value) -> EC2NodeClassSpec {
        let mut spec = serde_json::json!({
            "role": "node", "subnetSelectorTerms": [], "securityGroupSelectorTerms": [],
            "amiSelectorTerms": [{"alias": "bottlerocket@v1.54.0"}]});
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(spec).expect("a class")
    }

    #[test]
    fn the_family_is_what_is_written_or_else_that_of_the_alias() {
        let family = |fields| class(fields).family();
        assert_eq!(family(serde_json::json!({})), Some(AmiFamily::Bottlerocket));
        assert_eq!(family(serde_json::json!({"amiFamily": "Custom"})), Some(AmiFamily::Custom));
        let none = serde_json::json!({"amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]});
        assert_eq!(family(none), None);
    }

    #[test]
    fn user_data_is_not_in_what_is_printed_of_a_class() {
        let class = class(serde_json::json!({"userData": "password = hunter2"}));
        let printed = format!("{class:?}");
        assert!(!printed.contains("hunter2") && printed.contains("18 bytes"), "{printed}");
        assert_eq!(class.user_data.unwrap().as_str(), "password = hunter2");
    }
}
