//! What a plan says.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use poolwright_catalog::{InstanceTypeName, MigProfile, OfferingId, RankedOffering, UsdPerHour};
use poolwright_solver::Proof;
use poolwright_terms::{NodeClassRef, Reason, Taint};
use serde::{Deserialize, Serialize};

use crate::model::claim::Deadlines;
use crate::model::names::ClaimName;
use crate::model::names::PoolName;
use crate::model::names::Uid;
use crate::model::pod_key::PodKey;
use crate::model::relaxed::RelaxedPreference;

/// What to buy and where every pod that waits goes, with the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Nodes to buy; sorted by name.
    pub claims: Vec<PlannedClaim>,
    /// Pods that go where room is or is on its way; sorted by pod.
    pub placements: Vec<PlacedPod>,
    /// Pods that go nowhere, and why; sorted by pod. Finished and bound pods, and those of DaemonSets, are not mentioned.
    pub unplaced: Vec<UnplacedPod>,
    /// What was found out about each pool; every pool of the snapshot is in it.
    pub pools: BTreeMap<PoolName, PoolFindings>,
    /// What `claims` cost together, less what commitments cover, those with an unknown price aside.
    pub cost: UsdPerHour,
    /// What commitments pay of the prices of `claims`.
    pub covered: UsdPerHour,
    /// What is used of each commitment, in the order of [`crate::plan::PlanOptions::commitments`].
    pub commitments: Vec<CommitmentUse>,
    /// What interruptions of `claims` are counted to cost besides: see [`crate::plan::PlanOptions::spot_risk`], and
    /// [`crate::model::snapshot::Snapshot::taken_back`].
    pub risk: UsdPerHour,
    /// No plan that places the same pods has less of cost and risk together than this, given what is bought from heavier pools first (a pod sees
    /// lighter ones only when those are full).
    pub bound: UsdPerHour,
    /// How many pods were given a place by rules about other pods (zones, nodes to share) before anything was packed; with
    /// any, `bound` holds for plans with these places only.
    pub pinned_pods: usize,
    /// How many pods have what is bought for them steered by preferences; with any, `bound` holds for plans that meet the
    /// same preferences only.
    pub steered_pods: usize,
    /// Preferences that are not met on the nodes to buy; sorted.
    pub relaxed: Vec<RelaxedPreference>,
    /// What `bound` rests on: the weakest of what the solves behind it say.
    pub proof: Proof,
    /// How many of `claims` have a first offering with an unknown price: their cost is in neither `cost` nor `bound`.
    pub unknown_price_claims: usize,
    /// What the same pods would cost if planned naively.
    pub baselines: Baselines,
    /// Where each waiting pod of the plan goes, by pod: its UID, and the name of the claim, or of the node where no claim
    /// stands behind it. To be put into the next [`crate::model::snapshot::Snapshot::nominations`].
    pub nominations: BTreeMap<PodKey, (Uid, String)>,
    /// Where the successors of pods go whose nodes are emptied; sorted by pod.
    pub moved: Vec<Moved>,
    /// How many pods there were and what became of them.
    pub counts: Counts,
    /// Set when the plan did not pass the independent check; `claims` is empty then, and nothing is bought. What was
    /// violated, in sentences. This is a bug of Poolwright, never of its users.
    pub refused: Vec<String>,
    /// When to plan again although nothing changed: what a pod waits for is given up then.
    pub again_at: Option<Timestamp>,
    /// Whether the solver was asked to stop before it was done.
    pub stopped_early: bool,
    /// What the solver was asked, in this order, and what it answered; empty unless [`crate::plan::PlanOptions::keep_solves`].
    pub solves: Vec<Solve>,
}

impl Plan {
    /// Whether pods are left over for which something is sold that cannot be had now: a limit is reached, or it failed lately.
    pub fn is_short_of_capacity(&self) -> bool {
        use UnplacedReason::GangIncomplete;
        use UnplacedReason::LimitReached;
        use UnplacedReason::OfferingsHeldBack;
        let mut reasons = self.unplaced.iter().map(|left| left.reason);
        reasons.any(|reason| matches!(reason, LimitReached | OfferingsHeldBack | GangIncomplete))
    }
}

/// One call of the solver, to be looked into or made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Solve {
    /// What was asked.
    pub problem: poolwright_solver::Problem,
    /// The pods of each class of the problem.
    pub pods: Vec<Vec<PodKey>>,
    /// What was answered; `None` when the problem was refused as malformed, which would be a bug.
    pub solution: Option<poolwright_solver::Solution>,
}

/// Money paid beforehand per hour, which pays for what is used of it: savings plans, flexible commitments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commitment {
    /// For messages.
    pub name: String,
    /// What of it there is for nodes of Poolwright; for a solve, what is left of that.
    pub left: UsdPerHour,
    /// What a node of an offering uses of it; above zero. No offering is in two commitments.
    pub rates: BTreeMap<OfferingId, UsdPerHour>,
}

impl Commitment {
    /// Whether nothing is left of it.
    pub fn is_used_up(&self) -> bool {
        self.left == UsdPerHour::ZERO
    }

    /// Whether it pays for anything of this offering.
    pub fn pays_for(&self, offering: &OfferingId) -> bool {
        !self.is_used_up() && self.rates.contains_key(offering)
    }
}

/// What a plan uses of a commitment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitmentUse {
    /// Which.
    pub name: String,
    /// What was left before.
    pub left: UsdPerHour,
    /// What the plan uses of that.
    pub used: UsdPerHour,
}

/// One node to buy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedClaim {
    /// The name its NodeClaim gets: unique, and the same for the same snapshot and time.
    pub name: ClaimName,
    /// Its pool.
    pub pool: PoolName,
    /// The UID of its pool, for the owner reference.
    pub pool_uid: Uid,
    /// What to launch it with.
    pub node_class: NodeClassRef,
    /// What to order: the planned offering, then what to take when that is out of stock. Never empty.
    pub offerings: Vec<RankedOffering>,
    /// Labels from the pool's template.
    pub labels: BTreeMap<String, String>,
    /// Annotations from the pool's template.
    pub annotations: BTreeMap<String, String>,
    /// Taints the node keeps.
    pub taints: Vec<Taint>,
    /// Taints the node has at first.
    pub startup_taints: Vec<Taint>,
    /// Types of conditions that the node must have as true before it opens.
    pub readiness_gates: Vec<String>,
    /// The pods it is bought for; sorted, and none where it is bought for a static pool or as room to keep. Those that are still to come have keys that no pod can have, such as
    /// `ml/Job:train#7`.
    pub planned_pods: Vec<PodKey>,
    /// Those of them that had a place on a node that is still there, and lost it: without that it might not be bought.
    pub bought_again: Vec<PodKey>,
    /// How long each stage may take.
    pub deadlines: Deadlines,
    /// What is on each of its GPUs, where they are shared or cut; else empty.
    pub gpus: Vec<PlannedGpu>,
    /// Why this node, in a sentence.
    pub reason: String,
}

/// What is planned for one GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PlannedGpu {
    /// Nothing.
    Idle,
    /// One pod has it whole; it may have others too.
    Whole(PodKey),
    /// Pods share it.
    Shared(Vec<PlannedShare>),
    /// It is cut into instances; by first memory slice, ascending.
    Mig(Vec<PlannedInstance>),
}

/// A pod's share of a GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedShare {
    /// Whose.
    pub pod: PodKey,
    /// How much, in thousandths.
    pub milli: u32,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlannedInstance {
    /// Its first memory slice.
    pub start: u8,
    /// What it is.
    pub profile: MigProfile,
    /// What it is called on this GPU: `1g.10gb`.
    pub name: String,
    /// Who uses it.
    pub pod: PodKey,
}

impl PlannedClaim {
    /// What was planned to be ordered.
    pub fn offering(&self) -> &OfferingId {
        &self.offerings[0].offering
    }

    /// The instance type that was planned.
    pub fn instance_type(&self) -> &InstanceTypeName {
        &self.offerings[0].offering.instance_type
    }

    /// Its price per hour; `None` when it is unknown.
    pub fn price(&self) -> Option<UsdPerHour> {
        self.offerings[0].price
    }
}

/// A waiting pod that needs no purchase.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PlacedPod {
    /// Which pod.
    pub pod: PodKey,
    /// Where it goes.
    pub target: Target,
}

/// Room that is there or on its way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// A claim, whether or not its node has joined.
    Claim(ClaimName),
    /// A node that no claim stands behind.
    Node(String),
}

impl Target {
    /// The claim's name, or the node's.
    pub fn name(&self) -> &str {
        let (Self::Claim(ClaimName(name)) | Self::Node(name)) = self;
        name
    }
}

/// A pod that goes nowhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnplacedPod {
    /// Which pod.
    pub pod: PodKey,
    /// Why, for machines.
    pub reason: UnplacedReason,
    /// Why, and what to do, in a sentence or two.
    pub message: String,
}

/// A pod whose node is emptied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moved {
    /// Which pod.
    pub pod: PodKey,
    /// The claim of the node that it is on.
    pub from: ClaimName,
    /// The key that its successor has in the plan; `None` where none is made.
    pub stands_as: Option<PodKey>,
    /// Where the pod goes that its controller makes in its place.
    pub to: MovedTo,
}

/// Where a pod goes that is made in place of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MovedTo {
    /// To room that is there or on its way.
    Room(Target),
    /// To a node that the plan buys.
    New(ClaimName),
    /// Nowhere, and why.
    Nowhere(String),
    /// Its controller makes none: it has as many as it wants without it.
    NotMade,
}

/// Why a pod goes nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UnplacedReason {
    /// There is no pool that could buy anything.
    NoUsablePool,
    /// No offering of any pool holds it.
    NoOfferingFits,
    /// Offerings hold it, but a limit of their pool is reached.
    LimitReached,
    /// Offerings hold it, but all of them failed lately.
    OfferingsHeldBack,
    /// Offerings hold it, but their price is unknown.
    PriceUnknown,
    /// It uses a rule that Poolwright does not model yet.
    UnmodelledRule,
    /// Its rules about other pods leave it no place: topology spread, pod affinity or anti-affinity.
    TopologyRule,
    /// Its PodGroup is not there.
    PodGroupMissing,
    /// Its gang cannot have room for as many pods as it starts with.
    GangIncomplete,
    /// Its gang waits for more pods.
    PodGroupPending,
    /// One of its volumes cannot be had until somebody changes something.
    VolumeUnusable,
    /// One of its volumes is about to be had, or another pod has it.
    VolumePending,
    /// The scheduler makes room for it by preemption.
    PreemptionInProgress,
    /// Its priority is below the least that buys nodes.
    LowPriority,
    /// It is held by scheduling gates.
    SchedulingGated,
    /// Another scheduler places it.
    OtherScheduler,
    /// The scheduler has not tried it yet.
    NotYetTried,
}

impl UnplacedReason {
    /// Every reason.
    pub const ALL: [Self; 17] = [
        Self::NoUsablePool,
        Self::NoOfferingFits,
        Self::LimitReached,
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

    /// The reason of an event that tells of it.
    pub const fn reason(self) -> Reason {
        match self {
            Self::NoUsablePool => Reason::NoUsablePool,
            Self::NoOfferingFits => Reason::NoOfferingFits,
            Self::LimitReached => Reason::LimitReached,
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

    /// The stable name, as in events and in the JSON of a plan.
    pub const fn as_str(self) -> &'static str {
        self.reason().as_str()
    }

    /// Whether the pod wants a node and does not get one: such pods are reported to their users. The others wait for
    /// somebody else, and are none of our business yet.
    pub const fn is_unmet_demand(self) -> bool {
        matches!(
            self,
            Self::NoUsablePool
                | Self::NoOfferingFits
                | Self::LimitReached
                | Self::OfferingsHeldBack
                | Self::PriceUnknown
                | Self::UnmodelledRule
                | Self::TopologyRule
                | Self::PodGroupMissing
                | Self::GangIncomplete
                | Self::VolumeUnusable
        )
    }
}

/// What planning found out about a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolFindings {
    /// Its spec makes no sense: reason and sentence.
    pub invalid: Option<(Reason, String)>,
    /// Its node class is missing or cannot buy: reason and sentence.
    pub node_class: Option<(Reason, String)>,
    /// Limits that keep it from buying what pods need: a sentence.
    pub limit_reached: Option<String>,
    /// How many offerings it may buy now.
    pub offerings: usize,
}

/// What the pods that the plan buys for would cost otherwise. Zero when nothing is bought, or when it was not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baselines {
    /// Each pod on a node of its own, the cheapest that holds it.
    pub one_pod_per_node: UsdPerHour,
    /// First fit, decreasing, each new node the cheapest that holds its first pod.
    pub first_fit: UsdPerHour,
}

/// Pods by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Pods looked at: waiting workload pods.
    pub total: usize,
    /// Pods that go to room that is there or on its way.
    pub on_existing: usize,
    /// Pods that nodes are bought for.
    pub on_new: usize,
    /// Pods that go nowhere.
    pub unplaced: usize,
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
    /// `(cost - bound) / bound`; zero when nothing is bought.
    pub fn gap(&self) -> f64 {
        poolwright_solver::gap(self.cost + self.risk, self.bound)
    }
}
