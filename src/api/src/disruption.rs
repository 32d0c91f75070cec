//! The disruption policy: which nodes with pods may be replaced or emptied, and how many at a time.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{DurationText, ExpiryText};

/// Which nodes with pods are replaced or emptied, and how many at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disruption {
    /// Whether pods are moved so that they cost less.
    #[serde(default)]
    pub consolidation_policy: ConsolidationPolicy,
    /// The minimum age of a node's newest pod before the node's pods are moved: a duration such as `5m`, or `Never`.
    #[serde(default = "five_minutes")]
    pub consolidate_after: ExpiryText,
    /// The time within which a move must earn back its cost: work that is lost and repeated, the start time of pods, and the time
    /// during which both old and new nodes are paid.
    #[serde(default = "one_hour")]
    pub payback_within: DurationText,
    /// Whether a node admits only the pods that Poolwright plans for it while newcomers would run cheaper elsewhere. Nobody is
    /// evicted.
    #[serde(default)]
    pub retire: RetirePolicy,
    /// How many nodes may be disrupted at a time. The most restrictive budget in force counts. The default is a tenth of the
    /// pool's nodes, for all reasons except `Empty`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub budgets: Vec<DisruptionBudget>,
    /// Replaces a node that has had one of these conditions for too long. An empty list turns repair off. Budgets do not apply.
    /// If more than a fifth of the pool's nodes are unhealthy at a time, none is replaced.
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
            retire: RetirePolicy::default(),
            budgets: Vec::new(),
            repair: lost_nodes(),
        }
    }
}

/// Returns the default repair rules. A kubelet that does not respond or is not healthy may recover. Half an hour is the delay of
/// other autoscalers' node repair.
fn lost_nodes() -> Vec<RepairRule> {
    let rule = |status| RepairRule { condition: "Ready".to_owned(), status, after: "30m".into() };
    vec![rule(NodeConditionStatus::False), rule(NodeConditionStatus::Unknown)]
}

/// Replaces a node that has had this condition for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepairRule {
    /// The type of the node condition, such as `Ready` or one that a node problem detector reports.
    #[schemars(length(min = 1, max = 316))]
    pub condition: String,
    /// The unhealthy status.
    pub status: NodeConditionStatus,
    /// How long a node may have this status before it is replaced.
    pub after: DurationText,
}

/// The status of a node condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NodeConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The status was not reported for too long.
    Unknown,
}

fn five_minutes() -> ExpiryText {
    "5m".into()
}

fn one_hour() -> DurationText {
    "1h".into()
}

/// Whether pods are moved so that they cost less.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ConsolidationPolicy {
    /// Only empty nodes are terminated; pods are not moved.
    WhenEmpty,
    /// Pods are moved if that saves enough.
    #[default]
    WhenEmptyOrUnderutilized,
}

/// Whether nodes close to newcomers that would run cheaper elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum RetirePolicy {
    /// A node closes to newcomers while they would run cheaper elsewhere, and is terminated when its pods have ended.
    #[default]
    WhenCheaper,
    /// Nodes admit every pod that fits.
    Never,
}

/// The reason for disrupting a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum DisruptionReason {
    /// The node has no pods.
    Empty,
    /// The node's pods cost less elsewhere.
    Underutilized,
    /// The node no longer matches its pool.
    Drifted,
    /// The node is older than its pool allows.
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
    /// The reasons that the budget applies to; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub reasons: Vec<DisruptionReason>,
    /// When the budget is in force: a cron expression of five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
    /// If absent, always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as `Europe/Berlin`. The default is UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub time_zone: Option<String>,
    /// How long the budget is in force after each time of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}
