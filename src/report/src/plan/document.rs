//! The plan as it is published: `docs/plan.schema.json` describes it field by field.

use poolwright_catalog::{Catalogue, UsdPerHour};
use poolwright_solver::Proof;
use poolwright_terms::CapacityType;
use serde::Serialize;

use crate::money::{maybe_usd, usd};

/// A plan.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// `poolwright.dev/v1alpha1`.
    pub api_version: &'static str,
    /// `Plan`.
    pub kind: &'static str,
    /// What all new nodes cost: the sum of their known prices, less what commitments pay.
    #[serde(serialize_with = "usd")]
    pub cost_usd_per_hour: UsdPerHour,
    /// What interruptions of spot nodes are expected to lose; absent unless it is counted.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub risk_usd_per_hour: Option<UsdPerHour>,
    /// No plan that places the same pods has less of cost and risk together.
    #[serde(serialize_with = "usd")]
    pub lower_bound_usd_per_hour: UsdPerHour,
    /// `(cost - bound) / bound`.
    pub gap: f64,
    /// How many pods were given a place by rules about other pods first; the bound holds with these places. Absent when none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned_pods: usize,
    /// How many pods have what is bought for them steered by preferences; the bound holds with these. Absent when none.
    #[serde(skip_serializing_if = "is_zero")]
    pub steered_pods: usize,
    /// What the bound rests on.
    pub proof: Proof,
    /// How long planning took.
    pub elapsed_seconds: f64,
    /// When the first plan was there; the same as `elapsed_seconds` when there was nothing to improve.
    pub first_plan_seconds: f64,
    /// How many pods.
    pub pods: PodCounts,
    /// Every node to buy, with its pods.
    pub nodes: Vec<NewNode>,
    /// Pods that go on nodes that are there or on their way.
    pub existing_nodes: Vec<ExistingNode>,
    /// Pods left out, and why.
    pub unplaced: Vec<UnplacedPod>,
    /// Preferences that are not met, and why; absent where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relaxed_preferences: Vec<RelaxedPreference>,
    /// What simpler ways to buy would cost.
    pub baselines: Baselines,
    /// What is used of commitments; absent where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<CommitmentUse>,
    /// Why one pod went where it did; absent unless asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explained>,
    /// What was chosen from.
    pub catalogue: CatalogueSummary,
    /// What the reader should know about how the input was understood.
    pub notes: Vec<String>,
}

/// A preference that is not met on the nodes to buy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelaxedPreference {
    /// Which, in words.
    pub preference: String,
    /// Why, for machines.
    pub reason: String,
    /// Why, in words.
    pub message: String,
    /// Whose.
    pub pods: Vec<String>,
}

/// What is used of a commitment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentUse {
    /// Its name.
    pub name: String,
    /// What there is of it.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// What the plan uses.
    #[serde(serialize_with = "usd")]
    pub used_usd_per_hour: UsdPerHour,
}

/// Why one pod went where it did.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Which pod.
    pub pod: String,
    /// In words.
    pub text: String,
    /// In numbers, as `poolwright_solver::explain` gives them.
    pub details: poolwright_solver::Explanation,
}

/// How many pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCounts {
    /// That wait for a node.
    pub total: usize,
    /// That the plan places.
    pub placed: usize,
    /// That it leaves out.
    pub unplaced: usize,
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
    /// The NodePool; absent when the plan was made without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The pods it is for.
    pub pods: Vec<String>,
    /// What each of its GPUs is used as; absent where GPUs are only given whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuUse>,
}

/// What one GPU is used as.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase", tag = "use")]
pub enum GpuUse {
    /// Nothing.
    Idle,
    /// One pod has it whole.
    Whole {
        /// The pod; it may have others too.
        pod: String,
    },
    /// Pods share it.
    Shared {
        /// Which, and how much of it.
        pods: Vec<GpuShare>,
    },
    /// It is cut into instances.
    Mig {
        /// Which, by first memory slice.
        instances: Vec<GpuInstance>,
    },
}

/// A pod's share of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuShare {
    /// Whose.
    pub pod: String,
    /// Thousandths.
    pub milli: u32,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuInstance {
    /// Its first memory slice.
    pub start: u8,
    /// What it is called: `1g.10gb`.
    pub profile: String,
    /// Who uses it.
    pub pod: String,
}

/// A node that is there or on its way, and the waiting pods that go there.
#[derive(Clone, Debug, Serialize)]
pub struct ExistingNode {
    /// Name of the Node or NodeClaim.
    pub name: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// A pod left out.
#[derive(Clone, Debug, Serialize)]
pub struct UnplacedPod {
    /// Which.
    pub pod: String,
    /// Stable reason.
    pub reason: String,
    /// A sentence, with the nearest miss.
    pub message: String,
}

/// What simpler ways to buy would cost for the same pods.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Baselines {
    /// A node of its own for every pod that is bought for.
    #[serde(serialize_with = "usd")]
    pub one_pod_per_node_usd_per_hour: UsdPerHour,
    /// Pods one after the other onto an open node that some type still holds; the cheapest such type is bought at the end.
    #[serde(serialize_with = "usd")]
    pub first_fit_usd_per_hour: UsdPerHour,
}

/// What was chosen from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueSummary {
    /// Where it comes from.
    pub source: String,
    /// The oldest day any of its prices was quoted; `None` (JSON null) when none is dated.
    pub as_of: Option<String>,
    /// How many offerings could be chosen from.
    pub offerings: usize,
    /// How many of them have no known price.
    pub unknown_prices: usize,
}

impl CatalogueSummary {
    /// Of this catalogue.
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
