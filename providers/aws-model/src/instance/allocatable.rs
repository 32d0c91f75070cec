//! What kubelet will report as allocatable, before there is a node to ask.
//!
//! The figures, and where they come from (EKS's own node images, so they hold for AL2023 and Bottlerocket):
//!
//! | what | figure | source |
//! |---|---|---|
//! | memory below the kernel's sight | 7.5 % of what the type is sold with; 64 MiB more on Arm (contiguous memory that Graviton kernels set aside) | Karpenter's `VM_MEMORY_OVERHEAD_PERCENT` and `memory()`, aws/karpenter-provider-aws |
//! | memory kept for the node | 255 MiB + 11 MiB for each pod it may have | `GetMemoryMebibytesToReserve`, awslabs/amazon-eks-ami `nodeadm/internal/kubelet/config.go` |
//! | memory at which pods are evicted | 100 MiB | `evictionHard`, same file |
//! | CPU kept for the node | 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest | `getCPUMillicoresToReserve`, same file |
//! | disk kept | 1 GiB, and a tenth at which pods are evicted | `kubeReserved` and `nodefs.available`, same file |
//! | pods | interfaces x (addresses - 1) + 2: one address is the interface's own, two pods use the host's | `getMaxPodsFromENIInfo`, `nodeadm/internal/kubelet/maxpods/maxpods.go` |
//! | pods by cores | as many for each core as the class says, within the above | `podsPerCore`, see [`super::kubelet_reserved`] |
//! | pods with prefixes | 16 for each address, at most 110 below 30 cores, else 250 | `max-pods-calculator.sh`, awslabs/amazon-eks-ami |
//!
//! What a class's own kubelet settings put in the place of these, [`KubeletReserved`] says.

use std::collections::BTreeMap;

use poolwright_catalog::{Arch, InstanceTypeName, ResourceList, ResourceName};

use super::facts::TypeFacts;
use super::kind::whole_gpus;
use super::kubelet_reserved::KubeletReserved;

/// The resource name under which EFA's device plugin advertises interfaces.
pub const VPC_EFA: &str = "vpc.amazonaws.com/efa";

/// What a node class decides about what a node advertises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How many pods kubelet admits.
    pub max_pods: MaxPods,
    /// By what number of pods memory is kept for the node.
    pub reserve: ReservedMemoryBasis,
    /// Interfaces that give pods no addresses: one with custom networking, else none.
    pub reserved_interfaces: u32,
    /// Thousandths of its memory that a node never sees, where it was not measured.
    pub memory_overhead_thousandths: u32,
    /// Memory capacity in MiB that nodes of a type were seen to report: better than any formula.
    pub measured_memory_mib: BTreeMap<InstanceTypeName, u64>,
    /// The root disk, in GiB.
    pub root_disk_gib: u32,
    /// What becomes of local disks.
    pub local_disks: LocalDisks,
    /// Whether nodes have EFA interfaces.
    pub efa: Efa,
    /// What kubelet is told to keep.
    pub kept: KubeletReserved,
}

impl Default for Settings {
    /// EKS's AL2023 image with nothing said, on a root disk of 20 GiB.
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

/// How many pods kubelet admits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxPods {
    /// As many as the interfaces of the default network card have addresses for. No upper bound, as in AL2023.
    Addresses,
    /// As many as they have prefixes of 16 addresses for, and no more than AWS recommends.
    Prefixes,
    /// This many.
    Fixed(u32),
}

/// By what number of pods memory is kept for the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservedMemoryBasis {
    /// By its addresses, whatever kubelet is told to admit: AL2023.
    Addresses,
    /// By what kubelet admits: Bottlerocket.
    MaxPods,
}

/// What becomes of local NVMe disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalDisks {
    /// Nothing; pods' scratch space is on the root disk.
    Unused,
    /// One striped array, which holds pods' scratch space.
    Raid0,
}

/// Whether nodes have EFA interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Efa {
    /// No: nothing is advertised.
    None,
    /// All that the type can have, and the device plugin runs.
    All,
}

/// Cores from which [`MaxPods::Prefixes`] may be 250.
const MANY_CORES: u32 = 30;
const ARM_CONTIGUOUS_MIB: u64 = 64;
/// The most a quantity can be in Kubernetes.
const MOST: u64 = i64::MAX as u64;

/// Pods that the addresses of the default card are enough for.
fn pods_by_addresses(facts: &TypeFacts, settings: &Settings, per_address: u64) -> u64 {
    let network = facts.network;
    let interfaces = u64::from(network.interfaces.saturating_sub(settings.reserved_interfaces));
    let addresses = u64::from(network.ipv4_per_interface.saturating_sub(1));
    // Three factors of 32 bits may not fit.
    interfaces.saturating_mul(addresses).saturating_mul(per_address).saturating_add(2)
}

/// Pods that kubelet admits.
pub fn max_pods(facts: &TypeFacts, settings: &Settings) -> u64 {
    let by_cores = match settings.kept.pods_per_core {
        Some(pods) => u64::from(pods) * u64::from(facts.vcpus),
        None => u64::MAX,
    };
    let most = match settings.max_pods {
        MaxPods::Addresses => pods_by_addresses(facts, settings, 1),
        MaxPods::Prefixes => {
            let recommended = if facts.vcpus < MANY_CORES { 110 } else { 250 };
            pods_by_addresses(facts, settings, 16).min(recommended)
        }
        MaxPods::Fixed(pods) => pods.into(),
    };
    most.min(by_cores)
}

/// What kubelet keeps of this many cores, in thousandths of a core.
fn reserved_cpu_milli(cores: u64) -> u64 {
    let steps = [(0, 1, 600), (1, 2, 100), (2, 4, 50), (4, u64::MAX, 25)];
    let kept = |(above, upto, ten_thousandths): (u64, u64, u64)| {
        cores.min(upto).saturating_sub(above) * ten_thousandths
    };
    steps.into_iter().map(kept).sum::<u64>() / 10
}

/// Memory that the kernel sees.
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

/// The disk that pods write to.
fn disk_capacity(facts: &TypeFacts, settings: &Settings) -> u64 {
    let disk = match settings.local_disks {
        LocalDisks::Raid0 if facts.local_nvme_gb > 0 => facts.local_nvme_gb.saturating_mul(1_000_000_000),
        _ => u64::from(settings.root_disk_gib) << 30,
    };
    disk.min(MOST)
}

/// What is left of so much.
fn left(capacity: u64, kube: u64, system: Option<u64>, evicted_at: u64) -> u64 {
    capacity.saturating_sub(kube).saturating_sub(system.unwrap_or(0)).saturating_sub(evicted_at)
}

/// What kubelet will report as allocatable on a node of this type.
///
/// An estimate for memory, unless it was measured: the 7.5 % are more than nearly all types lose, and less than a few of
/// 2 to 5 GiB do (`docs/aws-catalogue.md`). The other figures are exact for the images named above.
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
