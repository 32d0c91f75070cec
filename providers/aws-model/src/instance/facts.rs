//! The description of one instance type.
//!
//! Source: `InstanceTypeInfo`, <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html>.

use std::collections::BTreeSet;

use poolwright_catalog::{Arch, InstanceTypeName};

/// The properties of an instance type that matter for nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// The name: `g5.xlarge`.
    pub name: InstanceTypeName,
    /// The CPU architectures.
    pub architectures: BTreeSet<Architecture>,
    /// The default number of vCPUs.
    pub vcpus: u32,
    /// The memory of the type, in MiB. The kernel sees less.
    pub memory_mib: u64,
    /// The hypervisor.
    pub hypervisor: Hypervisor,
    /// Whether it is bare metal.
    pub bare_metal: bool,
    /// The field `CurrentGeneration` of EC2. Poolwright does not use it, see [`super::class`].
    pub current_generation: bool,
    /// Whether it is burstable: the price covers a share of the CPU, and credits pay for the rest.
    pub burstable: bool,
    /// The usage classes in which EC2 sells it.
    pub usage_classes: BTreeSet<UsageClass>,
    /// The GPUs of all manufacturers.
    pub gpus: Vec<GpuFacts>,
    /// The accelerators other than GPUs.
    pub accelerators: Vec<Accelerator>,
    /// The network.
    pub network: NetworkFacts,
    /// The total size of the local NVMe disks, in GB (10^9 bytes).
    pub local_nvme_gb: u64,
}

impl TypeFacts {
    /// Returns the architecture of a Linux node; `None` if the type runs only macOS or 32-bit systems.
    pub fn arch(&self) -> Option<Arch> {
        if self.architectures.contains(&Architecture::X86_64) {
            Some(Arch::Amd64)
        } else if self.architectures.contains(&Architecture::Arm64) {
            Some(Arch::Arm64)
        } else {
            None
        }
    }

    /// Returns the family: `g5` of `g5.xlarge`.
    pub fn family(&self) -> &str {
        let name = self.name.as_str();
        name.split_once('.').map_or(name, |(family, _)| family)
    }
}

/// A CPU architecture.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// 64-bit Intel or AMD with Linux.
    X86_64,
    /// 64-bit Arm with Linux.
    Arm64,
    /// Anything else: `i386`, `x86_64_mac`, `arm64_mac`.
    Other(String),
}

impl Architecture {
    /// Parses EC2's name of the architecture.
    pub fn of(word: &str) -> Self {
        match word {
            "x86_64" => Self::X86_64,
            "arm64" => Self::Arm64,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The hypervisor of an instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// Nitro, which AWS introduced in 2017.
    Nitro,
    /// Xen, for older types.
    Xen,
    /// None, or one that EC2 does not name.
    None,
}

impl Hypervisor {
    /// Parses EC2's name of the hypervisor; `None` for bare metal.
    pub fn of(word: Option<&str>) -> Self {
        match word {
            Some("nitro") => Self::Nitro,
            Some("xen") => Self::Xen,
            _ => Self::None,
        }
    }
}

/// A usage class in which EC2 sells a type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageClass {
    /// On-demand capacity.
    OnDemand,
    /// Spot capacity.
    Spot,
    /// Capacity blocks, which you pay for in advance for a period.
    CapacityBlock,
    /// A usage class that Poolwright does not know.
    Other(String),
}

impl UsageClass {
    /// Parses EC2's name of the usage class.
    pub fn of(word: &str) -> Self {
        match word {
            "on-demand" => Self::OnDemand,
            "spot" => Self::Spot,
            "capacity-block" => Self::CapacityBlock,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The GPUs of one model in an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// EC2's name of the model: `A10G`, `RTX PRO Server 6000`.
    pub name: String,
    /// The manufacturer: `NVIDIA`, `AMD`, `Habana`.
    pub manufacturer: String,
    /// The number of whole GPUs. It is zero if the type has a fraction of a GPU.
    pub count: u32,
    /// The number of GPUs that the operating system sees. A fraction of a GPU counts as one.
    pub logical_count: u32,
    /// The size of each logical GPU in thousandths of a physical GPU: 125 is an eighth.
    pub partition_thousandths: u32,
    /// The memory of each logical GPU, in MiB. It is zero if EC2 does not state it.
    pub memory_mib: u64,
}

impl GpuFacts {
    /// A whole GPU, in thousandths.
    pub const WHOLE: u32 = 1000;

    /// Converts `GpuPartitionSize` to thousandths: `0.125` is 125. A value that is not between 0 and 1 counts as a whole GPU.
    pub fn thousandths(partition_size: f64) -> u32 {
        if partition_size > 0.0 && partition_size < 1.0 {
            ((partition_size * f64::from(Self::WHOLE)).round() as u32).clamp(1, Self::WHOLE)
        } else {
            Self::WHOLE
        }
    }

    /// Returns whether it is a fraction of a GPU.
    pub fn is_fraction(&self) -> bool {
        self.partition_thousandths < Self::WHOLE || (self.count == 0 && self.logical_count > 0)
    }

    /// Returns whether the manufacturer is NVIDIA.
    pub fn is_nvidia(&self) -> bool {
        self.manufacturer.eq_ignore_ascii_case("nvidia")
    }
}

/// The accelerators of one model, other than GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// The kind.
    pub kind: AcceleratorKind,
    /// EC2's name of the model: `Inferentia2`.
    pub name: String,
    /// The number.
    pub count: u32,
}

/// A kind of accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceleratorKind {
    /// An inference accelerator of any manufacturer.
    Inference,
    /// AWS Neuron: Inferentia and Trainium.
    Neuron,
    /// FPGA.
    Fpga,
    /// Video transcoding.
    Media,
}

/// The network of an instance type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFacts {
    /// The number of network cards.
    pub cards: u32,
    /// The number of network interfaces of the default card, which has the addresses of pods.
    pub interfaces: u32,
    /// The number of IPv4 addresses of each interface, including its own.
    pub ipv4_per_interface: u32,
    /// The number of EFA interfaces; zero if the type does not support EFA.
    pub efa_interfaces: u32,
}
