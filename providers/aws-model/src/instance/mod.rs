//! Instance types: their properties, their class, and the allocatable resources of their nodes.
//!
//! `providers/aws` fills [`TypeFacts`] from DescribeInstanceTypes. Here, [`class::of`] classifies a type, [`allocatable`]
//! computes the allocatable resources of its nodes, [`KubeletReserved`] has the reservations of a node class, and
//! [`instance_type`] makes the type of the catalogue. [`under`] does the same for a type of which only a catalogue is known.

mod allocatable;
pub mod class;
mod facts;
mod json;
mod kind;
mod kubelet_reserved;
mod listed;
mod selection;

pub use allocatable::{
    Efa, LocalDisks, MaxPods, ReservedMemoryBasis, Settings, VPC_EFA, allocatable, max_pods,
};
pub use class::{Class, Unusable, Unusual};
pub use facts::{
    Accelerator, AcceleratorKind, Architecture, GpuFacts, Hypervisor, NetworkFacts, TypeFacts, UsageClass,
};
pub use json::{InvalidFacts, from_json};
pub use kind::{gpu_model, instance_type, whole_gpus};
pub use kubelet_reserved::{
    InvalidSetting, KubeletReserved, Quantities, SettingProblem, Threshold, ThresholdDefaults,
};
pub use listed::{described, facts_of, under};
pub use selection::Selection;
