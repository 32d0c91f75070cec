//! NodePool: the nodes that Poolwright may buy, the limits, and the labels and taints of its nodes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use poolwright_terms::{NodeClassRef, Taint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::amount::Amount;
use crate::common::{Deadlines, conditions_schema};
use crate::disruption::Disruption;
use crate::duration::{DurationText, ExpiryText};

/// What may be bought, how much of it, and how its nodes look.
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
    validation = Rule::new("has(self.replicas) == has(oldSelf.replicas)")
        .message("a pool cannot become static, nor cease to be, for that would change what its nodes are for: make a new NodePool")
)]
pub struct NodePoolSpec {
    /// How its nodes look and which offerings they may be.
    pub template: NodeTemplate,
    /// Pods go to the pool with the highest weight that can hold them.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub weight: i32,
    /// Ceilings over all nodes of the pool, those on their way included: any resource (`cpu`, `memory`,
    /// `nvidia.com/gpu`), `nodes`, and `usdPerHour` (a decimal number in quotes).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    // Before Kubernetes 1.36 the API server takes such a value for one of 3 MiB when it reckons what a rule may cost: rules that
    // read values read little, and there are few.
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
    /// A static pool: it has so many nodes, whatever waits, of the cheapest offering that meets the requirements, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000))]
    pub replicas: Option<i32>,
    /// Room that is kept free on nodes of the pool for work that may come, always or by a schedule. Pods use it at once; it is made
    /// anew behind them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub buffer: Vec<BufferUnits>,
    /// When nodes without work go.
    #[serde(default)]
    pub scale_to_zero: ScaleToZero,
    /// Which nodes with work are replaced or emptied, and how many at a time.
    #[serde(default)]
    pub disruption: Disruption,
    /// Instance types that may be bought although their price is unknown. All others with an unknown price are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 100)))]
    pub allow_unknown_prices: Vec<String>,
}

/// So many spare units of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = Rule::new("has(self.schedule) == has(self.duration)")
        .message("a buffer has a schedule and a duration, or neither: it is kept for that long from each time of the schedule on"),
    validation = Rule::new("!has(self.timeZone) || has(self.schedule)")
        .message("the timeZone of a buffer is that of its schedule: write one, or remove it")
)]
pub struct BufferUnits {
    /// How many.
    #[schemars(range(min = 1, max = 100))]
    pub units: i32,
    /// What one unit takes of a node, as a pod requests it: `nvidia.com/gpu: 1`, `cpu: 4`.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 15))]
    #[x_kube(
        validation = Rule::new("self.all(k, isQuantity(string(self[k])))")
            .message("requests must be quantities, such as `nvidia.com/gpu: 1`, `cpu: 4` or `memory: 16Gi`"),
        validation = Rule::new("self.all(k, !string(self[k]).startsWith('-'))")
            .message("requests must not be negative")
    )]
    pub requests: BTreeMap<String, Amount>,
    /// When it is kept, as a cron expression of five fields or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`; always without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub schedule: Option<String>,
    /// The time zone of the schedule, such as `Europe/Berlin`; UTC without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub time_zone: Option<String>,
    /// For how long it is kept from each time of the schedule on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<DurationText>,
}

/// A condition of nodes that must be true.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGate {
    /// The type of the condition.
    #[schemars(length(min = 1, max = 316))]
    pub condition_type: String,
}

/// How nodes of a pool look and which offerings they may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Labels and annotations of the nodes.
    #[serde(default, skip_serializing_if = "NodeTemplateMetadata::is_empty")]
    pub metadata: NodeTemplateMetadata,
    /// Taints, requirements and what to launch with.
    pub spec: NodeTemplateSpec,
}

/// Labels and annotations of the nodes of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplateMetadata {
    /// Labels the nodes get. What an offering decides (zone, instance type, GPU model, ...) is chosen with requirements
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
    /// Annotations the nodes get.
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
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// Taints and requirements of the nodes of a pool, and what to launch them with.
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
    /// Taints the nodes keep; pods must tolerate them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))")
            .message("taints must be unique by key and effect"),
        validation = Rule::new("self.all(t, !t.key.startsWith('poolwright.dev/'))")
            .message("taints under poolwright.dev/ are Poolwright's own and cannot be set")
    )]
    pub taints: Vec<Taint>,
    /// Taints the nodes have at first and somebody else (a driver installer, a network plugin) lifts. Pods need not
    /// tolerate them; the node opens to pods when they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    #[x_kube(
        validation = Rule::new("self.all(t, self.exists_one(u, u.key == t.key && u.effect == t.effect))")
            .message("startupTaints must be unique by key and effect"),
        validation = Rule::new("self.all(t, !t.key.startsWith('poolwright.dev/'))")
            .message("startupTaints under poolwright.dev/ are Poolwright's own and cannot be set")
    )]
    pub startup_taints: Vec<Taint>,
    /// Conditions that a new node must have as true before it opens to pods: those that a driver installer, a GPU validator or a
    /// network plugin reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub readiness_gates: Vec<ReadinessGate>,
    /// Which offerings may be bought; all must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    #[x_kube(
        validation = Rule::new("self.all(r, self.exists_one(s, s.key == r.key && s.operator == r.operator))")
            .message("requirements must be unique by key and operator; write the values of both in one")
    )]
    pub requirements: Vec<Requirement>,
    /// What to launch the nodes with. Group and kind cannot change: make a new pool instead.
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
    /// How old a node may get before it is replaced: a duration such as `720h`, or `Never`.
    #[serde(default = "never")]
    pub expire_after: ExpiryText,
}

fn never() -> ExpiryText {
    ExpiryText::NEVER.into()
}

/// What the value of a label must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// One of the values.
    In,
    /// Absent, or none of the values.
    NotIn,
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// Greater than the value.
    Gt,
    /// Less than the value.
    Lt,
    /// Greater than the value, or equal.
    Gte,
    /// Less than the value, or equal.
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
        .message("a requirement cannot be on kubernetes.io/hostname or poolwright.dev/nodepool: no offering decides them")
)]
pub struct Requirement {
    /// The label's key: `node.kubernetes.io/instance-type`, `poolwright.dev/gpu-model`, ...
    #[schemars(
        length(min = 1, max = 316),
        regex(
            pattern = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"
        )
    )]
    pub key: String,
    /// What its value must satisfy.
    pub operator: Operator,
    /// Values: one or more for In and NotIn, none for Exists and DoesNotExist, one number for Gt, Lt, Gte and Lte.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(max = 63), regex(pattern = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"))
    )]
    pub values: Vec<String>,
}

/// When nodes without work go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleToZero {
    /// How long a node stays without work: a duration such as `5m`, or `Never`.
    #[serde(default = "five_minutes")]
    pub after: ExpiryText,
}

impl Default for ScaleToZero {
    fn default() -> Self {
        Self { after: five_minutes() }
    }
}

fn five_minutes() -> ExpiryText {
    "5m".into()
}

/// What a pool has, and whether it is healthy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePoolStatus {
    /// Nodes, those on their way included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<i64>,
    /// What those nodes hold together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Amount>,
    /// What those nodes cost together, as a decimal number; a trailing `+` says that the price of some is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_hour: Option<String>,
    /// What those nodes were to cost by the plans that bought them: the planned price of each, and nothing for one that was
    /// bought because pods lost the place that an earlier plan gave them. What `usdPerHour` is above it is what the plans
    /// did not foresee.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planned_usd_per_hour: Option<String>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Ready, ValidationSucceeded, NodeClassReady, LimitReached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,
}
