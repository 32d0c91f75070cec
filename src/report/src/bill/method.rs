//! The methods by which the cost of a node is split.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::HOUR;
use crate::ledger::row::{Amounts, InstanceSpan};

/// Parts into which weights are rounded.
const WHOLE: u128 = 1_000_000;

/// How the cost of a node is split among GPUs, CPU and memory, and so among pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// A node with GPUs costs its GPUs, and nothing else. Other nodes are split as by `weights`.
    GpuOnly,
    /// With GPUs, they cost 95 % of the node, CPU 3 % and memory 2 %. Without, CPU costs 60 % and memory 40 %.
    Weights,
    /// CPU and memory cost what they cost elsewhere, and GPUs the rest of the list price.
    Marginal,
    /// Everything costs its price on a rate card. The difference to the cost of the nodes is a charge of its own.
    RateCard,
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 4] = [Self::GpuOnly, Self::Weights, Self::Marginal, Self::RateCard];

    /// Returns its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GpuOnly => "gpu-only",
            Self::Weights => "weights",
            Self::Marginal => "marginal",
            Self::RateCard => "rate-card",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|method| method.name() == text);
        found.ok_or_else(|| format!("not a method; use one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Prices in micro-dollars per hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The price of a GPU, by model or instance type, in small letters.
    pub gpus: BTreeMap<String, u64>,
    /// The price of a vCPU.
    pub cpu: u64,
    /// The price of a GiB of memory.
    pub memory: u64,
}

impl Default for Rates {
    /// Returns the default prices of OpenCost for CPU and memory, and none for GPUs.
    fn default() -> Self {
        Self { gpus: BTreeMap::new(), cpu: 31_611, memory: 4_237 }
    }
}

/// What a split needs besides the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// The method.
    pub method: Method,
    /// The prices for `marginal` and `rate-card`.
    pub rates: Rates,
    /// The GPU model of each instance type.
    pub models: BTreeMap<String, String>,
}

impl Split {
    /// Creates a split that needs no prices of its own.
    pub fn by(method: Method) -> Self {
        Self { method, rates: Rates::default(), models: BTreeMap::new() }
    }

    /// Returns the price of a GPU of an instance on the rate card: that of its type, else that of its model.
    pub fn gpu_rate(&self, instance_type: &str) -> Option<u64> {
        let gpus = &self.rates.gpus;
        let model = || gpus.get(self.models.get(instance_type)?);
        let small = || gpus.get(&instance_type.to_lowercase());
        gpus.get(instance_type).or_else(model).or_else(small).copied()
    }

    /// Returns whether the rate card has prices for all that an instance offers.
    pub fn has_rates(&self, instance: &InstanceSpan) -> bool {
        instance.offers.gpu_millis == 0 || self.gpu_rate(&instance.instance_type).is_some()
    }

    /// Returns the weights of GPUs, CPU and memory in the cost of an instance. Their sum is a million or slightly less, or zero if
    /// it offers nothing that has a price.
    pub(super) fn weights(&self, instance: &InstanceSpan) -> [u128; 3] {
        let has_gpus = instance.offers.gpu_millis > 0;
        let weights = match self.method {
            Method::GpuOnly if has_gpus => [1, 0, 0],
            Method::Weights if has_gpus => [95, 3, 2],
            Method::GpuOnly | Method::Weights => [0, 60, 40],
            Method::Marginal => self.marginal(instance),
            Method::RateCard => self.per_hour(instance),
        };
        let sum = weights.iter().fold(0_u128, |sum, weight| sum.saturating_add(*weight));
        weights.map(|weight| weight.saturating_mul(WHOLE).checked_div(sum).unwrap_or(0))
    }

    /// Returns what CPU and memory would cost elsewhere, and what of the list price is left for the GPUs.
    fn marginal(&self, instance: &InstanceSpan) -> [u128; 3] {
        let [_, cpu, memory] = self.per_hour(instance);
        let price = instance.list_micros_per_hour.or(instance.price_micros_per_hour).map_or(0, u128::from);
        let left = price.saturating_sub(cpu.saturating_add(memory));
        [if instance.offers.gpu_millis > 0 { left } else { 0 }, cpu, memory]
    }

    /// Returns what an instance offers costs in an hour on the rate card: GPUs, CPU and memory.
    fn per_hour(&self, instance: &InstanceSpan) -> [u128; 3] {
        self.card(&instance.instance_type, instance.offers.kinds().map(|amount| amount * HOUR))
    }

    /// Returns what GPUs, CPU and memory of an instance type cost on the rate card, in micro-dollars. Amounts are multiplied by
    /// milliseconds.
    pub(super) fn card(&self, instance_type: &str, held: [u128; 3]) -> [u128; 3] {
        let [gpus, cpu, memory] = held;
        let cost = |rate: u64, held: u128, unit: u128| u128::from(rate).saturating_mul(held) / (unit * HOUR);
        [
            cost(self.gpu_rate(instance_type).unwrap_or(0), gpus, 1_000),
            cost(self.rates.cpu, cpu, 1_000),
            cost(self.rates.memory, memory, 1 << 30),
        ]
    }
}

impl Amounts {
    /// Returns the amounts of GPUs, CPU and memory.
    pub(super) fn kinds(&self) -> [u128; 3] {
        [self.gpu_millis.into(), self.cpu_millis.into(), self.memory_bytes.into()]
    }
}
