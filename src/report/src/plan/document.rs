//! The document of a plan, as `poolwright plan` writes it. `docs/plan.schema.json` describes it field by field.

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
    /// The cost of all new nodes: the sum of their known prices, without what commitments pay.
    #[serde(serialize_with = "usd")]
    pub cost_usd_per_hour: UsdPerHour,
    /// The expected cost of spot interruptions; absent unless counted.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "maybe_usd")]
    pub risk_usd_per_hour: Option<UsdPerHour>,
    /// A lower bound for cost and risk of any plan that places the same pods.
    #[serde(serialize_with = "usd")]
    pub lower_bound_usd_per_hour: UsdPerHour,
    /// `(cost - bound) / bound`.
    pub gap: f64,
    /// How many pods got a place from rules about other pods; the bound holds for these places. Absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub pinned_pods: usize,
    /// How many pods have preferences that influence what is bought; the bound holds for these. Absent if none.
    #[serde(skip_serializing_if = "is_zero")]
    pub steered_pods: usize,
    /// The strength of the proof of the bound.
    pub proof: Proof,
    /// How long planning took.
    pub elapsed_seconds: f64,
    /// When the first plan was found; equal to `elapsed_seconds` if nothing was improved.
    pub first_plan_seconds: f64,
    /// Counts of pods.
    pub pods: PodCounts,
    /// Every node to buy, with its pods.
    pub nodes: Vec<NewNode>,
    /// Existing nodes and claims, with the pods that go there.
    pub existing_nodes: Vec<ExistingNode>,
    /// Pods without a place, and why.
    pub unplaced: Vec<UnplacedPod>,
    /// Relaxed preferences, and why; absent if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub relaxed_preferences: Vec<RelaxedPreference>,
    /// The cost of naive plans.
    pub baselines: Baselines,
    /// The use of commitments; absent if none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commitments: Vec<CommitmentUse>,
    /// The explanation of one pod; absent unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explained>,
    /// A summary of the catalogue.
    pub catalogue: CatalogueSummary,
    /// Notes about how the input was read.
    pub notes: Vec<String>,
}

/// A relaxed preference: new nodes do not meet it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RelaxedPreference {
    /// The preference, in words.
    pub preference: String,
    /// The reason, for programs.
    pub reason: String,
    /// The reason, in words.
    pub message: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// The use of a commitment.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitmentUse {
    /// Its name.
    pub name: String,
    /// The available amount.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// The amount that the plan uses.
    #[serde(serialize_with = "usd")]
    pub used_usd_per_hour: UsdPerHour,
}

/// The explanation of one pod.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The pod.
    pub pod: String,
    /// The explanation in words.
    pub text: String,
    /// The explanation in numbers, as `poolwright_solver::explain` returns it.
    pub details: poolwright_solver::Explanation,
}

/// How many pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PodCounts {
    /// Pending pods.
    pub total: usize,
    /// Pods with a place.
    pub placed: usize,
    /// Pods without a place.
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
    /// Its price; `None` (JSON null) if unknown.
    #[serde(serialize_with = "maybe_usd")]
    pub usd_per_hour: Option<UsdPerHour>,
    /// The NodePool; absent if the plan was made without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The pods it is for.
    pub pods: Vec<String>,
    /// The use of each GPU; absent if GPUs are only given whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuUse>,
}

/// The use of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase", tag = "use")]
pub enum GpuUse {
    /// Nothing.
    Idle,
    /// One pod uses it exclusively.
    Whole {
        /// The pod; it may use other GPUs too.
        pod: String,
    },
    /// Pods share it.
    Shared {
        /// The pods and their shares.
        pods: Vec<GpuShare>,
    },
    /// It is partitioned into MIG instances.
    Mig {
        /// The instances, by first memory slice.
        instances: Vec<GpuInstance>,
    },
}

/// A pod's share of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuShare {
    /// Whose.
    pub pod: String,
    /// The share in thousandths.
    pub milli: u32,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuInstance {
    /// Its first memory slice.
    pub start: u8,
    /// The profile's name: `1g.10gb`.
    pub profile: String,
    /// The pod that uses it.
    pub pod: String,
}

/// An existing node or claim, and the pending pods that go there.
#[derive(Clone, Debug, Serialize)]
pub struct ExistingNode {
    /// Name of the Node or NodeClaim.
    pub name: String,
    /// The pods.
    pub pods: Vec<String>,
}

/// A pod without a place.
#[derive(Clone, Debug, Serialize)]
pub struct UnplacedPod {
    /// Which.
    pub pod: String,
    /// The reason, for programs.
    pub reason: String,
    /// The message, with the closest alternative.
    pub message: String,
}

/// The cost of naive plans for the same pods.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Baselines {
    /// A node of its own for every pod on a new node.
    #[serde(serialize_with = "usd")]
    pub one_pod_per_node_usd_per_hour: UsdPerHour,
    /// First fit: each pod goes to the first open node that some instance type still fits; the cheapest such type is bought at
    /// the end.
    #[serde(serialize_with = "usd")]
    pub first_fit_usd_per_hour: UsdPerHour,
}

/// What was chosen from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogueSummary {
    /// Its source.
    pub source: String,
    /// The oldest date of its prices; `None` (JSON null) if none is dated.
    pub as_of: Option<String>,
    /// The number of offerings.
    pub offerings: usize,
    /// The number of offerings without a known price.
    pub unknown_prices: usize,
}

impl CatalogueSummary {
    /// The summary of a catalogue.
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
