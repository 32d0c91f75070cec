//! Computes the allocatable resources of a node before the node exists.
//!
//! The figures are those of the EKS node images, AL2023 and Bottlerocket:
//!
//! | resource | figure | source |
//! |---|---|---|
//! | memory that the kernel does not see | 7.5 % of the memory of the type; 64 MiB more on Arm (contiguous memory that Graviton kernels set aside) | Karpenter's `VM_MEMORY_OVERHEAD_PERCENT` and `memory()`, aws/karpenter-provider-aws |
//! | reserved memory | 255 MiB + 11 MiB for each pod of the pod limit | `GetMemoryMebibytesToReserve`, awslabs/amazon-eks-ami `nodeadm/internal/kubelet/config.go` |
//! | eviction threshold for memory | 100 MiB | `evictionHard`, same file |
//! | reserved CPU | 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest | `getCPUMillicoresToReserve`, same file |
//! | reserved disk | 1 GiB, and an eviction threshold of one tenth | `kubeReserved` and `nodefs.available`, same file |
//! | pod limit | interfaces x (addresses - 1) + 2: one address of each interface is its own, and two pods use the host network | `getMaxPodsFromENIInfo`, `nodeadm/internal/kubelet/maxpods/maxpods.go` |
//! | pod limit by cores | `podsPerCore` of the class for each core, at most the pod limit | `podsPerCore`, see [`super::kubelet_reserved`] |
//! | pod limit with prefixes | 16 for each address, at most 110 below 30 cores, else 250 | `max-pods-calculator.sh`, awslabs/amazon-eks-ami |
//!
//! [`KubeletReserved`] has the kubelet settings of a class, which replace some of these figures.

use std::collections::BTreeMap;

use poolwright_catalog::{Arch, InstanceTypeName, ResourceList, ResourceName};

use super::facts::TypeFacts;
use super::kind::whole_gpus;
use super::kubelet_reserved::KubeletReserved;

/// The resource name of EFA interfaces, which the EFA device plugin advertises.
pub const VPC_EFA: &str = "vpc.amazonaws.com/efa";

/// The settings of a node class that affect the allocatable resources of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The pod limit of the kubelet.
    pub max_pods: MaxPods,
    /// The number of pods that determines the reserved memory.
    pub reserve: ReservedMemoryBasis,
    /// The number of interfaces without addresses for pods: one with custom networking, else none.
    pub reserved_interfaces: u32,
    /// The share of the memory that the kernel does not see, in thousandths. A measured capacity takes precedence.
    pub memory_overhead_thousandths: u32,
    /// The memory capacity that nodes of a type have reported, in MiB. It is more exact than the formula.
    pub measured_memory_mib: BTreeMap<InstanceTypeName, u64>,
    /// The size of the root disk, in GiB.
    pub root_disk_gib: u32,
    /// The use of local disks.
    pub local_disks: LocalDisks,
    /// Whether nodes have EFA interfaces.
    pub efa: Efa,
    /// The resources that the kubelet reserves.
    pub kept: KubeletReserved,
}

impl Default for Settings {
    /// Returns the settings of the EKS image of AL2023 without kubelet settings, on a root disk of 20 GiB.
    fn default() -> Self {
        Self {
            max_pods: MaxPods::Addresses,
            reserve: ReservedMemoryBasis::Addresses,
            reserved_interfaces: 0,
            memory_overhead_thousandths: 75,
            measured_memory_mib: BTreeMap::new(),
            root_disk_gib: 20,
            local_disks: LocalDisks::Unused,
            efa: Efa::None,
            kept: KubeletReserved::default(),
        }
    }
}

/// The pod limit of the kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxPods {
    /// The number of pod addresses of the default network card, without an upper bound, as in AL2023.
    Addresses,
    /// The number of pod addresses with prefixes of 16 addresses, but at most the limit that AWS recommends.
    Prefixes,
    /// This number.
    Fixed(u32),
}

/// The number of pods that determines the reserved memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedMemoryBasis {
    /// The number of pod addresses, regardless of the pod limit: AL2023.
    Addresses,
    /// The pod limit of the kubelet: Bottlerocket.
    MaxPods,
}

/// The use of local NVMe disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalDisks {
    /// They are not used. The ephemeral storage of pods is on the root disk.
    Unused,
    /// They form one RAID 0 with the ephemeral storage of pods.
    Raid0,
}

/// Whether nodes have EFA interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Efa {
    /// Nodes have none.
    None,
    /// Nodes have as many as the type supports, and the device plugin advertises them.
    All,
}

/// The number of cores from which [`MaxPods::Prefixes`] allows 250 pods.
const MANY_CORES: u32 = 30;
const ARM_CONTIGUOUS_MIB: u64 = 64;
/// The largest quantity in Kubernetes.
const MOST: u64 = i64::MAX as u64;

/// Returns the number of pods for which the default network card has addresses.
fn pods_by_addresses(facts: &TypeFacts, settings: &Settings, per_address: u64) -> u64 {
    let network = facts.network;
    let interfaces = u64::from(network.interfaces.saturating_sub(settings.reserved_interfaces));
    let addresses = u64::from(network.ipv4_per_interface.saturating_sub(1));
    // The product of three 32-bit factors can overflow.
    interfaces.saturating_mul(addresses).saturating_mul(per_address).saturating_add(2)
}

/// Returns the pod limit by the number of cores.
pub(super) fn pods_by_cores(facts: &TypeFacts, settings: &Settings) -> u64 {
    match settings.kept.pods_per_core {
        Some(pods) => u64::from(pods) * u64::from(facts.vcpus),
        None => u64::MAX,
    }
}

/// Returns the pod limit of the kubelet.
pub fn max_pods(facts: &TypeFacts, settings: &Settings) -> u64 {
    let most = match settings.max_pods {
        MaxPods::Addresses => pods_by_addresses(facts, settings, 1),
        MaxPods::Prefixes => {
            let recommended = if facts.vcpus < MANY_CORES { 110 } else { 250 };
            pods_by_addresses(facts, settings, 16).min(recommended)
        }
        MaxPods::Fixed(pods) => pods.into(),
    };
    most.min(pods_by_cores(facts, settings))
}

/// Returns the reserved CPU of a node with this number of cores, in thousandths of a core.
pub(super) fn reserved_cpu_milli(cores: u64) -> u64 {
    let steps = [(0, 1, 600), (1, 2, 100), (2, 4, 50), (4, u64::MAX, 25)];
    let kept = |(above, upto, ten_thousandths): (u64, u64, u64)| {
        cores.min(upto).saturating_sub(above) * ten_thousandths
    };
    steps.into_iter().map(kept).sum::<u64>() / 10
}

/// Returns the memory that the kernel sees, in bytes.
fn memory_capacity(facts: &TypeFacts, settings: &Settings) -> u64 {
    let estimated = || {
        let set_aside = if facts.arch() == Some(Arch::Arm64) { ARM_CONTIGUOUS_MIB } else { 0 };
        let memory = facts.memory_mib.saturating_sub(set_aside);
        let overhead = memory.saturating_mul(settings.memory_overhead_thousandths.into()).div_ceil(1000);
        memory.saturating_sub(overhead)
    };
    let mib = settings.measured_memory_mib.get(&facts.name).copied().unwrap_or_else(estimated);
    mib.min(MOST >> 20) << 20
}

/// Returns the size of the disk with the ephemeral storage of pods, in bytes.
fn disk_capacity(facts: &TypeFacts, settings: &Settings) -> u64 {
    let disk = match settings.local_disks {
        LocalDisks::Raid0 if facts.local_nvme_gb > 0 => facts.local_nvme_gb.saturating_mul(1_000_000_000),
        _ => u64::from(settings.root_disk_gib) << 30,
    };
    disk.min(MOST)
}

/// Returns the capacity without the reserved amounts and the eviction threshold.
fn left(capacity: u64, kube: u64, system: Option<u64>, evicted_at: u64) -> u64 {
    capacity.saturating_sub(kube).saturating_sub(system.unwrap_or(0)).saturating_sub(evicted_at)
}

/// Returns the allocatable resources of a node of this type.
///
/// Memory is an estimate unless it was measured: nearly all types lose less than 7.5 %, and a few types with 2 to 5 GiB lose more
/// (`docs/aws-catalogue.md`). The other figures are exact for the images above.
pub fn allocatable(facts: &TypeFacts, settings: &Settings) -> ResourceList {
    let pods = max_pods(facts, settings);
    let reserved_for = match settings.reserve {
        ReservedMemoryBasis::Addresses => pods_by_addresses(facts, settings, 1),
        ReservedMemoryBasis::MaxPods => pods,
    };
    let KubeletReserved { kube, system, memory_left, disk_left, .. } = settings.kept;
    let cores = u64::from(facts.vcpus);
    let (memory, disk) = (memory_capacity(facts, settings), disk_capacity(facts, settings));
    let kube_cpu = kube.cpu_milli.unwrap_or_else(|| reserved_cpu_milli(cores));
    let by_pods = || reserved_for.saturating_mul(11).saturating_add(255).saturating_mul(1 << 20);
    let kube_memory = kube.memory.unwrap_or_else(by_pods);
    let kube_disk = kube.ephemeral_storage.unwrap_or(1 << 30);
    let mut list = ResourceList::new()
        .with(ResourceName::CPU, left(cores * 1000, kube_cpu, system.cpu_milli, 0))
        .with(ResourceName::MEMORY, left(memory, kube_memory, system.memory, memory_left.of(memory)))
        .with(ResourceName::PODS, pods.min(MOST))
        .with(
            ResourceName::EPHEMERAL_STORAGE,
            left(disk, kube_disk, system.ephemeral_storage, disk_left.of(disk)),
        );
    if let Some(gpu) = whole_gpus(facts) {
        list.set(ResourceName::NVIDIA_GPU, gpu.count.into());
    }
    if settings.efa == Efa::All {
        list.set(VPC_EFA, facts.network.efa_interfaces.into());
    }
    list
}
