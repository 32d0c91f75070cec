//! Options of a plan.

use poolwright_catalog::{InstanceTypeName, UsdPerHour};
use serde::{Deserialize, Serialize};

use super::namespace_limits::{NamespaceCeiling, NamespaceLimits, StatedLimits, ceilings};
use super::plan::Commitment;
use super::pool::{Pool, PoolLimits};
use super::profile::Profiles;
use super::relaxed::PreferencePolicy;

/// Options of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanOptions {
    /// Whether to plan pods that no scheduler has tried yet. Used for planning from files.
    pub include_waiting: bool,
    /// Names of the schedulers whose pods are planned.
    pub schedulers: Vec<String>,
    /// Profiles of the schedulers, which add rules to their pods.
    pub profiles: Profiles,
    /// The lowest priority of pods for which nodes are bought; `None` for any priority.
    pub min_priority: Option<i32>,
    /// The most offerings that a claim may list, including the planned one; at least one.
    pub max_offerings: usize,
    /// The percentage by which an alternative may cost more than the planned offering. Interruption risk counts as cost.
    pub max_dearer_percent: u32,
    /// Whether to compute the cost of naive planning.
    pub baselines: bool,
    /// Options of each solver call. They are not saved.
    #[serde(skip)]
    pub solver: poolwright_solver::Options,
    /// Limits on all pools together, in addition to each pool's own.
    pub limits: PoolLimits,
    /// The most that the nodes of a pool without a money limit of its own may cost.
    pub default_usd_per_hour: Option<UsdPerHour>,
    /// Limits of every namespace that states none of its own.
    pub namespace_limits: NamespaceLimits,
    /// Whether GPUs of new nodes may be shared or partitioned.
    pub sharing: Sharing,
    /// The counted cost of spot interruptions; `None` to ignore them.
    pub spot_risk: Option<SpotRisk>,
    /// All commitments, by name: where two cover equally good offerings, their order may decide. The planner subtracts the part that existing nodes use ([`crate::plan::left_of_commitments`]).
    #[serde(default)]
    pub commitments: Vec<Commitment>,
    /// Whether preferences of pods influence which nodes are bought.
    pub preferences: PreferencePolicy,
    /// Whether nodes are bought for which `minValues` of their pool is not met.
    pub min_values: MinValuesPolicy,
    /// Whether room on expensive nodes may be kept free for pods without a cheaper home. Plans without it show what it costs.
    #[serde(default = "yes")]
    pub keeps_room: bool,
    /// Whether to keep the solver's problems and solutions in [`crate::plan::Plan::solves`].
    pub keep_solves: bool,
    /// A text that makes claim names of different planners differ. May be empty in the CLI.
    pub salt: String,
}

/// The usual choice, for a saved file without one.
fn yes() -> bool {
    true
}

impl Default for PlanOptions {
    /// Creates options that plan unschedulable pods of `default-scheduler`, list 20 offerings that are at most 20 % more
    /// expensive, and compute baselines.
    fn default() -> Self {
        Self {
            include_waiting: false,
            schedulers: vec!["default-scheduler".to_owned()],
            profiles: Profiles::new(),
            min_priority: None,
            max_offerings: 20,
            max_dearer_percent: 20,
            baselines: true,
            solver: poolwright_solver::Options::default(),
            limits: PoolLimits::default(),
            default_usd_per_hour: None,
            namespace_limits: NamespaceLimits::new(),
            sharing: Sharing::Whole,
            spot_risk: None,
            commitments: Vec::new(),
            preferences: PreferencePolicy::Respect,
            min_values: MinValuesPolicy::Strict,
            keeps_room: true,
            keep_solves: false,
            salt: String::new(),
        }
    }
}

impl PlanOptions {
    /// Returns the limits of a pool, with the default if it has no money limit.
    pub fn limits_of(&self, pool: &Pool) -> PoolLimits {
        pool.limits.or_default(self.default_usd_per_hour)
    }

    /// Returns whether somebody set a money limit on the pool or on all pools together, which unknown prices could exceed unseen.
    /// The default limit does not count: with it, no pool could allow a type at an unknown price.
    pub(crate) fn has_set_money_limit(&self, pool: &Pool) -> bool {
        pool.limits.usd_per_hour.or(self.limits.usd_per_hour).is_some()
    }

    /// Returns whether a pool may buy an instance type at an unknown price.
    pub(crate) fn may_buy_unpriced(&self, pool: &Pool, kind: &InstanceTypeName) -> bool {
        !self.has_set_money_limit(pool) && pool.allow_unknown_price.contains(kind)
    }

    /// Returns the advice that must come before that to allow unknown prices in a pool, with the word that follows it; empty if
    /// there is none.
    pub(crate) fn lift_limit_and(&self, pool: &Pool) -> &'static str {
        if self.has_set_money_limit(pool) { "remove the limit usdPerHour and " } else { "" }
    }

    /// Returns the limits of a namespace that states these.
    pub fn limits_of_namespace(&self, stated: Option<&StatedLimits>) -> Vec<NamespaceCeiling> {
        ceilings(&self.namespace_limits, stated)
    }
}

/// The treatment of `minValues` that no purchase can meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum MinValuesPolicy {
    /// Nothing is bought.
    #[default]
    Strict,
    /// The node is bought with as many values as possible.
    BestEffort,
}

/// The ways in which GPUs of new nodes may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Sharing {
    /// Each GPU goes to one pod as a whole.
    #[default]
    Whole,
    /// Pods may share a GPU, by time slicing or MPS.
    Shared,
    /// GPUs may be partitioned into MIG instances.
    Mig {
        /// Whether a node may have both partitioned and whole GPUs.
        mixed: bool,
    },
}

/// The cost and the frequency of spot interruptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpotRisk {
    /// The cost of one interruption for each GPU of a pod, in micro-dollars: lost work since the last checkpoint, and the time
    /// to restart. A share of a GPU counts proportionally.
    pub per_gpu_micros: u64,
    /// Interruptions per million node-hours, for spot offerings without a rate in the catalogue.
    pub prior: u32,
}

impl Default for SpotRisk {
    /// Creates a risk of one dollar for each GPU: 40 minutes at $1.50/h, about the price of one GPU. The 40 minutes are half of
    /// an hour between checkpoints, and ten minutes to restart. One node in ten is interrupted each day: AWS publishes 5 to 10 %
    /// a month for most types, without the lifetime that this refers to, so the rate is a cautious one.
    fn default() -> Self {
        Self { per_gpu_micros: 1_000_000, prior: 4_400 }
    }
}

impl SpotRisk {
    /// Creates the default risk with another cost of one interruption for each GPU; `None` if that cost is zero.
    pub fn losing(per_gpu: UsdPerHour) -> Option<Self> {
        (per_gpu > UsdPerHour::ZERO).then(|| Self { per_gpu_micros: per_gpu.micros(), ..Self::default() })
    }
}
