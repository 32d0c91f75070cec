//! Types that pools and claims share: node class references, taints and deadlines.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::duration::DurationText;

/// How long each stage of a node's start may take. If a stage takes longer, the instance is terminated, its offering is held back
/// for a while, and its pods are planned again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deadlines {
    /// From the creation of the claim to the launch of the instance.
    #[serde(default = "five_minutes")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("deadlines.launch must be longer than zero"))]
    pub launch: DurationText,
    /// From the launch until the node has joined the cluster.
    #[serde(default = "fifteen_minutes")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("deadlines.registration must be longer than zero"))]
    pub registration: DurationText,
    /// From joining until the node is ready and advertises all promised resources.
    #[serde(default = "fifteen_minutes")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("deadlines.initialization must be longer than zero"))]
    pub initialization: DurationText,
    /// From the deletion of the claim to the end of its instance. Then pods that are protected by budgets or annotations are
    /// deleted, early enough for the grace period of each. If absent, Poolwright waits for these pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = Rule::new("duration(self) > duration('0s')").message("deadlines.termination must be longer than zero"))]
    pub termination: Option<DurationText>,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            launch: five_minutes(),
            registration: fifteen_minutes(),
            initialization: fifteen_minutes(),
            termination: None,
        }
    }
}

fn five_minutes() -> DurationText {
    "5m".into()
}

fn fifteen_minutes() -> DurationText {
    "15m".into()
}

/// Returns the schema of `status.conditions`: like Kubernetes' own, merged by type.
pub fn conditions_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "description": "What is true of this object, with reasons. One entry per type.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": { "type": "string", "maxLength": 316 },
                "status": { "type": "string", "enum": ["True", "False", "Unknown"] },
                "observedGeneration": { "type": "integer", "format": "int64", "minimum": 0 },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "reason": { "type": "string", "minLength": 1, "maxLength": 1024 },
                "message": { "type": "string", "maxLength": 32768 },
            },
        },
    })
}

/// Returns the schema of a time.
pub fn time_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time" })
}
