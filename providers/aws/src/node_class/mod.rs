//! EC2NodeClass: what nodes on AWS EC2 are launched with.
//!
//! The fields and their names are those that users of Karpenter's EC2NodeClass (`karpenter.k8s.aws/v1`) know, where they
//! mean the same. What they mean to EC2 is in the reference of its API
//! (<https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestLaunchTemplateData.html>).

#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column states its type, and several are strings"
)]

pub mod conditions;
mod kubelet;
mod selectors;
mod settings;
mod status;
mod volumes;

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

pub use kubelet::KubeletSettings;
pub use selectors::{
    AmiFamily, AmiSelectorTerm, CapacityReservationSelectorTerm, InstanceMatchCriteria,
    SecurityGroupSelectorTerm, SubnetSelectorTerm,
};
pub use settings::{Efa, HttpTokens, MetadataOptions, PlacementGroup, Switch, UserData};
pub use status::{
    Ec2NodeClassStatus, ResolvedCapacityReservation, ResolvedImage, ResolvedPlacementGroup,
    ResolvedSecurityGroup, ResolvedSubnet,
};
pub use volumes::{BlockDeviceMapping, EbsVolume, InstanceStorePolicy, VolumeType};

/// What nodes on AWS EC2 are launched with: network, image, identity, disks, and the settings of their kubelet.
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
    doc = "What nodes on AWS EC2 are launched with: network, image, identity, disks, and the settings of their kubelet.",
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
        .message("a node class has a role or an instanceProfile, one of the two: who its nodes are to AWS"),
    validation = Rule::new("has(self.amiFamily) || self.amiSelectorTerms.exists(t, has(t.alias))")
        .message("amiFamily is needed where no alias says it: how a node of this image joins the cluster"),
    validation = Rule::new(
        "!has(self.amiFamily) || self.amiFamily == 'Custom' || self.amiSelectorTerms.all(t, !has(t.alias) || \
         (self.amiFamily == 'AL2023' && t.alias.startsWith('al2023@')) || \
         (self.amiFamily == 'Bottlerocket' && t.alias.startsWith('bottlerocket@')))"
    )
    .message("amiFamily is not that of the alias: correct one of the two, or leave out amiFamily; only Custom goes with any alias"),
    validation = Rule::new("!self.associatePublicIPAddress || self.efa != 'Auto'")
        .message("associatePublicIPAddress does not go with efa: Auto, for EC2 gives no public address to instances with several network \
                  interfaces; remove one of the two")
)]
pub struct EC2NodeClassSpec {
    /// Subnets that nodes may be in, all that meet at least one term.
    #[schemars(length(min = 1, max = 30))]
    pub subnet_selector_terms: Vec<SubnetSelectorTerm>,
    /// Security groups that every node has, all that meet at least one term.
    #[schemars(length(min = 1, max = 30))]
    pub security_group_selector_terms: Vec<SecurityGroupSelectorTerm>,
    /// Images that nodes may start from, all that meet at least one term; the newest that fits an instance type is taken.
    #[schemars(length(min = 1, max = 30))]
    #[x_kube(
        validation = Rule::new("size(self) == 1 || !self.exists(t, has(t.alias))")
            .message("an alias is the only term of amiSelectorTerms: remove the others, or name the image itself")
    )]
    pub ami_selector_terms: Vec<AmiSelectorTerm>,
    /// How a node of these images joins the cluster, and so what its user data is. That of the alias when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ami_family: Option<AmiFamily>,
    /// The IAM role of the nodes, by its name; Poolwright makes the instance profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9+=,.@_-]+$"))]
    pub role: Option<String>,
    /// The IAM instance profile of the nodes, by its name, which somebody else made and keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), regex(pattern = r"^[A-Za-z0-9+=,.@_-]+$"))]
    pub instance_profile: Option<String>,
    /// What nodes are told at their start beside what they must be told to join, in the form that the family reads: MIME parts,
    /// a shell script or a NodeConfig (AL2023), TOML (Bottlerocket), cloud-config or a shell script (Ubuntu), anything (Custom).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// Settings of the kubelet.
    #[serde(default, skip_serializing_if = "KubeletSettings::is_empty")]
    pub kubelet: KubeletSettings,
    /// Disks beside what the image says, or instead of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.filter(b, b.rootVolume).size() <= 1")
            .message("at most one of blockDeviceMappings is the rootVolume"),
        validation = Rule::new("self.all(b, self.exists_one(c, c.deviceName == b.deviceName))")
            .message("each deviceName of blockDeviceMappings is there once")
    )]
    pub block_device_mappings: Vec<BlockDeviceMapping>,
    /// What is done with the disks that some instance types bring along. Nothing when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_store_policy: Option<InstanceStorePolicy>,
    /// How the instance metadata service answers.
    #[serde(default)]
    pub metadata_options: MetadataOptions,
    /// Whether nodes have a public IPv4 address. Not, unless asked, whatever the subnet says.
    #[serde(default, rename = "associatePublicIPAddress")]
    pub associate_public_ip_address: bool,
    /// The placement group that nodes are launched into.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<PlacementGroup>,
    /// Elastic Fabric Adapters: `Auto` is one on every network card of the instance type that can have one, `None` is none.
    #[serde(default)]
    pub efa: Efa,
    /// Capacity reservations that may be used, all that meet at least one term. None when absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 30))]
    pub capacity_reservation_selector_terms: Vec<CapacityReservationSelectorTerm>,
    /// Instance types (`t3.large`) and families (`t3`) that nodes may be although they are unusual or bare metal: those are not
    /// sold otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        inner(length(min = 1, max = 40), regex(pattern = r"^[a-z0-9-]+([.][a-z0-9-]+)?$"))
    )]
    pub also_instance_types: Vec<String>,
    /// Tags of the instances and of all that is made with them.
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
        .message("tags under poolwright.dev/, kubernetes.io/cluster/, eks: and aws: say whose an instance is and cannot be set")
    )]
    pub tags: BTreeMap<String, String>,
    /// Whether CloudWatch gets measurements every minute, which costs, instead of every five.
    #[serde(default)]
    pub detailed_monitoring: bool,
}

/// Some texts by their keys, all of which an AWS object must have as tags; `*` is any value.
pub type TagSelector = BTreeMap<String, String>;

/// The schema of a tag selector.
pub(super) fn tag_selector_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "description": "Tags it must have, all of them; `*` is any value.",
        "minProperties": 1,
        "maxProperties": 20,
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 256 },
    })
}

impl EC2NodeClassSpec {
    /// How its nodes join the cluster: as `amiFamily` says, or else the alias. None where neither says so, which the API server
    /// refuses.
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
