//! One instance type in our words.
//!
//! Source: `InstanceTypeInfo`, <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html>.

use std::collections::BTreeSet;

use poolwright_catalog::{Arch, InstanceTypeName};

/// What EC2 says of an instance type, as far as a node is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeFacts {
    /// Its name: `g5.xlarge`.
    pub name: InstanceTypeName,
    /// What its processor runs.
    pub architectures: BTreeSet<Architecture>,
    /// Virtual processors, as many as it has unless an order asks for fewer.
    pub vcpus: u32,
    /// Memory it is sold with, in MiB. The kernel sees less.
    pub memory_mib: u64,
    /// What is below the operating system.
    pub hypervisor: Hypervisor,
    /// A whole machine.
    pub bare_metal: bool,
    /// What AWS calls its current generation. Decides nothing here, see [`super::class`].
    pub current_generation: bool,
    /// Pays for a part of its processors, and counts credits for the rest.
    pub burstable: bool,
    /// How it can be bought.
    pub usage_classes: BTreeSet<UsageClass>,
    /// Its GPUs of any make.
    pub gpus: Vec<GpuFacts>,
    /// What else it has that computes.
    pub accelerators: Vec<Accelerator>,
    /// Its network.
    pub network: NetworkFacts,
    /// Local NVMe disks, in GB (10^9 bytes), all together.
    pub local_nvme_gb: u64,
}

impl TypeFacts {
    /// The architecture of a Linux node; `None` for what runs only macOS or 32 bits.
    pub fn arch(&self) -> Option<Arch> {
        if self.architectures.contains(&Architecture::X86_64) {
            Some(Arch::Amd64)
        } else if self.architectures.contains(&Architecture::Arm64) {
            Some(Arch::Arm64)
        } else {
            None
        }
    }

    /// The family: `g5` of `g5.xlarge`.
    pub fn family(&self) -> &str {
        let name = self.name.as_str();
        name.split_once('.').map_or(name, |(family, _)| family)
    }
}

/// What a processor runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Architecture {
    /// 64 bits of Intel or AMD, Linux.
    X86_64,
    /// 64-bit Arm, Linux.
    Arm64,
    /// Anything else: `i386`, `x86_64_mac`, `arm64_mac`.
    Other(String),
}

impl Architecture {
    /// From EC2's word for it.
    pub fn of(word: &str) -> Self {
        match word {
            "x86_64" => Self::X86_64,
            "arm64" => Self::Arm64,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// What is below the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// AWS's own, since 2017.
    Nitro,
    /// What was before.
    Xen,
    /// Nothing, or nothing that EC2 names.
    None,
}

impl Hypervisor {
    /// From EC2's word for it; bare metal has none.
    pub fn of(word: Option<&str>) -> Self {
        match word {
            Some("nitro") => Self::Nitro,
            Some("xen") => Self::Xen,
            _ => Self::None,
        }
    }
}

/// How a type can be bought.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageClass {
    /// On demand.
    OnDemand,
    /// As spot.
    Spot,
    /// In capacity blocks: for a time, paid for beforehand.
    CapacityBlock,
    /// In a way that EC2 did not know when this was written.
    Other(String),
}

impl UsageClass {
    /// From EC2's word for it.
    pub fn of(word: &str) -> Self {
        match word {
            "on-demand" => Self::OnDemand,
            "spot" => Self::Spot,
            "capacity-block" => Self::CapacityBlock,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// GPUs of one model in a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuFacts {
    /// The model as EC2 names it: `A10G`, `RTX PRO Server 6000`.
    pub name: String,
    /// `NVIDIA`, `AMD`, `Habana`.
    pub manufacturer: String,
    /// Whole GPUs. Zero where the type has a part of one.
    pub count: u32,
    /// GPUs as the operating system sees them; a part of one is one.
    pub logical_count: u32,
    /// How much of a GPU each logical one is, in thousandths: 125 is an eighth.
    pub partition_thousandths: u32,
    /// Memory of each, in MiB; of a part, its part. Zero where EC2 does not say.
    pub memory_mib: u64,
}

impl GpuFacts {
    /// A whole GPU, in thousandths.
    pub const WHOLE: u32 = 1000;

    /// `GpuPartitionSize` in thousandths: `0.125` is 125. What is no size between nothing and a whole is a whole.
    pub fn thousandths(partition_size: f64) -> u32 {
        if partition_size > 0.0 && partition_size < 1.0 {
            ((partition_size * f64::from(Self::WHOLE)).round() as u32).clamp(1, Self::WHOLE)
        } else {
            Self::WHOLE
        }
    }

    /// Whether it is less than a GPU.
    pub fn is_fraction(&self) -> bool {
        self.partition_thousandths < Self::WHOLE || (self.count == 0 && self.logical_count > 0)
    }

    /// Whether NVIDIA makes it.
    pub fn is_nvidia(&self) -> bool {
        self.manufacturer.eq_ignore_ascii_case("nvidia")
    }
}

/// What a type has that computes and is no GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accelerator {
    /// Which kind.
    pub kind: AcceleratorKind,
    /// The model as EC2 names it: `Inferentia2`.
    pub name: String,
    /// How many.
    pub count: u32,
}

/// Kinds of accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AcceleratorKind {
    /// For inference, whoever makes it.
    Inference,
    /// AWS Neuron: Inferentia and Trainium.
    Neuron,
    /// FPGA.
    Fpga,
    /// Video transcoding.
    Media,
}

/// The network of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkFacts {
    /// Network cards.
    pub cards: u32,
    /// Network interfaces of the default card: where pods' addresses come from.
    pub interfaces: u32,
    /// IPv4 addresses of each interface, its own included.
    pub ipv4_per_interface: u32,
    /// EFA interfaces it can have; zero where EFA is not supported.
    pub efa_interfaces: u32,
}
