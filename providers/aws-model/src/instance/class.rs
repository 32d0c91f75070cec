//! Classifies instance types: those that a pool gets by default, those that you must allow, and those that cannot be nodes.
//!
//! EC2 lists some 1,400 types. By default a pool gets virtual machines on Nitro, with whole NVIDIA GPUs or without GPUs. Each
//! other type is left out with a reason.
//!
//! The classification ignores EC2's `CurrentGeneration`, because it is false for g5, m6i and r7g, whose prices are competitive.
//! Types that are really outdated run on Xen.

use poolwright_terms::labels;

use super::facts::{AcceleratorKind, GpuFacts, Hypervisor, TypeFacts, UsageClass};

/// The families that EC2 lists with the usage class `on-demand` but sells only in capacity blocks. AWS's price list of us-east-1
/// (2026-07-20) has no price for them; <https://aws.amazon.com/ec2/capacityblocks/pricing/> has. If the price list of a region
/// has a price, that price takes precedence.
const SOLD_IN_BLOCKS: [&str; 5] = ["p5e", "p6e-gb200", "p6e-gb300", "trn2", "trn2u"];

/// The class of an instance type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A virtual machine on Nitro, with whole NVIDIA GPUs or without GPUs. Pools get these types by default.
    Virtual,
    /// Bare metal.
    Metal,
    /// A type that EC2 sells only in capacity blocks, so it has no price per hour.
    CapacityBlockOnly,
    /// A type that Poolwright buys only if a node class allows it.
    Unusual(Unusual),
    /// A type with a fraction of a GPU, which the node would advertise as a whole GPU.
    Fractional(GpuFacts),
    /// A type that cannot be a node.
    Unusable(Unusable),
}

/// The reason why pools do not get a type by default.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusual {
    /// The GPUs are not from NVIDIA.
    #[error("its GPUs ({0}) are not from NVIDIA, so Poolwright does not count them")]
    OtherGpu(String),
    /// It has an accelerator, which is part of the price.
    #[error("its price includes {0}, which Poolwright does not count")]
    Accelerator(String),
    /// It does not run on Nitro.
    #[error("it runs on Xen, which has slower disks and network than Nitro at the same price")]
    NotNitro,
    /// The price covers only a share of the CPU.
    #[error("it is burstable: its price covers a share of its CPU, and credits pay for the rest")]
    Burstable,
    /// It is made for tightly coupled jobs.
    #[error(
        "it is made for tightly coupled jobs: no spot, few zones, and little network bandwidth except EFA"
    )]
    Hpc,
}

/// The reason why a type cannot be a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It does not run 64-bit Linux.
    #[error("no 64-bit Linux runs on it")]
    NoLinux,
    /// Its name is not a valid label value.
    #[error("its name cannot be the value of a node label")]
    Name,
    /// It has GPUs of several models.
    #[error("it has GPUs of several models, and nodes advertise all of them under one resource name")]
    MixedGpus,
    /// No resources are left for pods.
    #[error("no resources are left for pods after the reservations of the node")]
    TooSmall,
}

impl Class {
    /// Returns the reason why a pool does not get the type by default; `None` if it does.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Virtual => None,
            Self::Metal => Some(
                "it is bare metal: it is not cheaper than the largest virtual size, and starts minutes later"
                    .to_owned(),
            ),
            Self::CapacityBlockOnly => {
                Some("EC2 sells it only in capacity blocks, so it has no price per hour".to_owned())
            }
            Self::Unusual(why) => Some(why.to_string()),
            Self::Fractional(gpu) => Some(format!(
                "it has {} of an {} ({} MiB), which its node would advertise as one whole nvidia.com/gpu, and it needs NVIDIA's GRID driver: Poolwright does not buy types with a fraction of a GPU",
                share(gpu.partition_thousandths),
                gpu.name,
                gpu.memory_mib
            )),
            Self::Unusable(why) => Some(why.to_string()),
        }
    }
}

/// Formats a fraction: `1/8`.
fn share(thousandths: u32) -> String {
    match thousandths {
        0 => "a part".to_owned(),
        part if GpuFacts::WHOLE.is_multiple_of(part) => format!("1/{}", GpuFacts::WHOLE / part),
        part => format!("{part}/{}", GpuFacts::WHOLE),
    }
}

/// Returns whether EC2 sells the type only in capacity blocks.
pub fn is_sold_in_blocks_only(facts: &TypeFacts) -> bool {
    let by_the_hour =
        [UsageClass::OnDemand, UsageClass::Spot].iter().any(|class| facts.usage_classes.contains(class));
    SOLD_IN_BLOCKS.contains(&facts.family())
        || (facts.usage_classes.contains(&UsageClass::CapacityBlock) && !by_the_hour)
}

/// Classifies an instance type.
pub fn of(facts: &TypeFacts) -> Class {
    if let Some(why) = unusable(facts) {
        return Class::Unusable(why);
    }
    if let Some(part) = facts.gpus.iter().find(|gpu| gpu.is_fraction()) {
        return Class::Fractional(part.clone());
    }
    if let Some(why) = unusual(facts) {
        return Class::Unusual(why);
    }
    if is_sold_in_blocks_only(facts) {
        Class::CapacityBlockOnly
    } else if facts.bare_metal {
        Class::Metal
    } else {
        Class::Virtual
    }
}

fn unusable(facts: &TypeFacts) -> Option<Unusable> {
    let name = facts.name.as_str();
    // The family becomes a label, too.
    if name.is_empty() || !labels::is_value(name) || !labels::is_value(facts.family()) {
        Some(Unusable::Name)
    } else if facts.arch().is_none() {
        Some(Unusable::NoLinux)
    } else if facts.gpus.iter().any(|gpu| gpu.name != facts.gpus[0].name) {
        Some(Unusable::MixedGpus)
    } else {
        None
    }
}

fn unusual(facts: &TypeFacts) -> Option<Unusual> {
    if let Some(gpu) = facts.gpus.iter().find(|gpu| !gpu.is_nvidia()) {
        return Some(Unusual::OtherGpu(format!("{} {}", gpu.manufacturer, gpu.name)));
    }
    if let Some(accelerator) = facts.accelerators.first() {
        let kind = match accelerator.kind {
            AcceleratorKind::Inference => "inference accelerators",
            AcceleratorKind::Neuron => "Neuron devices",
            AcceleratorKind::Fpga => "FPGAs",
            AcceleratorKind::Media => "media accelerators",
        };
        return Some(Unusual::Accelerator(format!("{kind} ({})", accelerator.name)));
    }
    // EC2 describes trn2u without its accelerators.
    if facts.family().starts_with("trn") {
        return Some(Unusual::Accelerator("Neuron devices".to_owned()));
    }
    if !facts.bare_metal && facts.hypervisor != Hypervisor::Nitro {
        Some(Unusual::NotNitro)
    } else if facts.burstable {
        Some(Unusual::Burstable)
    } else if facts.family().starts_with("hpc") {
        Some(Unusual::Hpc)
    } else {
        None
    }
}
