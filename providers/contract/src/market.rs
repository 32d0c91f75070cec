//! What a cloud sells in one region now: types with their facts, zones, prices.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use poolwright_catalog::{Arch, Catalogue, Gpu, InstanceTypeName, Zone};

use crate::flags::FlagValues;
use crate::provider::ProviderError;

/// Asks a cloud what it sells. Launches nothing.
#[async_trait]
pub trait MarketReader: Send + Sync {
    /// What the region of the flags sells now; without one, that of the environment.
    ///
    /// # Errors
    ///
    /// The region or credentials are missing, or a call is not allowed. Each error says what to do.
    async fn read(&self, flags: &FlagValues, now: Timestamp) -> Result<Market, ProviderError>;
}

/// What one region sells.
#[derive(Clone, Debug, PartialEq)]
pub struct Market {
    /// Every instance type of the region, whether Poolwright buys it or not.
    pub types: Vec<TypeFacts>,
    /// What Poolwright would buy for a node class that restricts nothing.
    pub catalogue: Catalogue,
    /// What a reader should know about it.
    pub notes: Vec<String>,
}

/// What a cloud says of one instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// Its name.
    pub name: InstanceTypeName,
    /// The architecture of its Linux; `None` where none runs on it.
    pub arch: Option<Arch>,
    /// Its GPUs; `None` without any.
    pub gpus: Option<GpuFacts>,
    /// Interfaces of the cloud's fabric that it can have (EFA).
    pub fabric_interfaces: u32,
    /// Local NVMe disks in GB, all together.
    pub local_nvme_gb: u64,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Whether the cloud sells it as spot.
    pub is_spot: bool,
    /// The zones that have it.
    pub zones: BTreeSet<Zone>,
    /// Why Poolwright does not buy it unless a node class asks for it; `None` where it does.
    pub left_out: Option<String>,
    /// The same in a word or two, for a table; empty where Poolwright buys it.
    pub note: &'static str,
}

/// The GPUs of an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// Model, whole GPUs, and memory of each. The count is zero where the type has a part of a GPU.
    pub gpu: Gpu,
    /// GPUs as the operating system sees them; a part of one counts as one.
    pub logical_count: u32,
    /// How much of a GPU each of them is, in thousandths; `None` for whole ones.
    pub share_thousandths: Option<u32>,
    /// Whether MIG may cut them.
    pub can_be_cut: bool,
}
