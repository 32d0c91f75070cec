//! Instance types: what EC2 says of one, whether it can be a node, what its node will advertise.
//!
//! The edge fills [`TypeFacts`] from DescribeInstanceTypes; everything after that is here: [`class::of`] sorts types,
//! [`allocatable`] computes what kubelet will report, [`KubeletReserved`] is what a class's kubelet keeps of it, [`instance_type`] makes the catalogue's type of both.

mod allocatable;
pub mod class;
mod facts;
mod json;
mod kind;
mod kubelet_reserved;
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
pub use selection::Selection;
