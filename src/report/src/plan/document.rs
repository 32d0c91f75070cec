//! The published document of a plan. `docs/plan.schema.json` describes each field.

use poolwright_catalog::{Catalogue, Usd, UsdPerHour};
use poolwright_core::plan::{Baseline, CostRule, WhyRelaxed};
use poolwright_solver::Proof;
use poolwright_terms::{CapacityType, Reason};
use serde::Serialize;

use crate::money::{amount, maybe_usd, usd};

/// A plan.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Plan`.
    pub kind: &'static str,
    /// The cost of all new nodes: the sum of their known prices, less the part that commitments pay.
    #[serde(serialize_with = "usd")]
    pub cost_usd_per_hour: UsdPerHour,
    /// The expected loss from interruptions of spot nodes; absent if the plan ignores it.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub risk_usd_per_hour: Option<UsdPerHour>,
    /// A lower bound on cost plus expected loss, over all plans that place the same pods; absent if the plan was chosen by its
    /// cost over time.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub lower_bound_usd_per_hour: Option<UsdPerHour>,
    /// The cost over time, if the plan was chosen by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<CostOverTime>,
    /// `(cost - bound) / bound`, of the cost by which the plan was chosen.
    pub gap: f64,
    /// The number of pods whose places were chosen first, by rules about other pods. The bound holds for these places. Absent if
    /// zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned_pods: usize,
    /// The number of pods whose preferences changed the purchase. The bound holds for these preferences. Absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub steered_pods: usize,
    /// The number of instance types that would hold pods of new nodes and might cost less, but whose prices are unknown. The bound
    /// holds for the other offerings. Absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub unpriced_types: usize,
    /// The strength of the bound's proof.
    pub proof: Proof,
    /// The duration of planning.
    pub elapsed_seconds: f64,
    /// The time until the first plan; equal to `elapsed_seconds` if it could not be improved.
    pub first_plan_seconds: f64,
    /// Numbers of pods.
    pub pods: PodCounts,
    /// Numbers of units of buffers; absent if no pool keeps room free now.
    #[serde(skip_serializing_if = "UnitCounts::is_empty")]
    pub units: UnitCounts,
    /// The number of nodes to buy for static pools; absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub static_nodes: usize,
    /// Every node to buy, with its pods.
    pub nodes: Vec<NewNode>,
    /// Pods that the plan places on nodes that exist or are on their way.
    pub existing_nodes: Vec<ExistingNode>,
    /// Pods that the plan leaves out, with the reasons.
    pub unplaced: Vec<UnplacedPod>,
    /// Unmet preferences, with the reasons; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relaxed_preferences: Vec<RelaxedPreference>,
    /// The costs of simpler plans.
    pub baselines: Baselines,
    /// The rules by which this plan may cost more than another one, with what they cost; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleCost>,
    /// Whether the nodes were chosen in steps, because a limit left pods to their further choices. The bound is the sum of the
    /// bounds of the steps, each given the steps before it. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_steps: bool,
    /// The use of each commitment; absent without commitments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<CommitmentUse>,
    /// The explanation of one pod; only if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explained>,
    /// The catalogue that the plan chose from.
    pub catalogue: CatalogueSummary,
    /// Objects that make pods, but are not read, so that no pods are planned for them; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Objects that are read, but whose pods are bound to nodes that the input does not have, so that no pods are planned for them;
    /// absent if there are none. Notes name the nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_unknown_nodes: Vec<String>,
    /// Pods that an API server refuses to create, because of a quota or another rule; absent if there are none. Notes say why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// Notes on how Poolwright understood the input.
    pub notes: Vec<String>,
}

/// Pods of one object that an API server refuses to create. They are not among the pods that wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The object that asks for them.
    pub object: String,
    /// How many; zero if nobody knows, as for a DaemonSet that is refused itself.
    pub pods: usize,
}

/// The expected cost of a plan until its nodes are empty.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CostOverTime {
    /// The cost of new nodes from their purchase until they are empty, and of existing nodes for the time by which the plan
    /// postpones their end.
    #[serde(serialize_with = "amount")]
    pub usd: Usd,
    /// A lower bound on this cost, over all plans that place the same pods.
    #[serde(serialize_with = "amount")]
    pub lower_bound_usd: Usd,
}

/// A preference that the nodes to buy do not meet.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelaxedPreference {
    /// The preference in words.
    pub preference: String,
    /// Why it is not met, as a stable name.
    pub reason: WhyRelaxed,
    /// Why it is not met, in words.
    pub message: String,
    /// The pods concerned.
    pub pods: Vec<String>,
}

/// The use of a commitment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentUse {
    /// Its name.
    pub name: String,
    /// The amount per hour that nodes to buy may use.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// The part that the plan uses.
    #[serde(serialize_with = "usd")]
    pub used_usd_per_hour: UsdPerHour,
    /// The part of the whole commitment that existing nodes use; absent if they use none.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub existing_usd_per_hour: Option<UsdPerHour>,
}

/// The explanation of one pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The pod.
    pub pod: String,
    /// The explanation in words.
    pub text: String,
    /// The explanation in numbers, from `poolwright_solver::explain`.
    pub details: poolwright_solver::Explanation,
}

/// Numbers of pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCounts {
    /// Pods that wait for a node.
    pub total: usize,
    /// Pods that the plan places.
    pub placed: usize,
    /// Pods that the plan leaves out.
    pub unplaced: usize,
    /// Pods on new nodes that their controllers are about to create. They do not wait yet, so `total` lacks them. Absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub expected: usize,
}

/// Numbers of units of buffers: room for pods of one size that pools keep free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnitCounts {
    /// Units to keep free.
    pub total: usize,
    /// Units that have room on new or existing nodes.
    pub placed: usize,
    /// Units that the plan leaves without room.
    pub unplaced: usize,
}

impl UnitCounts {
    fn is_empty(&self) -> bool {
        self.total == 0
    }
}

/// A node to buy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewNode {
    /// Instance type.
    pub instance_type: String,
    /// Zone.
    pub zone: String,
    /// Capacity type.
    pub capacity_type: CapacityType,
    /// Its price; `None` (JSON null) when it is unknown and the pool allows the type by name.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// The NodePool; absent if you gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The pods planned for it.
    pub pods: Vec<String>,
    /// The units of buffers that it has room for; absent if zero.
    #[serde(skip_serializing_if = "is_zero")]
    pub units: usize,
    /// The use of each GPU; absent if pods get only whole GPUs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuUse>,
}

/// The use of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase", tag = "use")]
pub enum GpuUse {
    /// No pod uses it.
    Idle,
    /// One pod uses the whole GPU.
    Whole {
        /// The pod, which may use other GPUs too.
        pod: String,
    },
    /// Pods share it.
    Shared {
        /// The pods and their shares.
        pods: Vec<GpuShare>,
    },
    /// It is partitioned into MIG instances.
    Mig {
        /// The instances, by their first memory slice.
        instances: Vec<GpuInstance>,
    },
}

/// A pod's share of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuShare {
    /// The pod.
    pub pod: String,
    /// Thousandths of the GPU.
    pub milli: u32,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuInstance {
    /// Its first memory slice.
    pub start: u8,
    /// Its name, such as `1g.10gb`.
    pub profile: String,
    /// The pod that uses it.
    pub pod: String,
}

/// A node that exists or is on its way, and the waiting pods planned for it.
#[derive(Clone, Debug, Serialize)]
pub struct ExistingNode {
    /// Name of the Node or NodeClaim.
    pub name: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// A pod that the plan leaves out.
#[derive(Clone, Debug, Serialize)]
pub struct UnplacedPod {
    /// The pod.
    pub pod: String,
    /// The reason.
    pub reason: Reason,
    /// A sentence, with the nearest miss.
    pub message: String,
}

/// The costs of simpler plans for the same pods, with the same prices, limits, commitments and weights.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(into = "FlatBaselines")]
pub struct Baselines {
    /// One new node for each pod.
    pub one_pod_per_node: Baseline,
    /// First fit: each pod goes to the first new node on which it fits. The cheapest type that holds its pods becomes the node.
    pub first_fit: Baseline,
}

/// [`Baselines`] as documents show them. One that may exceed a limit of a namespace is absent.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FlatBaselines {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    one_pod_per_node_usd_per_hour: Option<UsdPerHour>,
    #[serde(skip_serializing_if = "is_nothing", serialize_with = "usd")]
    one_pod_per_node_risk_usd_per_hour: UsdPerHour,
    #[serde(skip_serializing_if = "is_zero")]
    one_pod_per_node_unplaced: usize,
    #[serde(skip_serializing_if = "is_zero")]
    one_pod_per_node_units_unplaced: usize,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    first_fit_usd_per_hour: Option<UsdPerHour>,
    #[serde(skip_serializing_if = "is_nothing", serialize_with = "usd")]
    first_fit_risk_usd_per_hour: UsdPerHour,
    #[serde(skip_serializing_if = "is_zero")]
    first_fit_unplaced: usize,
    #[serde(skip_serializing_if = "is_zero")]
    first_fit_units_unplaced: usize,
}

impl From<Baselines> for FlatBaselines {
    fn from(Baselines { one_pod_per_node, first_fit }: Baselines) -> Self {
        let shown = |one: Baseline| Some(one).filter(|one| !one.ignores_namespace_limits);
        let (alone, first_fit) = (shown(one_pod_per_node), shown(first_fit));
        Self {
            one_pod_per_node_usd_per_hour: alone.map(|one| one.cost),
            one_pod_per_node_risk_usd_per_hour: alone.map(|one| one.risk).unwrap_or_default(),
            one_pod_per_node_unplaced: alone.map_or(0, |one| one.unplaced),
            one_pod_per_node_units_unplaced: alone.map_or(0, |one| one.units_unplaced),
            first_fit_usd_per_hour: first_fit.map(|one| one.cost),
            first_fit_risk_usd_per_hour: first_fit.map(|one| one.risk).unwrap_or_default(),
            first_fit_unplaced: first_fit.map_or(0, |one| one.unplaced),
            first_fit_units_unplaced: first_fit.map_or(0, |one| one.units_unplaced),
        }
    }
}

/// What a rule costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleCost {
    /// The rule.
    pub rule: CostRule,
    /// What the plan costs more than a plan without the rule; absent if they cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// Whether the rule may cost more than that, because a better plan without it may exist. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// Whether the rule may cost less than that, because a better plan with it may exist. Absent if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// The expected loss of a plan without the rule, as far as the cost of the rule counts it.
    #[serde(skip)]
    pub risk_without: UsdPerHour,
}

/// The catalogue that the plan chose from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueSummary {
    /// Its source.
    pub source: String,
    /// The oldest date of its prices; `None` (JSON null) if none has a date.
    pub as_of: Option<String>,
    /// The number of offerings.
    pub offerings: usize,
    /// The number of offerings without a known price.
    pub unknown_prices: usize,
}

impl CatalogueSummary {
    /// Summarizes a catalogue.
    pub fn of(catalogue: &Catalogue) -> Self {
        Self {
            source: catalogue.origin().source.clone(),
            as_of: catalogue.origin().as_of.map(|date| date.to_string()),
            offerings: catalogue.offerings().len(),
            unknown_prices: catalogue.unknown_prices(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_nothing(amount: &UsdPerHour) -> bool {
    *amount == UsdPerHour::ZERO
}
