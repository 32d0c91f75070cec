//! How to plan: the choices of whoever asks for a plan.

use poolwright_catalog::UsdPerHour;

use super::plan::Commitment;
use super::pool::PoolLimits;
use super::profile::Profiles;
use super::relaxed::PreferencePolicy;

/// How to plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOptions {
    /// Whether pods count that no scheduler has tried yet: for planning from files.
    pub include_waiting: bool,
    /// Pods of these schedulers count.
    pub schedulers: Vec<String>,
    /// What the configuration of schedulers adds to the rules of their pods.
    pub profiles: Profiles,
    /// Pods with a lower priority buy nothing; they run where room is left.
    pub min_priority: Option<i32>,
    /// How many offerings a claim may carry, the planned one included; at least one.
    pub max_offerings: usize,
    /// An alternative may count as at most this many percent more than the planned offering, what is counted beside the prices
    /// included.
    pub max_dearer_percent: u32,
    /// Whether to work out what naive planning would cost.
    pub baselines: bool,
    /// How far the solver goes, each time it is asked.
    pub solver: poolwright_solver::Options,
    /// Ceilings over all pools together, besides those of each.
    pub limits: PoolLimits,
    /// What may be done with the GPUs of nodes that are bought.
    pub sharing: Sharing,
    /// What interruptions of spot nodes are counted to cost; `None` for nothing.
    pub spot_risk: Option<SpotRisk>,
    /// Money paid beforehand, all of it: what claims use of it whose nodes stay is taken off ([`left_of_commitments`]).
    pub commitments: Vec<Commitment>,
    /// Whether preferences of pods steer what is bought for them.
    pub preferences: PreferencePolicy,
    /// Whether to keep what the solver was asked and what it answered, in [`Plan::solves`].
    pub keep_solves: bool,
    /// Makes claim names of different planners differ: the CLI may leave it empty.
    pub salt: String,
}

impl Default for PlanOptions {
    /// Pods of `default-scheduler` that it could not place; 20 offerings, at most 20 % dearer; baselines.
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
            sharing: Sharing::Whole,
            spot_risk: None,
            commitments: Vec::new(),
            preferences: PreferencePolicy::Respect,
            keep_solves: false,
            salt: String::new(),
        }
    }
}

/// What may be done with the GPUs of nodes that are bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each goes to one pod as a whole.
    #[default]
    Whole,
    /// Pods may share one, by time slicing or MPS.
    Shared,
    /// They may be cut into GPU instances.
    Mig {
        /// Whether some GPUs of a node may be cut and others stay whole.
        mixed: bool,
    },
}

/// What an interruption loses, and how often one comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpotRisk {
    /// What one interruption of a pod loses for each of its GPUs, in micro-dollars: work since the last checkpoint and the time to come back.
    /// A part of a GPU counts as that part.
    pub per_gpu_micros: u64,
    /// Interruptions in a million node-hours of spot offerings whose catalogue does not say.
    pub prior: u32,
}

impl Default for SpotRisk {
    /// A dollar for each GPU: 40 minutes (half of an hour between checkpoints, and ten to come back) at 1.50 $/h, about what one GPU
    /// costs. One node in ten a day: AWS publishes 5 to 10 % a month for most types, without saying of how long a life; this is the
    /// cautious end.
    fn default() -> Self {
        Self { per_gpu_micros: 1_000_000, prior: 4_400 }
    }
}

impl SpotRisk {
    /// The usual, but for what one interruption loses for each GPU; `None` where that is nothing.
    pub fn losing(per_gpu: UsdPerHour) -> Option<Self> {
        (per_gpu > UsdPerHour::ZERO).then(|| Self { per_gpu_micros: per_gpu.micros(), ..Self::default() })
    }
}
