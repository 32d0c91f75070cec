//! The market of a cloud: the instance types, zones and prices of one region.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use poolwright_catalog::{Arch, Catalogue, Gpu, InstanceTypeName, Zone};

use crate::flags::FlagValues;
use crate::provider::ProviderError;

/// Reads the market of a cloud. It launches nothing.
#[async_trait]
pub trait MarketReader: Send + Sync {
    /// Reads the market of the region in the flags, or of the default region of the environment.
    ///
    /// # Errors
    ///
    /// The region or the credentials are missing, or a call is not allowed. Each error says what to do.
    async fn read(&self, flags: &FlagValues, now: Timestamp) -> Result<Market, ProviderError>;
}

/// The market of one region.
#[derive(Clone, Debug, PartialEq)]
pub struct Market {
    /// All instance types of the region, including those that Poolwright does not buy.
    pub types: Vec<TypeFacts>,
    /// The offerings that Poolwright would buy for a node class without restrictions.
    pub catalogue: Catalogue,
    /// Remarks for the reader, such as the age of the prices.
    pub notes: Vec<String>,
}

/// The properties of one instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// The name.
    pub name: InstanceTypeName,
    /// The CPU architecture; `None` if the type does not run Linux.
    pub arch: Option<Arch>,
    /// The GPUs; `None` if the type has none.
    pub gpus: Option<GpuFacts>,
    /// The number of network interfaces for the cloud's high-performance fabric (EFA on AWS).
    pub fabric_interfaces: u32,
    /// The total size of the local NVMe disks, in GB.
    pub local_nvme_gb: u64,
    /// The number of vCPUs.
    pub vcpus: u32,
    /// The memory, in MiB.
    pub memory_mib: u64,
    /// Whether the cloud sells the type as spot capacity.
    pub is_spot: bool,
    /// The zones that offer the type.
    pub zones: BTreeSet<Zone>,
    /// The reason why Poolwright buys the type only if a node class names it; `None` if Poolwright buys it by default.
    pub left_out: Option<String>,
    /// The same reason in one or two words, for a table; empty if Poolwright buys the type by default.
    pub note: &'static str,
}

/// The GPUs of an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// The model, the number of whole GPUs, and the memory of each GPU. The count is zero if the type has a fraction of a GPU.
    pub gpu: Gpu,
    /// The number of GPUs that the operating system sees. A fraction of a GPU counts as one.
    pub logical_count: u32,
    /// The size of each GPU in thousandths of a physical GPU; `None` for whole GPUs.
    pub share_thousandths: Option<u32>,
    /// Whether the GPUs support MIG.
    pub can_be_cut: bool,
}
