//! GPUs that are shared or partitioned: the GPUs of a node, and the GPU request of a pod.
//!
//! If pods use only whole GPUs, these are an ordinary resource and need none of this.

use poolwright_catalog::{MigGeometry, MigProfile};
use serde::{Deserialize, Serialize};

/// A whole GPU in share units (thousandths, the `gpu_milli` of the Alibaba traces).
pub const GPU_UNITS: u32 = 1000;

/// The GPUs of a kind of node to buy: `count` equal ones, all empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Gpus {
    /// The number of GPUs.
    pub count: u32,
    /// The memory of one GPU, in MiB.
    pub memory_mib: u64,
    /// The mode of each of them.
    pub mode: GpuMode,
}

/// The ways in which pods may use a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuMode {
    /// Pods share it by time slicing or MPS, as long as their units and memory fit together. A pod that wants a whole
    /// GPU shares it with no other pod.
    Shared,
    /// It is partitioned into GPU instances. With `mixed`, single GPUs of the node may stay whole. Without it, the node
    /// takes no pod that requests a whole GPU.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// The GPU family, which determines the possible partitions.
        geometry: MigGeometry,
        /// Whether some GPUs of one node may be partitioned while others stay whole.
        mixed: bool,
    },
}

/// One GPU of an existing node. Parts in use cannot move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuState {
    /// One pod uses the whole GPU.
    Busy,
    /// Pods share it. A pod may have the whole GPU when all units and all memory are free.
    #[serde(rename_all = "camelCase")]
    Shared {
        /// The units in use, of [`GPU_UNITS`].
        units_used: u32,
        /// The memory in use, in MiB.
        memory_used_mib: u64,
        /// The memory of the GPU, in MiB.
        memory_mib: u64,
    },
    /// It is partitioned. Instances in use stay where they are. All others may be created again.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// The GPU family, which determines the possible partitions.
        geometry: MigGeometry,
        /// Whether the whole GPU may be given to one pod when no instance is in use.
        mixed: bool,
        /// The instances in use: profile and first memory slice.
        in_use: Vec<(MigProfile, u8)>,
    },
}

/// The GPU request of one pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum GpuRequest {
    /// This many whole GPUs, shared with no other pod. Each must be empty, and either shared or partitioned with `mixed`.
    Whole(u32),
    /// A share of one physical GPU.
    #[serde(rename_all = "camelCase")]
    Share {
        /// The part of [`GPU_UNITS`], at least 1.
        units: u32,
        /// The memory in MiB; zero where the pod does not state it.
        memory_mib: u64,
    },
    /// GPU instances of one profile, on any of the node's GPUs.
    #[serde(rename_all = "camelCase")]
    Mig {
        /// The profile.
        profile: MigProfile,
        /// The number of instances, at least 1.
        count: u32,
    },
}
