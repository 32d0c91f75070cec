//! What a type is good for: which can be a node at all, and which nobody should get unasked.
//!
//! EC2 lists some 1,400 types. A default pool takes virtual machines on Nitro, with whole NVIDIA GPUs or none; the rest stays
//! out, each with its reason.
//!
//! EC2's `CurrentGeneration` decides nothing: it is false for g5, m6i and r7g, which are as good as any for their price.
//! What is truly of the past runs on Xen.

use poolwright_terms::labels;

use super::facts::{AcceleratorKind, GpuFacts, Hypervisor, TypeFacts, UsageClass};

/// Families that EC2 lists with the usage class `on-demand` and sells in capacity blocks only: AWS's price list of us-east-1
/// (2026-07-20) has no price for them, and <https://aws.amazon.com/ec2/capacityblocks/pricing/> has. Where a list has one,
/// it counts for more than this.
const SOLD_IN_BLOCKS: [&str; 5] = ["p5e", "p6e-gb200", "p6e-gb300", "trn2", "trn2u"];

/// What a type is good for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// A virtual machine on Nitro, with whole NVIDIA GPUs or none. What a pool takes by default.
    Virtual,
    /// A whole machine.
    Metal,
    /// To be had in capacity blocks only, so it has no price per hour.
    CapacityBlockOnly,
    /// It would make a node, but not one that anybody wants without having asked.
    Unusual(Unusual),
    /// It has less than a GPU, and advertises it as one.
    Fractional(GpuFacts),
    /// It cannot be a node, or nobody could say what the node is.
    Unusable(Unusable),
}

/// Why a type is not for everybody.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusual {
    /// GPUs that are not NVIDIA's.
    #[error("its GPUs ({0}) are not NVIDIA's: as a node it would have none that Poolwright counts")]
    OtherGpu(String),
    /// Something else that computes, and that is paid for.
    #[error("it is paid for by its {0}, which Poolwright does not count")]
    Accelerator(String),
    /// Not on Nitro.
    #[error("it runs on Xen, before Nitro: slower disks and network for the same money")]
    NotNitro,
    /// Its price is for a part of its processors.
    #[error("it is burstable: its price is for a part of its CPU, the rest is paid in credits")]
    Burstable,
    /// Made for one tightly coupled job.
    #[error("it is made for tightly coupled jobs: no spot, few zones, little network but for EFA")]
    Hpc,
}

/// Why a type cannot be a node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// No Linux of 64 bits runs on it.
    #[error("no 64-bit Linux runs on it")]
    NoLinux,
    /// Its name cannot stand in a node's labels.
    #[error("its name cannot be the value of a node label")]
    Name,
    /// GPUs of more than one model.
    #[error("it has GPUs of more than one model, which one resource name cannot tell apart")]
    MixedGpus,
    /// Nothing is left for pods.
    #[error("nothing is left of it for pods after what the node itself needs")]
    TooSmall,
}

impl Class {
    /// Why a pool does not get it by default, and what to do about it; `None` for what it gets.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Virtual => None,
            Self::Metal => Some(
                "it is bare metal: no cheaper than the largest virtual size, and minutes slower to start"
                    .to_owned(),
            ),
            Self::CapacityBlockOnly => {
                Some("it is sold in capacity blocks only, and has no price by the hour".to_owned())
            }
            Self::Unusual(why) => Some(why.to_string()),
            Self::Fractional(gpu) => Some(format!(
                "it has {} of an {} ({} MiB), which its node advertises as one nvidia.com/gpu like a whole one, and needs NVIDIA's GRID driver: Poolwright does not sell parts of GPUs by type",
                share(gpu.partition_thousandths),
                gpu.name,
                gpu.memory_mib
            )),
            Self::Unusable(why) => Some(why.to_string()),
        }
    }
}

/// A part as a person writes it.
fn share(thousandths: u32) -> String {
    match thousandths {
        0 => "a part".to_owned(),
        part if GpuFacts::WHOLE.is_multiple_of(part) => format!("1/{}", GpuFacts::WHOLE / part),
        part => format!("{part}/{}", GpuFacts::WHOLE),
    }
}

/// Whether it can be had in capacity blocks only.
pub fn is_sold_in_blocks_only(facts: &TypeFacts) -> bool {
    let by_the_hour =
        [UsageClass::OnDemand, UsageClass::Spot].iter().any(|class| facts.usage_classes.contains(class));
    SOLD_IN_BLOCKS.contains(&facts.family())
        || (facts.usage_classes.contains(&UsageClass::CapacityBlock) && !by_the_hour)
}

/// What a type is good for.
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
    // The family is a label of its own.
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
    // EC2 describes trn2u without its devices.
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
