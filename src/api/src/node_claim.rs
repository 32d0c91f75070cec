//! NodeClaim: the stored intent to have one node, from purchase to termination.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use poolwright_terms::{CapacityType, InterruptionKind, NodeClassRef, Taint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::common::{Deadlines, conditions_schema, time_schema};
use crate::node_pool::ReadinessGate;

/// One node wanted. Written by Poolwright before anything is bought, and never changed afterwards.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "poolwright.dev",
    version = "v1alpha1",
    kind = "NodeClaim",
    shortname = "nc",
    category = "poolwright",
    status = "NodeClaimStatus",
    derive = "PartialEq",
    cel,
    doc = "One node wanted, from intent to termination. Written by Poolwright before anything is bought.",
    printcolumn(name = "Type", type_ = "string", json_path = ".status.offering.instanceType"),
    printcolumn(name = "Zone", type_ = "string", json_path = ".status.offering.zone"),
    printcolumn(name = "Capacity", type_ = "string", json_path = ".status.offering.capacityType"),
    printcolumn(name = "USD/H", type_ = "string", json_path = ".status.price.usdPerHour"),
    printcolumn(name = "Node", type_ = "string", json_path = ".status.nodeName"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Initialized")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Interrupted",
        type_ = "string",
        json_path = ".status.interruption.kind",
        priority = "1"
    ),
    printcolumn(
        name = "Pool",
        type_ = "string",
        json_path = r".metadata.labels.poolwright\.dev/nodepool",
        priority = "1"
    ),
    printcolumn(name = "ID", type_ = "string", json_path = ".status.providerID", priority = "1")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("self == oldSelf")
        .message("the spec of a NodeClaim cannot change; delete the NodeClaim, and Poolwright plans anew")
)]
pub struct NodeClaimSpec {
    /// What to launch the node with.
    pub node_class_ref: NodeClassRef,
    /// What to order: the planned offering first, then those to take when it is out of stock, best first.
    #[schemars(length(min = 1, max = 60))]
    pub offerings: Vec<ClaimOffering>,
    /// Labels the node gets from the pool's template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations the node gets from the pool's template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Taints the node keeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub taints: Vec<Taint>,
    /// Taints the node has at first and somebody else lifts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub startup_taints: Vec<Taint>,
    /// Conditions that the node must have as true before it opens to pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub readiness_gates: Vec<ReadinessGate>,
    /// The pods it was planned for, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 317), regex(pattern = "^[^/]+/[^/]+$")))]
    pub pods: Vec<String>,
    /// How long each stage of its start may take.
    #[serde(default)]
    pub deadlines: Deadlines,
}

/// One thing to order, and what its node will advertise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimOffering {
    /// Instance type.
    #[schemars(length(min = 1, max = 100))]
    pub instance_type: String,
    /// Zone.
    #[schemars(length(min = 1, max = 100))]
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
    /// Its price when planned, a decimal number of US dollars per hour; absent when it is unknown and the pool allows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub usd_per_hour: Option<String>,
    /// What the node must advertise as allocatable, exactly.
    pub allocatable: BTreeMap<String, Amount>,
}

/// What names an offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferingRef {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
}

/// What a node costs, and who says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimPrice {
    /// A decimal number of US dollars per hour.
    pub usd_per_hour: String,
    /// Who said so.
    pub source: String,
    /// The day it was true, as `2026-10-01`; absent where the source does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// What its cloud has said of an instance: that it takes it back, or that something else is about to happen to it. Later notices are
/// merged into it: the earliest deadline and the most certain kind stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// What happens to it.
    pub kind: InterruptionKind,
    /// When the cloud said so first.
    #[schemars(schema_with = "time_schema")]
    pub noticed: Time,
    /// When it happens; absent where the cloud does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub deadline: Option<Time>,
    /// What the cloud says, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// What was bought for a claim, and how far it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The cloud's id of the instance, equal to `spec.providerID` of its node.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The name of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// What was really ordered: one of the spec's offerings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offering: Option<OfferingRef>,
    /// What that costs; absent when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ClaimPrice>,
    /// What the node promises to advertise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Amount>,
    /// What its cloud has said of the instance: that it takes it back, for instance. Absent as long as it has said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// Launched, Registered, Initialized, Empty, Drifted, Unhealthy, Interrupted, Disrupting, Drained, VolumesDetached, InstanceTerminating.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
