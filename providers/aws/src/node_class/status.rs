//! The status of an EC2NodeClass.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use poolwright_api::conditions_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selectors::{AmiFamily, InstanceMatchCriteria};

/// The resources that the selectors match, and the conditions of the class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassStatus {
    /// The subnets, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<ResolvedSubnet>,
    /// The security groups, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<ResolvedSecurityGroup>,
    /// How nodes join the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_family: Option<AmiFamily>,
    /// The images in the order of their use: newest first, and deprecated ones last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ResolvedImage>,
    /// The instance profile of the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// The placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<ResolvedPlacementGroup>,
    /// The capacity reservations, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<ResolvedCapacityReservation>,
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Validated, SubnetsReady, SecurityGroupsReady, ImagesReady, InstanceProfileReady, PlacementGroupReady,
    /// CapacityReservationsReady, KubeletReady, UserDataReady, InterruptionQueueReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedSubnet {
    /// The id.
    pub id: String,
    /// The name of its zone in this account: `us-east-1a`.
    pub zone: String,
    /// The id of its zone, which is the same in all accounts: `use1-az4`.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// The number of free IPv4 addresses at the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_addresses: Option<i64>,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedSecurityGroup {
    /// The id.
    pub id: String,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedImage {
    /// The id.
    pub id: String,
    /// The name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The CPU architecture, as in the label `kubernetes.io/arch`: `amd64`, `arm64`.
    pub architecture: String,
    /// The creation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub created: Option<Time>,
    /// Whether the image has NVIDIA drivers. If true, only nodes with NVIDIA GPUs use it; if false, only nodes without. It is
    /// absent if the image fits both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvidia: Option<bool>,
    /// The device names of its unencrypted volumes. Poolwright encrypts them on nodes, unless `blockDeviceMappings` mentions them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unencrypted_volumes: Vec<String>,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPlacementGroup {
    /// The id.
    pub id: String,
    /// The strategy: `cluster`, `partition`, `spread`.
    pub strategy: String,
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedCapacityReservation {
    /// The id.
    pub id: String,
    /// The instance type.
    pub instance_type: String,
    /// The zone.
    pub zone: String,
    /// The account that owns it.
    #[serde(rename = "ownerID")]
    pub owner_id: String,
    /// Which instances may use it.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// Whether it is a Capacity Block. EC2 terminates its instances before the end of the block.
    #[serde(default)]
    pub capacity_block: bool,
    /// The number of free instances at the last check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_instances: Option<i64>,
    /// The end of the reservation. It is absent if the reservation has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub ends: Option<Time>,
}

fn time_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}
