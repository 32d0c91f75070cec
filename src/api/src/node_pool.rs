//! NodePool: the nodes that Poolwright may buy, their limits, labels and taints.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{CustomResource, KubeSchema};
use poolwright_terms::{NodeClassRef, Taint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::common::{Deadlines, conditions_schema, time_schema};
use crate::disruption::Disruption;
use crate::duration::{DurationText, ExpiryText, IdleText};
use crate::units::Units;

/// The nodes that Poolwright may buy, how many, and their labels and taints.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "poolwright.dev",
    version = "v1alpha1",
    kind = "NodePool",
    shortname = "np",
    category = "poolwright",
    status = "NodePoolStatus",
    derive = "PartialEq",
    cel,
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.nodes"),
    doc = "What may be bought, how much of it, and how its nodes look.",
    validation = Rule::new("size(self.metadata.name) <= 50")
        .message("the name of a NodePool has at most 50 characters: the names of its nodes begin with it"),
    printcolumn(name = "NodeClass", type_ = "string", json_path = ".spec.template.spec.nodeClassRef.name"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes"),
    printcolumn(name = "GPUs", type_ = "string", json_path = r".status.resources.nvidia\.com/gpu"),
    printcolumn(name = "Planned/H", type_ = "string", json_path = ".status.plannedUsdPerHour"),
    printcolumn(name = "USD/H", type_ = "string", json_path = ".status.usdPerHour"),
    printcolumn(name = "Ready", type_ = "string", json_path = r#".status.conditions[?(@.type=="Ready")].status"#),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Weight", type_ = "integer", json_path = ".spec.weight", priority = "1")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("!has(self.replicas) || !has(self.weight) || self.weight == 0")
        .message("a pool with replicas has no weight: it buys nothing for pods; remove one of the two"),
    validation = Rule::new("!has(self.replicas) || !has(self.buffer) || size(self.buffer) == 0")
        .message("a pool with replicas has no buffer: it has as many nodes as it says; remove one of the two"),
    validation = Rule::new("!has(self.replicas) || !has(self.spot)")
        .message("a pool with replicas has no spot rules: it buys the cheapest offering only; remove one of the two"),
    validation = Rule::new("!has(self.replicas) || !has(self.monthlyBudget) || self.monthlyBudget.action != 'StopBuying'")
        .message("a pool with replicas cannot stop buying: it replaces its nodes; write the action Warn"),
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)")
        .message("a pool cannot become static, nor cease to be, for that would change what its nodes are for: make a new NodePool")
)]
pub struct NodePoolSpec {
    /// The labels, taints and offerings of the pool's nodes.
    pub template: NodeTemplate,
    /// Pods go to the pool with the highest weight whose nodes fit them.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub weight: i32,
    /// Limits over all nodes of the pool, including those that are starting: any resource (`cpu`, `memory`, `nvidia.com/gpu`),
    /// `nodes`, and `usdPerHour` (a decimal number in quotes).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    // Before Kubernetes 1.36, the API server estimates the cost of a rule as if such a value had 3 MiB. So rules that read values
    // read little, and there are few.
    #[schemars(extend("maxProperties" = 15))]
    #[x_kube(
        validation = Rule::new("self.all(k, isQuantity(string(self[k])))")
            .message("limits must be quantities, such as `nodes: 10`, `nvidia.com/gpu: 16`, `memory: 2Ti` or `usdPerHour: \"40\"`"),
        validation = Rule::new("self.all(k, !string(self[k]).startsWith('-'))")
            .message("limits must not be negative"),
        validation = Rule::new("!('nodes' in self) || string(self['nodes']).matches('^[0-9]+$')")
            .message("the limit on nodes must be a whole number"),
        validation = Rule::new("!('usdPerHour' in self) || string(self['usdPerHour']).matches('^[0-9]+([.][0-9]+)?$')")
            .message("the limit usdPerHour must be a plain decimal number of US dollars per hour, such as \"40\" or \"12.50\"")
    )]
    pub limits: BTreeMap<String, Amount>,
    /// A budget for each calendar month (UTC), beside the limits. Poolwright counts what the nodes of the pool cost, and forecasts
    /// the month.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_budget: Option<MonthlyBudget>,
    /// Makes the pool static: it keeps exactly this many nodes of the cheapest offering that meets the requirements, regardless
    /// of pending pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<i32>,
    /// Capacity that is kept free on nodes of the pool for future pods, always or by a schedule. Pods may use it at once; then it
    /// is restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub buffer: Vec<BufferUnits>,
    /// When empty nodes are terminated.
    #[serde(default)]
    pub scale_to_zero: ScaleToZero,
    /// Rules on the spot nodes of the pool.
    #[serde(default, skip_serializing_if = "Spot::is_empty")]
    pub spot: Spot,
    /// Which nodes with pods are replaced or emptied, and how many at a time.
    #[serde(default)]
    pub disruption: Disruption,
    /// Instance types that may be bought although their price is unknown. Other types without a known price are never bought.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 100)))]
    pub allow_unknown_prices: Vec<String>,
}

/// A budget for each calendar month (UTC).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("string(self.usd).matches('^[0-9]+([.][0-9]+)?$')")
        .message("monthlyBudget.usd must be a decimal number of US dollars, such as 1250.50")
)]
pub struct MonthlyBudget {
    /// US dollars for one month (a decimal number in quotes).
    pub usd: Amount,
    /// What happens when it is spent.
    #[serde(default)]
    pub action: BudgetAction,
}

/// What happens when a monthly budget is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum BudgetAction {
    /// A condition and an event say so.
    #[default]
    Warn,
    /// The pool also buys no more nodes in that month. Its nodes and their pods stay.
    StopBuying,
}

/// Units of free capacity of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.schedule) == has(self.duration)")
        .message("a buffer has a schedule and a duration, or neither: it is kept for that long from each time of the schedule on"),
    validation = Rule::new("!has(self.timeZone) || has(self.schedule)")
        .message("the timeZone of a buffer is that of its schedule: write one, or remove it"),
    validation = Rule::new("!has(self.maxUnits) || string(self.units) == 'auto'")
        .message("maxUnits is the most that auto keeps; write auto for units, or remove maxUnits")
)]
pub struct BufferUnits {
    /// The number of units, or `auto` for as many as pay.
    pub units: Units,
    /// The most units that `auto` keeps. The default is 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 20))]
    pub max_units: Option<i32>,
    /// The requests of one unit, like those of a pod: `nvidia.com/gpu: 1`, `cpu: 4`.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 15))]
    #[x_kube(
        validation = Rule::new("self.all(k, isQuantity(string(self[k])))")
            .message("requests must be quantities, such as `nvidia.com/gpu: 1`, `cpu: 4` or `memory: 16Gi`"),
        validation = Rule::new("self.all(k, !string(self[k]).startsWith('-'))")
            .message("requests must not be negative")
    )]
    pub requests: BTreeMap<String, Amount>,
    /// When the capacity is kept: a cron expression of five fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`. If
    /// absent, always.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as `Europe/Berlin`. The default is UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub time_zone: Option<String>,
    /// How long the capacity is kept after each time of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}

/// A node condition that must be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// The type of the condition.
    #[schemars(length(min = 1, max = 316))]
    pub condition_type: String,
}

/// The template of the pool's nodes, and their offerings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default, skip_serializing_if = "NodeTemplateMetadata::is_empty")]
    pub metadata: NodeTemplateMetadata,
    /// Taints, requirements and the node class.
    pub spec: NodeTemplateSpec,
}

/// Labels and annotations of the pool's nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateMetadata {
    /// Labels of the nodes. To choose zone, instance type, GPU model and other properties of an offering, use requirements
    /// instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 100,
        "additionalProperties" = serde_json::json!({
            "type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        })
    ))]
    #[x_kube(
        validation = Rule::new(
            "self.all(k, !k.startsWith('poolwright.dev/') && !(k in ['kubernetes.io/hostname', \
             'node.kubernetes.io/instance-type', 'topology.kubernetes.io/zone', 'topology.kubernetes.io/region', \
             'kubernetes.io/arch', 'kubernetes.io/os']))"
        )
        .message("labels that an offering, a node or Poolwright decides (poolwright.dev/*, kubernetes.io/hostname, \
                  kubernetes.io/arch, kubernetes.io/os, node.kubernetes.io/instance-type, topology.kubernetes.io/zone, \
                  topology.kubernetes.io/region) cannot be set; choose among offerings with requirements"),
        validation = Rule::new(
            "self.all(k, size(k) <= 316 && \
             k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))"
        )
        .message("label keys must be as Kubernetes wants them: an optional DNS prefix and `/`, then at most 63 letters, \
                  digits, `-`, `_` and `.`")
    )]
    pub labels: BTreeMap<String, String>,
    /// Annotations of the nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend(
        "maxProperties" = 100,
        "additionalProperties" = serde_json::json!({ "type": "string", "maxLength": 16384 })
    ))]
    #[x_kube(
        validation = Rule::new("self.all(k, !k.startsWith('poolwright.dev/'))")
            .message("annotations under poolwright.dev/ are Poolwright's own and cannot be set"),
        validation = Rule::new(
            "self.all(k, size(k) <= 316 && \
             k.matches('^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))"
        )
        .message("annotation keys must be as Kubernetes wants them: an optional DNS prefix and `/`, then at most 63 \
                  letters, digits, `-`, `_` and `.`")
    )]
    pub annotations: BTreeMap<String, String>,
}

impl NodeTemplateMetadata {
    /// Returns whether it has no labels and no annotations.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// Taints and requirements of the pool's nodes, and their node class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!has(self.taints) || !has(self.startupTaints) || \
         self.taints.all(t, !self.startupTaints.exists(s, s.key == t.key && s.effect == t.effect))"
    )
    .message("a taint cannot be in both taints and startupTaints: a node has each key and effect once")
)]
pub struct NodeTemplateSpec {
    /// Permanent taints of the nodes; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))")
            .message("taints must be unique by key and effect"),
        validation = Rule::new("self.all(t, !t.key.startsWith('poolwright.dev/'))")
            .message("taints under poolwright.dev/ are Poolwright's own and cannot be set")
    )]
    pub taints: Vec<Taint>,
    /// Taints of new nodes that another component removes, such as a driver installer or a network plugin. Pods need not tolerate
    /// them; the node opens to pods when they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))")
            .message("startupTaints must be unique by key and effect"),
        validation = Rule::new("self.all(t, !t.key.startsWith('poolwright.dev/'))")
            .message("startupTaints under poolwright.dev/ are Poolwright's own and cannot be set")
    )]
    pub startup_taints: Vec<Taint>,
    /// Conditions that must be true before a new node opens to pods, as reported by a driver installer, a GPU validator or a
    /// network plugin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Requirements on offerings and nodes; all must be met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(
        validation = Rule::new("self.all(r, self.exists_one(s, s.key == r.key && s.operator == r.operator))")
            .message("requirements must be unique by key and operator; write the values of both in one")
    )]
    pub requirements: Vec<Requirement>,
    /// The node class to launch the nodes with. Group and kind cannot change; create a new pool instead.
    #[x_kube(
        validation = Rule::new("self.group == oldSelf.group")
            .message("nodeClassRef.group cannot change; make a new NodePool for another kind of node class"),
        validation = Rule::new("self.kind == oldSelf.kind")
            .message("nodeClassRef.kind cannot change; make a new NodePool for another kind of node class")
    )]
    pub node_class_ref: NodeClassRef,
    /// How long each stage of a node's start may take.
    #[serde(default)]
    pub deadlines: Deadlines,
    /// The maximum age of a node before it is replaced: a duration such as `720h`, or `Never`.
    #[serde(default = "never")]
    pub expire_after: ExpiryText,
}

fn never() -> ExpiryText {
    ExpiryText::NEVER.into()
}

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent, or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is greater than the value.
    Gt,
    /// The label is less than the value.
    Lt,
    /// The label is greater than or equal to the value.
    Gte,
    /// The label is less than or equal to the value.
    Lte,
}

/// A requirement on one label of the offering or the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new(
        "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)"
    )
    .message("the operators In and NotIn need at least one value"),
    validation = Rule::new(
        "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0"
    )
    .message("the operators Exists and DoesNotExist take no values"),
    validation = Rule::new(
        "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || \
         (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[0-9]{1,18}$'))"
    )
    .message("the operators Gt, Lt, Gte and Lte take exactly one value, a whole number of zero or more"),
    validation = Rule::new("!(self.key in ['kubernetes.io/hostname', 'poolwright.dev/nodepool'])")
        .message("a requirement cannot be on kubernetes.io/hostname or poolwright.dev/nodepool: no offering decides them"),
    validation = Rule::new(
        "!has(self.minValues) || self.operator != 'In' || (has(self.values) && size(self.values) >= self.minValues)"
    )
    .message("minValues asks for more values than the requirement allows; add values, or lower minValues"),
    validation = Rule::new("!has(self.minValues) || self.operator != 'DoesNotExist'")
        .message("a label that must be absent has no values; remove minValues")
)]
pub struct Requirement {
    /// The key of the label: `node.kubernetes.io/instance-type`, `poolwright.dev/gpu-model`, ...
    #[schemars(
        length(min = 1, max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    )]
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// Values: one or more for In and NotIn, none for Exists and DoesNotExist, one number for Gt, Lt, Gte and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(max = 63), regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"))
    )]
    pub values: Vec<String>,
    /// The least number of different values of the label among the offerings that one launch call lets the cloud choose from. A
    /// node for which that is impossible is not bought (`--min-values-policy Strict`), or with as many as possible (`BestEffort`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub min_values: Option<i32>,
}

/// When empty nodes are terminated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleToZero {
    /// How long a node stays empty before it is terminated: `auto` for the time that costs least, a duration such as `5m`, or
    /// `Never`.
    #[serde(default = "auto")]
    pub after: IdleText,
}

impl Default for ScaleToZero {
    fn default() -> Self {
        Self { after: auto() }
    }
}

fn auto() -> IdleText {
    IdleText::AUTO.into()
}

/// Rules on the spot nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spot {
    /// The least number of nodes, or the least percentage of the pool's nodes, that are on demand while any of them is spot: `"3"`
    /// or `20%`. Reserved nodes count as on demand. No purchase breaks it, and no pods move to save money if that would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]{1,9}|[0-9]{1,2}%|100%)$"))]
    pub on_demand_floor: Option<String>,
    /// The largest percentage of the pool's spot nodes that may be of one instance type in one zone (rounded up to whole nodes),
    /// such as `40%`. No purchase exceeds it. An alternative counts once it is launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([1-9][0-9]?|100)%$"))]
    pub max_share: Option<String>,
}

impl Spot {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The nodes of a pool, and its health.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// The number of nodes, including those that are starting.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// The total resources of these nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Amount>,
    /// The total price of these nodes per hour, as a decimal. A trailing `+` means that some prices are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<String>,
    /// The total planned price of these nodes: for each, the price in the plan that bought it. A node that was bought because
    /// pods lost the place of an earlier plan counts as zero. The difference to `usdPerHour` is the cost that the plans did not
    /// foresee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_usd_per_hour: Option<String>,
    /// What was spent of the monthly budget. Absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monthly_spend: Option<MonthlySpend>,
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, ValidationSucceeded, NodeClassReady, LimitReached, BudgetOnTrack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}

/// What the nodes of a pool cost in a calendar month (UTC). The controller continues it, also after a restart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MonthlySpend {
    /// The month, such as `2026-11`.
    pub month: String,
    /// US dollars spent until `countedUntil`, as a decimal.
    pub usd: String,
    /// US dollars that the month will cost at the prices of now, as a decimal.
    pub forecast_usd: String,
    /// When counting began. Nodes that were gone by then do not count.
    #[schemars(schema_with = "time_schema")]
    pub counted_from: Time,
    /// Until when every second counts.
    #[schemars(schema_with = "time_schema")]
    pub counted_until: Time,
}
