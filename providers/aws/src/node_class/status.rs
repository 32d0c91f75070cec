//! What a node class was found to mean in an AWS account.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use poolwright_api::conditions_schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::selectors::{AmiFamily, InstanceMatchCriteria};

/// What the selectors of a class found, and whether it can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ec2NodeClassStatus {
    /// Subnets, by zone and id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<ResolvedSubnet>,
    /// Security groups, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<ResolvedSecurityGroup>,
    /// How nodes join the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_family: Option<AmiFamily>,
    /// Images, by architecture, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ResolvedImage>,
    /// The instance profile that nodes get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_profile: Option<String>,
    /// The placement group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement_group: Option<ResolvedPlacementGroup>,
    /// Capacity reservations, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_reservations: Vec<ResolvedCapacityReservation>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, Validated, SubnetsReady, SecurityGroupsReady, ImagesReady, InstanceProfileReady, PlacementGroupReady,
    /// CapacityReservationsReady, KubeletReady.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// A subnet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedSubnet {
    /// Its id.
    pub id: String,
    /// The zone it is in, by its name in this account: `us-east-1a`.
    pub zone: String,
    /// The zone by the name that all accounts share: `use1-az4`.
    #[serde(default, rename = "zoneID", skip_serializing_if = "Option::is_none")]
    pub zone_id: Option<String>,
    /// How many IPv4 addresses were free when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_addresses: Option<i64>,
}

/// A security group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedSecurityGroup {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedImage {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The processors it runs on, as the label `kubernetes.io/arch` says it: `amd64`, `arm64`.
    pub architecture: String,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub created: Option<Time>,
    /// Whether it has the drivers of NVIDIA GPUs, so that nodes with such GPUs start from it and no others do. Absent where it serves
    /// both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nvidia: Option<bool>,
    /// The device names of its volumes that are not encrypted. Nodes get them encrypted, unless `blockDeviceMappings` says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unencrypted_volumes: Vec<String>,
}

/// A placement group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedPlacementGroup {
    /// Its id.
    pub id: String,
    /// How it places: `cluster`, `partition`, `spread`.
    pub strategy: String,
}

/// A capacity reservation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResolvedCapacityReservation {
    /// Its id.
    pub id: String,
    /// What it holds.
    pub instance_type: String,
    /// Where.
    pub zone: String,
    /// The account that owns it.
    #[serde(rename = "ownerID")]
    pub owner_id: String,
    /// Whom it takes.
    pub instance_match_criteria: InstanceMatchCriteria,
    /// Whether it is a Capacity Block, whose instances end before it does.
    #[serde(default)]
    pub capacity_block: bool,
    /// How many more instances it had room for when it was last looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub available_instances: Option<i64>,
    /// When it ends. Never, unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub ends: Option<Time>,
}

fn time_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time", "nullable": true })
}
