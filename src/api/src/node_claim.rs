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

/// The stored intent to have one node. Poolwright creates it before it buys the node, and never changes its spec.
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
    /// The node class to launch the node with.
    pub node_class_ref: NodeClassRef,
    /// The offerings to try: the planned one first, then the alternatives for a stock-out, best first.
    #[schemars(length(min = 1, max = 60))]
    pub offerings: Vec<ClaimOffering>,
    /// The number of offerings, from the first on, that the first launch call hands to the cloud together, because `minValues` of
    /// the pool asks for a choice. The cloud may launch any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 60))]
    pub together: Option<i32>,
    /// Labels of the node from the pool's template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the node from the pool's template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Permanent taints of the node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub taints: Vec<Taint>,
    /// Taints of the new node that another component removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub startup_taints: Vec<Taint>,
    /// Conditions that must be true before the node opens to pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub readiness_gates: Vec<ReadinessGate>,
    /// The planned pods, as `namespace/name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), inner(length(max = 317), regex(pattern = "^[^/]+/[^/]+$")))]
    pub pods: Vec<String>,
    /// How long each stage of the node's start may take.
    #[serde(default)]
    pub deadlines: Deadlines,
}

/// An offering, and the resources that its node will advertise.
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
    /// The planned price in US dollars per hour, as a decimal. Absent if it is unknown and the pool allows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 40), regex(pattern = r"^[0-9]+(\.[0-9]+)?$"))]
    pub usd_per_hour: Option<String>,
    /// The allocatable resources that the node must advertise, exactly.
    pub allocatable: BTreeMap<String, Amount>,
}

/// The identity of an offering.
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

/// The price of a node, with its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimPrice {
    /// US dollars per hour, as a decimal.
    pub usd_per_hour: String,
    /// The source of the price.
    pub source: String,
    /// The date of the price, such as `2026-10-01`. Absent if the source does not give one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
}

/// The cloud's notice that it takes back an instance, or that another event is imminent. Later notices are merged into it: the
/// earliest deadline and the most certain kind are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interruption {
    /// The kind of the interruption.
    pub kind: InterruptionKind,
    /// When the cloud first gave notice.
    #[schemars(schema_with = "time_schema")]
    pub noticed: Time,
    /// When the interruption happens. Absent if the cloud does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time_schema")]
    pub deadline: Option<Time>,
    /// The cloud's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// The instance of a claim and its progress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeClaimStatus {
    /// The cloud's id of the instance, equal to `spec.providerID` of its node.
    #[serde(default, rename = "providerID", skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// The name of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// The offering that was launched: one of those in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offering: Option<OfferingRef>,
    /// The price of that offering. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<ClaimPrice>,
    /// The allocatable resources that the node promises.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub allocatable: BTreeMap<String, Amount>,
    /// The cloud's notice of an interruption. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// Launched, Registered, Initialized, Empty, Drifted, Unhealthy, Interrupted, Disrupting, Drained, VolumesDetached, InstanceTerminating.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
