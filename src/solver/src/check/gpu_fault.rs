//! Faults in a node's GPU layout.

use std::fmt;

use poolwright_catalog::MigProfile;

/// A fault in the layout of a node's GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuFault {
    /// Pods request shared or partitioned GPUs, but the node has none.
    NoGpus {
        /// The class's name.
        class: String,
    },
    /// The layout has another number of GPUs than the node.
    WrongNumber {
        /// The number of GPUs in the layout.
        laid: usize,
        /// The number of GPUs of the node.
        there: usize,
    },
    /// A pod cannot use a GPU in this way.
    WrongUse {
        /// The number of the GPU.
        gpu: usize,
        /// The class's name.
        class: String,
        /// The reason.
        why: &'static str,
    },
    /// The pods take more of a GPU than is free.
    TooMuch {
        /// The number of the GPU.
        gpu: usize,
        /// The unit: thousandths or MiB.
        what: &'static str,
        /// The sum of the pods' requests.
        used: u128,
        /// The free amount.
        free: u64,
    },
    /// An instance of this profile cannot start there.
    NoPlace {
        /// The number of the GPU.
        gpu: usize,
        /// The profile.
        profile: MigProfile,
        /// The first memory slice.
        start: u8,
    },
    /// An instance overlaps another.
    Overlap {
        /// The number of the GPU.
        gpu: usize,
        /// The first memory slice of the new one.
        start: u8,
    },
    /// The instances need more compute slices, or are more of a profile, than a GPU has.
    TooManyInstances {
        /// The number of the GPU.
        gpu: usize,
    },
    /// The layouts give a class more or less than its pods take.
    Unequal {
        /// The class's name.
        class: String,
        /// The whole GPUs, shares or instances laid out for it.
        laid: u64,
        /// The requests of its pods.
        wanted: u64,
    },
}

impl fmt::Display for GpuFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoGpus { class } => {
                write!(f, "pods of class `{class}` want of its GPUs, but it has none that are shared or cut")
            }
            Self::WrongNumber { laid, there } => write!(f, "{laid} GPUs are laid out, but it has {there}"),
            Self::WrongUse { gpu, class, why } => {
                write!(f, "GPU {gpu} cannot be used by pods of class `{class}`: {why}")
            }
            Self::TooMuch { gpu, what, used, free } => {
                write!(f, "the pods on GPU {gpu} take {used} {what} of it, but {free} are free")
            }
            Self::NoPlace { gpu, profile, start } => {
                write!(f, "no instance of {} can start at memory slice {start} of GPU {gpu}", name(*profile))
            }
            Self::Overlap { gpu, start } => {
                write!(f, "the instance at memory slice {start} of GPU {gpu} lies over another")
            }
            Self::TooManyInstances { gpu } => write!(f, "GPU {gpu} cannot have so many instances at once"),
            Self::Unequal { class, laid, wanted } => {
                write!(
                    f,
                    "{laid} GPUs, shares or instances are laid out for class `{class}`, but its pods take {wanted}"
                )
            }
        }
    }
}

/// Returns the name of a profile in resource names.
fn name(profile: MigProfile) -> &'static str {
    match profile {
        MigProfile::G1 => "1g",
        MigProfile::G1Double => "1g.double",
        MigProfile::G2 => "2g",
        MigProfile::G3 => "3g",
        MigProfile::G4 => "4g",
        MigProfile::G7 => "7g",
    }
}
