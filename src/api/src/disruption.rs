//! The disruption policy: which working nodes may be replaced or emptied, and how many at a time.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{DurationText, ExpiryText};

/// Which nodes with work are replaced or emptied, and how many at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Whether work is moved so that the same work costs less.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// How old the newest pod of a node must be before its work is moved: a duration such as `5m`, or `Never`.
    #[serde(default = "five_minutes")]
    pub consolidate_after: ExpiryText,
    /// Within which time a move must have earned back what it costs: work that is lost and done again, the time that pods take to
    /// start, and what is paid for old and new nodes at once.
    #[serde(default = "one_hour")]
    pub payback_within: DurationText,
    /// How many nodes may be disrupted at a time; the most restrictive that is in force counts. Without any, a tenth of the pool's nodes,
    /// for every reason but `Empty`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub budgets: Vec<DisruptionBudget>,
    /// Which conditions of its nodes are borne for how long before a node is replaced; an empty list for all conditions, for ever. Budgets do not
    /// bound it; while more than a fifth of the pool's nodes are sick at a time, none is replaced.
    #[serde(default = "lost_nodes")]
    #[schemars(length(max = 30))]
    pub repair: Vec<RepairRule>,
}

impl Default for Disruption {
    fn default() -> Self {
        Self {
            consolidation_policy: ConsolidationPolicy::default(),
            consolidate_after: five_minutes(),
            payback_within: one_hour(),
            budgets: Vec::new(),
            repair: lost_nodes(),
        }
    }
}

/// A kubelet that says nothing, or that it is not well, may come back; half an hour is what the node repair of other autoscalers gives it.
fn lost_nodes() -> Vec<RepairRule> {
    let rule = |status| RepairRule { condition: "Ready".to_owned(), status, after: "30m".into() };
    vec![rule(NodeConditionStatus::False), rule(NodeConditionStatus::Unknown)]
}

/// A node with this condition is replaced after a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairRule {
    /// The type of a node's condition, such as `Ready` or one that a node problem detector reports.
    #[schemars(length(min = 1, max = 316))]
    pub condition: String,
    /// The status that is a problem.
    pub status: NodeConditionStatus,
    /// For how long it is borne.
    pub after: DurationText,
}

/// The status of a node's condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NodeConditionStatus {
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody has said for too long.
    Unknown,
}

fn five_minutes() -> ExpiryText {
    "5m".into()
}

fn one_hour() -> DurationText {
    "1h".into()
}

/// Whether work is moved so that the same work costs less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Nodes go when they have no work; work is not moved.
    #[default]
    WhenEmpty,
    /// Work is moved where that pays.
    WhenEmptyOrUnderutilized,
}

/// Why a node is disrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// It has no work.
    Empty,
    /// Its work costs less elsewhere.
    Underutilized,
    /// It is not what its pool says any more.
    Drifted,
    /// It is older than its pool allows.
    Expired,
}

/// How many nodes of a pool may be disrupted at a time, for some reasons, at some times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.schedule) == has(self.duration)")
        .message("a budget has a schedule and a duration, or neither: it is in force for that long from each time of the schedule on"),
    validation = Rule::new("!has(self.timeZone) || has(self.schedule)")
        .message("timeZone is that of a schedule: write one, or remove it")
)]
pub struct DisruptionBudget {
    /// A number of nodes, or a percentage of the pool's nodes (rounded up): `"5"`, `"10%"`, `"0"` for none.
    #[schemars(regex(pattern = r"^([0-9]{1,9}|[0-9]{1,2}%|100%)$"))]
    pub nodes: String,
    /// For which reasons; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub reasons: Vec<DisruptionReason>,
    /// When it is in force, as a cron expression of five fields or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; always without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as `Europe/Berlin`; UTC without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub time_zone: Option<String>,
    /// For how long it is in force from each time of the schedule on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}
