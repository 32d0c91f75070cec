//! KwokNodeClass: the custom resource for nodes without machines.

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

/// Nodes without machines, for tests and trials: the offerings, the registration delay and injected faults.
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
    /// The provider whose offerings in the catalogue the class sells: `aws`, `gcp`. The default is the whole catalogue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub provider: Option<String>,
    /// The time from the launch of an instance until its node joins the cluster.
    #[serde(default = "one_second")]
    pub registration_delay: DurationText,
    /// Faults to inject.
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

/// Faults to inject for tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Faults {
    /// Offerings that are out of stock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub stock_outs: Vec<OfferingSelector>,
    /// The error with which every launch fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_error: Option<LaunchFault>,
    /// Offerings whose instances launch but never join the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub never_register: Vec<OfferingSelector>,
    /// Offerings whose instances are interrupted. The value at the time of the launch applies to an instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    pub interruptions: Vec<InterruptionFault>,
    /// The number of GPUs that each node lacks.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0, max = 1000))]
    pub missing_gpus: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes the field by reference")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

impl Faults {
    /// Returns whether there are no faults.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Selects the offerings that match all given fields. An empty selector selects all offerings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OfferingSelector {
    /// The instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The capacity type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
}

/// Interrupts the instances of the offerings that match all given fields. Without fields it interrupts all instances.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptionFault {
    /// The instance type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_type: Option<String>,
    /// The zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The capacity type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_type: Option<CapacityType>,
    /// The time from the launch of an instance until the announcement of its interruption.
    pub after: DurationText,
    /// The time from the announcement until the termination.
    #[serde(default = "two_minutes")]
    pub notice: DurationText,
}

fn two_minutes() -> DurationText {
    "2m".into()
}

/// The error of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum LaunchFault {
    /// The quota is exceeded.
    Quota,
    /// The call is throttled.
    Throttled,
    /// The request can never succeed.
    Invalid,
    /// The error is temporary.
    Transient,
}

/// The status of a KwokNodeClass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KwokNodeClassStatus {
    /// The condition Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
