//! Plans: the output of the planner.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use poolwright_catalog::{InstanceTypeName, MigProfile, OfferingId, RankedOffering, Usd, UsdPerHour};
use poolwright_solver::Proof;
use poolwright_terms::{NodeClassRef, Reason, Taint};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::baseline::Baselines;
use crate::model::claim::Deadlines;
use crate::model::names::ClaimName;
use crate::model::names::PoolName;
use crate::model::names::Uid;
use crate::model::pod_key::PodKey;
use crate::model::relaxed::RelaxedPreference;
use crate::model::retirement::Retirements;
pub use crate::model::solve::{Solve, SolveNode};

/// A plan: nodes to buy, and a place for every pending pod, with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Nodes to buy; sorted by name.
    pub claims: Vec<PlannedClaim>,
    /// Pods placed in free capacity of existing nodes or claims; sorted by pod.
    pub placements: Vec<PlacedPod>,
    /// Pods without a place, with the reason; sorted by pod. Finished, bound and DaemonSet pods are not listed.
    pub unplaced: Vec<UnplacedPod>,
    /// Findings about every pool of the snapshot.
    pub pools: BTreeMap<PoolName, PoolFindings>,
    /// The cost of `claims`, minus the part that commitments pay, and without unknown prices.
    pub cost: UsdPerHour,
    /// The part of the prices of `claims` that commitments pay.
    pub covered: UsdPerHour,
    /// The use of each commitment, in the order of [`crate::plan::PlanOptions::commitments`].
    pub commitments: Vec<CommitmentUse>,
    /// The counted cost of interruptions of `claims`: see [`crate::plan::PlanOptions::spot_risk`], and
    /// [`crate::model::snapshot::Snapshot::reclaims`].
    pub risk: UsdPerHour,
    /// A lower bound for the cost and risk of any plan that places the same pods, given that pools with a higher weight are
    /// used first, and that pools keep their rules on spot nodes. Zero if `over_time` has one.
    pub bound: UsdPerHour,
    /// The cost over time, if the plan was chosen by it. If pods live equally long and no existing node that admits only planned
    /// pods has room for them, the cost of the moment decides.
    pub over_time: Option<OverTime>,
    /// The number of pods that got a zone or a shared node before packing, because of rules about other pods. If there are any,
    /// `bound` holds only for plans with these places.
    pub pinned_pods: usize,
    /// The number of pods with preferences that influence what is bought. If there are any, `bound` holds only for plans that
    /// meet the same preferences.
    pub steered_pods: usize,
    /// Preferences that new nodes do not meet; sorted.
    pub relaxed: Vec<RelaxedPreference>,
    /// The strength of the proof of `bound`: the weakest of all solver calls.
    pub proof: Proof,
    /// The number of `claims` with an unknown price. Their cost is in neither `cost` nor `bound`.
    pub unknown_price_claims: usize,
    /// Simpler ways to buy for the same pods.
    pub baselines: Baselines,
    /// Whether pods on new nodes could also use pools of a lower weight. If so, `bound` holds only for plans that use pools of a
    /// higher weight first.
    pub by_weight: bool,
    /// Whether pods on new nodes could also use offerings whose interruptions count. If so, `bound` is no bound for the cost alone.
    pub by_risk: bool,
    /// Whether it buys nodes of a pool with rules on spot nodes.
    #[serde(default)]
    pub by_spot_rules: bool,
    /// Whether it buys nodes of a pool with `minValues`.
    #[serde(default)]
    pub by_min_values: bool,
    /// Whether pods on new nodes, or pods that it leaves out, have a topology spread over nodes.
    #[serde(default)]
    pub by_node_spread: bool,
    /// Whether pods were kept off nodes, to keep room free for pods without a cheaper home. If so, `bound` holds only for plans that
    /// keep the same room.
    #[serde(default)]
    pub by_kept_room: bool,
    /// Whether it is in steps, and pods on new nodes differ in priority. Then priorities decide which pods the first steps serve.
    #[serde(default)]
    pub by_priority: bool,
    /// Whether nodes were chosen in steps: first the first choices of all pods, then other choices for pods that a limit left.
    /// Then `bound` is the sum of the bounds of the steps, each given the steps before it; zero if the steps are those of a simpler way
    /// to buy.
    pub in_steps: bool,
    /// What rules cost, sorted; only with baselines. A rule that provably costs nothing is not listed.
    pub rules: Vec<RuleCost>,
    /// The place of each pending pod: its UID, and the name of the claim, or of a node without a claim. It goes into the next
    /// [`crate::model::snapshot::Snapshot::nominations`].
    pub nominations: BTreeMap<PodKey, (Uid, String)>,
    /// The nodes that retire. They go into the next [`crate::model::snapshot::Snapshot::retirements`].
    #[serde(skip)]
    pub retirements: Arc<Retirements>,
    /// Places of the successors of pods on disrupted nodes; sorted by pod.
    pub moved: Vec<Moved>,
    /// Counts of pods.
    pub counts: Counts,
    /// The number of units of buffers on each of `claims` that has any.
    #[serde(default)]
    pub units_on: BTreeMap<ClaimName, usize>,
    /// The pods that controllers are about to create, and that are too many to plan for now.
    pub deferred: Vec<DeferredPods>,
    /// The violations, if the plan failed the independent check. Then `claims` is empty, and nothing is bought. A violation is
    /// a bug in Poolwright.
    pub refused: Vec<String>,
    /// The time to plan again even if nothing changes, because something that a pod waits for times out then.
    pub again_at: Option<Timestamp>,
    /// Whether the solver was stopped early.
    pub stopped_early: bool,
    /// The solver's problems and solutions, in order; empty unless [`crate::plan::PlanOptions::keep_solves`].
    pub solves: Vec<Solve>,
}

impl Plan {
    /// Returns the lower bound for the cost of the moment; `None` if the plan was chosen by its cost over time.
    pub fn bound_of_moment(&self) -> Option<UsdPerHour> {
        self.over_time.is_none().then_some(self.bound)
    }

    /// Returns whether a place is on a node that the plan buys.
    pub fn buys(&self, target: &Target) -> bool {
        matches!(target, Target::Claim(name) if self.claims.binary_search_by(|claim| claim.name.cmp(name)).is_ok())
    }

    /// Returns whether pods are unplaced although offerings fit them, because a limit is reached or the offerings failed
    /// recently.
    pub fn is_short_of_capacity(&self) -> bool {
        use UnplacedReason::GangIncomplete;
        use UnplacedReason::LimitReached;
        use UnplacedReason::OfferingsHeldBack;
        let mut reasons = self.unplaced.iter().map(|left| left.reason);
        reasons.any(|reason| matches!(reason, LimitReached | OfferingsHeldBack | GangIncomplete))
    }
}

/// The cost of a plan until its nodes are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverTime {
    /// The expected cost: of new nodes from their purchase until they are empty, and of existing nodes for the time by which the
    /// plan postpones their end. Interruptions are counted as in [`Plan::risk`].
    pub cost: Usd,
    /// A lower bound for the cost of any plan that places the same pods.
    pub bound: Usd,
}

/// A commitment: a prepaid amount per hour that can pay for nodes, such as a savings plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// Its name, for messages.
    pub name: String,
    /// The amount available to Poolwright's nodes; in a plan, the amount left of it.
    pub left: UsdPerHour,
    /// The amount that a node of each offering uses; above zero. No offering is in two commitments.
    #[serde(serialize_with = "write_rates", deserialize_with = "read_rates")]
    pub rates: BTreeMap<OfferingId, UsdPerHour>,
}

/// Writes rates as a list, because keys of maps are texts in JSON.
fn write_rates<S: Serializer>(rates: &BTreeMap<OfferingId, UsdPerHour>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(rates)
}

fn read_rates<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<OfferingId, UsdPerHour>, D::Error> {
    Ok(Vec::<(OfferingId, UsdPerHour)>::deserialize(from)?.into_iter().collect())
}

impl Commitment {
    /// Returns whether nothing is left.
    pub fn is_used_up(&self) -> bool {
        self.left == UsdPerHour::ZERO
    }

    /// Returns whether it covers this offering.
    pub fn pays_for(&self, offering: &OfferingId) -> bool {
        !self.is_used_up() && self.rates.contains_key(offering)
    }
}

/// A plan's use of a commitment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentUse {
    /// Its name.
    pub name: String,
    /// The amount left before the plan.
    pub left: UsdPerHour,
    /// The amount that the plan uses.
    pub used: UsdPerHour,
}

/// A node to buy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedClaim {
    /// The name of its NodeClaim: unique, and the same for the same snapshot and time.
    pub name: ClaimName,
    /// Its pool.
    pub pool: PoolName,
    /// The UID of its pool, for the owner reference.
    pub pool_uid: Uid,
    /// Its node class.
    pub node_class: NodeClassRef,
    /// The offerings to launch: the planned offering first, then alternatives if it is out of stock. Never empty.
    pub offerings: Vec<RankedOffering>,
    /// The number of offerings, from the first on, that the first launch call hands to the cloud together; zero if the provider may
    /// divide them as it likes.
    pub together: usize,
    /// The choice that the launch leaves to the cloud, for each key of the pool's `minValues`.
    pub choice: Vec<LabelChoice>,
    /// Labels from the pool's template.
    pub labels: BTreeMap<String, String>,
    /// Annotations from the pool's template.
    pub annotations: BTreeMap<String, String>,
    /// Taints the node keeps.
    pub taints: Vec<Taint>,
    /// Startup taints: the node has them at first, and another component removes them later.
    pub startup_taints: Vec<Taint>,
    /// Types of node conditions that must be true before the node opens.
    pub readiness_gates: Vec<String>,
    /// The pods it is bought for; sorted. Empty for nodes of static pools and buffers. Expected pods have keys that no existing
    /// pod can have, such as `ml/Job:train#7`.
    pub planned_pods: Vec<PodKey>,
    /// The planned pods that lost an earlier place on a node that still exists. Without that loss, this node might not be bought.
    pub bought_again: Vec<PodKey>,
    /// The time limit of each stage.
    pub deadlines: Deadlines,
    /// The use of each GPU; empty unless GPUs are shared or partitioned.
    pub gpus: Vec<PlannedGpu>,
    /// The reason for buying this node: a sentence, not a [`Reason`].
    pub reason: String,
}

/// The values of a label among the offerings that the cloud may choose from for a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LabelChoice {
    /// The key of the label.
    pub key: String,
    /// The least number of values that the pool asks for.
    pub at_least: usize,
    /// The number of values.
    pub found: usize,
}

impl fmt::Display for LabelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, at_least, found } = self;
        let values = if *found == 1 { "value" } else { "values" };
        if found < at_least {
            write!(
                f,
                "only {found} {values} of `{key}`, where minValues asks for {at_least} (--min-values-policy BestEffort)"
            )
        } else {
            write!(f, "{found} {values} of `{key}`, as minValues {at_least} asks")
        }
    }
}

/// The planned use of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PlannedGpu {
    /// Nothing.
    Idle,
    /// One pod uses it exclusively, perhaps with other GPUs.
    Whole(PodKey),
    /// Pods share it.
    Shared(Vec<PlannedShare>),
    /// It is partitioned into MIG instances, by first memory slice, ascending.
    Mig(Vec<PlannedInstance>),
}

/// A pod's share of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedShare {
    /// The pod.
    pub pod: PodKey,
    /// The share in thousandths.
    pub milli: u32,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedInstance {
    /// Its first memory slice.
    pub start: u8,
    /// Its MIG profile.
    pub profile: MigProfile,
    /// The profile's name on this GPU: `1g.10gb`.
    pub name: String,
    /// The pod that uses it.
    pub pod: PodKey,
}

impl PlannedClaim {
    /// Returns the planned offering.
    pub fn offering(&self) -> &OfferingId {
        &self.offerings[0].offering
    }

    /// Returns the planned instance type.
    pub fn instance_type(&self) -> &InstanceTypeName {
        &self.offerings[0].offering.instance_type
    }

    /// Returns its price per hour; `None` if unknown.
    pub fn price(&self) -> Option<UsdPerHour> {
        self.offerings[0].price
    }
}

/// A pending pod that fits on an existing node or claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlacedPod {
    /// The pod.
    pub pod: PodKey,
    /// Its place.
    pub target: Target,
}

/// An existing node or claim.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// A claim, whether or not its node has joined.
    Claim(ClaimName),
    /// A node without a claim.
    Node(String),
}

impl Target {
    /// Returns the claim's name, or the node's.
    pub fn name(&self) -> &str {
        let (Self::Claim(ClaimName(name)) | Self::Node(name)) = self;
        name
    }
}

/// A pod without a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnplacedPod {
    /// The pod.
    pub pod: PodKey,
    /// The reason, for programs.
    pub reason: UnplacedReason,
    /// The reason and what to do, in a sentence or two.
    pub message: String,
}

/// A pod on a disrupted node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moved {
    /// The pod.
    pub pod: PodKey,
    /// The claim of its node.
    pub from: ClaimName,
    /// The key of its successor in the plan; `None` if there is none.
    pub successor: Option<PodKey>,
    /// The place of its successor.
    pub to: MovedTo,
}

/// The place of a successor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MovedTo {
    /// An existing node or claim.
    Existing(Target),
    /// A node that the plan buys.
    New(ClaimName),
    /// No place, with the reason.
    Unplaced(String),
    /// No successor: its controller has enough pods without one.
    NoSuccessor,
}

/// The reason why a pod has no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnplacedReason {
    /// No pool can buy anything.
    NoUsablePool,
    /// It fits no offering of any pool.
    NoOfferingFits,
    /// It fits offerings, but a limit on their pool is reached.
    LimitReached,
    /// It fits offerings, but a limit of its namespace is reached.
    NamespaceLimitReached,
    /// It fits offerings, but all that limits allow failed recently.
    OfferingsHeldBack,
    /// It fits offerings, but their prices are unknown.
    PriceUnknown,
    /// It uses a rule that Poolwright does not model yet.
    UnmodelledRule,
    /// Topology spread, pod affinity or pod anti-affinity leaves no place.
    TopologyRule,
    /// Its PodGroup does not exist.
    PodGroupMissing,
    /// Its gang cannot get places for its minimum number of pods.
    GangIncomplete,
    /// Its gang waits for more pods.
    PodGroupPending,
    /// One of its volumes cannot be used until a person changes something.
    VolumeUnusable,
    /// One of its volumes is not ready yet, or another pod uses it.
    VolumePending,
    /// The scheduler is preempting other pods for it.
    PreemptionInProgress,
    /// Its priority is below `--min-priority`.
    LowPriority,
    /// It has scheduling gates.
    SchedulingGated,
    /// Another scheduler is responsible for it.
    OtherScheduler,
    /// The scheduler has not tried it yet.
    NotYetTried,
}

impl UnplacedReason {
    /// Every reason.
    pub const ALL: [Self; 18] = [
        Self::NoUsablePool,
        Self::NoOfferingFits,
        Self::LimitReached,
        Self::NamespaceLimitReached,
        Self::OfferingsHeldBack,
        Self::PriceUnknown,
        Self::UnmodelledRule,
        Self::TopologyRule,
        Self::PodGroupMissing,
        Self::GangIncomplete,
        Self::PodGroupPending,
        Self::VolumeUnusable,
        Self::VolumePending,
        Self::PreemptionInProgress,
        Self::LowPriority,
        Self::SchedulingGated,
        Self::OtherScheduler,
        Self::NotYetTried,
    ];

    /// Returns the reason of the event about it.
    pub const fn reason(self) -> Reason {
        match self {
            Self::NoUsablePool => Reason::NoUsablePool,
            Self::NoOfferingFits => Reason::NoOfferingFits,
            Self::LimitReached => Reason::LimitReached,
            Self::NamespaceLimitReached => Reason::NamespaceLimitReached,
            Self::OfferingsHeldBack => Reason::OfferingsHeldBack,
            Self::PriceUnknown => Reason::PriceUnknown,
            Self::UnmodelledRule => Reason::UnmodelledRule,
            Self::TopologyRule => Reason::TopologyRule,
            Self::PodGroupMissing => Reason::PodGroupMissing,
            Self::GangIncomplete => Reason::GangIncomplete,
            Self::PodGroupPending => Reason::PodGroupPending,
            Self::VolumeUnusable => Reason::VolumeUnusable,
            Self::VolumePending => Reason::VolumePending,
            Self::PreemptionInProgress => Reason::PreemptionInProgress,
            Self::LowPriority => Reason::LowPriority,
            Self::SchedulingGated => Reason::SchedulingGated,
            Self::OtherScheduler => Reason::OtherScheduler,
            Self::NotYetTried => Reason::NotYetTried,
        }
    }

    /// Returns the stable name, as in events and in the JSON of a plan.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Returns whether the pod needs a node and gets none. Users are told about such pods. All other pods wait for something
    /// else.
    pub const fn is_unmet_demand(self) -> bool {
        matches!(
            self,
            Self::NoUsablePool
                | Self::NoOfferingFits
                | Self::LimitReached
                | Self::NamespaceLimitReached
                | Self::OfferingsHeldBack
                | Self::PriceUnknown
                | Self::UnmodelledRule
                | Self::TopologyRule
                | Self::PodGroupMissing
                | Self::GangIncomplete
                | Self::VolumeUnusable
        )
    }

    /// Returns whether the pod might get a place in a plan with other places or nodes for the other pods.
    pub(crate) const fn may_be_for_others(self) -> bool {
        matches!(self, Self::LimitReached | Self::TopologyRule | Self::GangIncomplete)
    }
}

/// Findings of a plan about a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFindings {
    /// The reason and message if its spec is invalid.
    pub invalid: Option<(Reason, String)>,
    /// The reason and message if its node class is missing or not ready.
    pub node_class: Option<(Reason, String)>,
    /// A sentence about the limit that keeps it from buying nodes for pods; `None` if no limit does.
    pub limit_reached: Option<String>,
    /// A sentence about units of its buffer that fit none of its offerings; `None` if all do.
    pub buffer_unmet: Option<String>,
    /// The number of units of its buffer without room.
    pub units_left: usize,
    /// Sentences about the other units without room, for each entry of its buffer and each cause, such as a limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffer_left: Vec<String>,
    /// For each entry of its buffer with `units: auto`: how many units are asked for, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units_chosen: Vec<String>,
    /// A sentence about a new node of it that stays closed because its GPUs seem to be shared; `None` if there is none.
    pub shares_gpus: Option<String>,
    /// The number of offerings that it may buy now.
    pub offerings: usize,
    /// Why it can buy none of its offerings now, and a sentence; `None` if it can buy one, or has none.
    pub unsold: Option<(Reason, String)>,
}

/// Pods that a controller is about to create beyond the number that is planned ahead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeferredPods {
    /// An unschedulable pod of the controller, or the template of its pods.
    pub pod: PodKey,
    /// The controller, in words: `Job default/train`.
    pub owner: String,
    /// How many are not planned for yet.
    pub pods: u64,
    /// How many are.
    pub planned: u64,
}

/// A rule by which a plan may cost more than another plan for the same pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CostRule {
    /// Pools of a higher weight come first.
    Weights,
    /// Preferences of pods are met.
    Preferences,
    /// Interruptions count besides the price.
    Interruptions,
    /// Pools keep their rules on spot nodes.
    SpotRules,
    /// Nodes leave the cloud the choice that `minValues` of pools asks for.
    MinValues,
    /// Pods keep their topology spread over nodes. A node that could still be bought counts as one without pods.
    NodeSpread,
    /// Room on expensive nodes stays free for pods without a cheaper home.
    KeptRoom,
    /// In a plan in steps, pods of a higher priority get their first choice before others.
    Priorities,
}

/// What a rule costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCost {
    /// The rule.
    pub rule: CostRule,
    /// The cost and risk of the plan less those of a plan without the rule; `None` if they cannot be compared. If the rule counts
    /// interruptions, the cost alone.
    pub cost: Option<UsdPerHour>,
    /// Whether a better plan without the rule may exist, so that the rule costs this much or more.
    pub at_least: bool,
    /// Whether a better plan with the rule may exist, so that the rule costs this much or less.
    #[serde(default)]
    pub at_most: bool,
    /// The risk of the plan without the rule, as far as `cost` counts it.
    #[serde(default)]
    pub risk: UsdPerHour,
}

/// Counts of pods and units of buffers by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// All pending workload pods.
    pub total: usize,
    /// Pods placed on existing nodes and claims.
    pub on_existing: usize,
    /// Pods placed on new nodes.
    pub on_new: usize,
    /// Pods without a place.
    pub unplaced: usize,
    /// Pods on new nodes that do not exist yet. They are not in `total`.
    #[serde(default)]
    pub expected: usize,
    /// All units of buffers.
    #[serde(default)]
    pub units: usize,
    /// Units without room.
    #[serde(default)]
    pub units_unplaced: usize,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(name) => write!(f, "claim `{name}`"),
            Self::Node(name) => write!(f, "node `{name}`"),
        }
    }
}

impl Plan {
    /// Returns `(cost - bound) / bound`; zero if nothing is bought.
    pub fn gap(&self) -> f64 {
        match self.over_time {
            Some(OverTime { cost, bound }) => {
                let micros = |amount: Usd| u64::try_from(amount.0).unwrap_or(u64::MAX);
                let rate = |amount| UsdPerHour::from_micros(micros(amount));
                poolwright_solver::gap(rate(cost), rate(bound))
            }
            None => poolwright_solver::gap(self.cost + self.risk, self.bound),
        }
    }
}
