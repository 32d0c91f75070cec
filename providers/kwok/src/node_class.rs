//! KwokNodeClass: nodes without machines, for tests and trials.

#![expect(
    clippy::duplicated_attributes,
    reason = "each printer column states its type, and several are strings"
)]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use poolwright_api::{DurationText, conditions_schema};
use poolwright_terms::CapacityType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nodes without machines, for tests and trials: what they look like, how fast they come, and what goes wrong.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "poolwright.dev",
    version = "v1alpha1",
    kind = "KwokNodeClass",
    plural = "kwoknodeclasses",
    category = "poolwright",
    status = "KwokNodeClassStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Nodes without machines, for tests and trials: what is sold, how fast nodes come, and what goes wrong.",
    printcolumn(name = "Sells", type_ = "string", json_path = ".spec.provider"),
    printcolumn(name = "Delay", type_ = "string", json_path = ".spec.registrationDelay"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassSpec {
    /// Which provider's part of the catalogue it sells: `aws`, `gcp`. All of it when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub provider: Option<String>,
    /// How long after the launch a node joins the cluster.
    #[serde(default = "one_second")]
    pub registration_delay: DurationText,
    /// What goes wrong.
    #[serde(default, skip_serializing_if = "Faults::is_empty")]
    pub faults: Faults,
}

impl Default for KwokNodeClassSpec {
    fn default() -> Self {
        Self { provider: None, registration_delay: one_second(), faults: Faults::default() }
    }
}

fn one_second() -> DurationText {
    "1s".into()
}

/// What goes wrong, for tests of what happens then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Faults {
    /// Offerings that are out of stock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub stock_outs: Vec<OfferingSelector>,
    /// Every launch fails with this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_error: Option<LaunchFault>,
    /// Offerings whose instances launch and never join the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub never_register: Vec<OfferingSelector>,
    /// Offerings whose instances are taken back. What is said here when an instance is launched counts for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub interruptions: Vec<InterruptionFault>,
    /// How many GPUs fewer than promised each node advertises.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1000))]
    pub missing_gpus: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Faults {
    /// Whether nothing goes wrong.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Some offerings: those that match every field given. Without fields, all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferingSelector {
    /// Instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Capacity type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
}

/// Some offerings whose instances are taken back: those that match every field given, all without any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptionFault {
    /// Instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// Zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Capacity type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// How long after its launch the cloud says that it takes an instance back.
    pub after: DurationText,
    /// How long after that it is gone.
    #[serde(default = "two_minutes")]
    pub notice: DurationText,
}

fn two_minutes() -> DurationText {
    "2m".into()
}

/// How a launch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum LaunchFault {
    /// The account may not have more.
    Quota,
    /// Too many calls.
    Throttled,
    /// The request can never work.
    Invalid,
    /// Something that passes.
    Transient,
}

/// Whether a node class can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassStatus {
    /// Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
