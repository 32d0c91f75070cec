//! GPUs that are shared or cut: what a node has of them, and what a pod wants.
//!
//! Where GPUs are only handed out whole, none of this is needed: they are one more resource of the vectors.

use poolwright_catalog::{MigGeometry, MigProfile};
use serde::{Deserialize, Serialize};

/// A whole GPU in share units (thousandths, the `gpu_milli` of the Alibaba traces).
pub const GPU_UNITS: u32 = 1000;

/// The GPUs of a kind of node to buy: `count` equal ones, all empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gpus {
    /// How many.
    pub count: u32,
    /// Memory of one, in MiB.
    pub memory_mib: u64,
    /// What may be done with each.
    pub mode: GpuMode,
}

/// What may be done with a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuMode {
    /// Shared by time slicing or MPS: any pods whose units and memory add up. A pod that wants it whole shares it with
    /// nobody.
    Shared,
    /// Cut into GPU instances. With `mixed`, single GPUs of the node may stay whole; without, no pod that wants a whole GPU
    /// is put on the node.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// How it can be cut.
        geometry: MigGeometry,
        /// Whether GPUs of one node may differ in being cut or whole.
        mixed: bool,
    },
}

/// One GPU of an existing node: what is in use cannot move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuState {
    /// In use as a whole.
    Busy,
    /// Shared; whole when all units and all memory are free.
    #[serde(rename_all = "camelCase")]
    Shared {
        /// Units in use, of [`GPU_UNITS`].
        units_used: u32,
        /// Memory in use, in MiB.
        memory_used_mib: u64,
        /// Memory of the GPU, in MiB.
        memory_mib: u64,
    },
    /// Cut: instances in use stay where they are, all others may be made anew.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// How it can be cut.
        geometry: MigGeometry,
        /// Whether the whole GPU may be given to one pod when no instance is in use.
        mixed: bool,
        /// Instances in use: profile and first memory slice.
        in_use: Vec<(MigProfile, u8)>,
    },
}

/// What one pod wants of the GPUs of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuRequest {
    /// So many whole GPUs, shared with nobody. Each is empty before: of a mode that is shared, or cut and `mixed`.
    Whole(u32),
    /// A share of one physical GPU.
    #[serde(rename_all = "camelCase")]
    Share {
        /// Of [`GPU_UNITS`], at least 1 and at most all.
        units: u32,
        /// MiB; zero when it does not say.
        memory_mib: u64,
    },
    /// So many GPU instances of a profile, on any of the node's GPUs, one or several.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// Which.
        profile: MigProfile,
        /// How many, at least 1.
        count: u32,
    },
}
