//! What a node class keeps from pods: the settings of its kubelet that change what its nodes advertise.
//!
//! kubelet advertises what the machine has, less `kubeReserved`, `systemReserved` and the hard thresholds of eviction
//! (`GetNodeAllocatableReservation`, kubernetes/kubernetes `pkg/kubelet/cm/node_container_manager_linux.go`). What becomes of what the
//! image says when a class says something:
//!
//! | setting | AL2023 | Bottlerocket |
//! |---|---|---|
//! | `kubeReserved` | by resource: what the class does not name is as the image computes it. nodeadm writes its own figures into kubelet's file and the class's beside it (`writeKubeletConfigToDir`, awslabs/amazon-eks-ami `nodeadm/internal/kubelet/config.go`), and kubelet merges the two as JSON, key by key (`mergeKubeletConfigurations`, kubernetes/kubernetes `cmd/kubelet/app/server.go`) | by resource too (`packages/kubernetes-1.31/kubelet-config`, bottlerocket-os/bottlerocket-core-kit) |
//! | `evictionHard` | by signal, as above | as a whole: the image says nothing, so kubelet's own thresholds go, and signals that are not named have none (`mergeDefaultEvictionSettings`, <https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>) |
//! | `systemReserved` | the image keeps nothing | likewise |
//! | `podsPerCore` | that many, and no more than the most pods (`nodestatus.MachineInfo`, kubernetes/kubernetes) | there is no such setting |

use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_catalog::quantity::{self, QuantityError};

use crate::bootstrap::Kubelet;

/// What a node keeps from pods, by what its class says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletReserved {
    /// For Kubernetes, instead of what the image computes.
    pub kube: Quantities,
    /// For the system.
    pub system: Quantities,
    /// Memory that must be left, or pods are evicted.
    pub memory_left: Threshold,
    /// Disk that must be left, or pods are evicted.
    pub disk_left: Threshold,
    /// The most pods for each core.
    pub pods_per_core: Option<u32>,
}

impl Default for KubeletReserved {
    /// A class that says nothing: the thresholds of the images, which are those of kubelet itself.
    fn default() -> Self {
        Self {
            kube: Quantities::default(),
            system: Quantities::default(),
            memory_left: Threshold::Bytes(100 << 20),
            disk_left: Threshold::Share(10_000),
            pods_per_core: None,
        }
    }
}

/// Quantities that a class says; `None` where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantities {
    /// Thousandths of a core.
    pub cpu_milli: Option<u64>,
    /// Bytes.
    pub memory: Option<u64>,
    /// Bytes.
    pub ephemeral_storage: Option<u64>,
}

/// How little may be left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many bytes; zero is no threshold.
    Bytes(u64),
    /// This part of all there is, in thousandths of a percent.
    Share(u32),
}

impl Threshold {
    /// Bytes of so many, rounded up.
    pub fn of(self, capacity: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => {
                let part = (u128::from(capacity) * u128::from(share)).div_ceil(u128::from(WHOLE));
                u64::try_from(part).unwrap_or(u64::MAX)
            }
        }
    }
}

/// A hundred percent, in thousandths of one.
const WHOLE: u32 = 100_000;

/// What becomes of signals that a class's `evictionHard` does not name, when it names others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdDefaults {
    /// They are as the image has them.
    AsTheImage,
    /// They have no threshold.
    None,
}

/// Why a setting says nothing: which, what of it, and what to write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub struct InvalidSetting {
    /// Which: `kubeReserved.memory`.
    pub field: String,
    /// Why.
    pub cause: SettingProblem,
}

/// Why a setting says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    /// No quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// No percentage.
    #[error("`{0}` is no percentage; write a number from 0 to 100 with %, such as 5%")]
    Percentage(String),
    /// A threshold that kubelet refuses.
    #[error(
        "`{0}` is no threshold, and a kubelet does not start with it; write more than nothing, or 0% for no threshold"
    )]
    Zero(String),
}

impl KubeletReserved {
    /// What these settings keep.
    ///
    /// # Errors
    ///
    /// The first setting that is no quantity and no percentage, or that kubelet would not start with.
    pub fn of(kubelet: &Kubelet, unnamed: ThresholdDefaults) -> Result<Self, InvalidSetting> {
        let mut kept = Self {
            kube: amounts("kubeReserved", &kubelet.kube_reserved)?,
            system: amounts("systemReserved", &kubelet.system_reserved)?,
            pods_per_core: kubelet.pods_per_core.filter(|pods| *pods > 0),
            ..Self::default()
        };
        if unnamed == ThresholdDefaults::None && !kubelet.eviction_hard.is_empty() {
            (kept.memory_left, kept.disk_left) = (Threshold::Bytes(0), Threshold::Bytes(0));
        }
        for (signal, text) in &kubelet.eviction_hard {
            let threshold = threshold(text)
                .map_err(|cause| InvalidSetting { field: format!("evictionHard[{signal}]"), cause })?;
            match signal.as_str() {
                "memory.available" => kept.memory_left = threshold,
                "nodefs.available" => kept.disk_left = threshold,
                // What is counted in inodes and processes is nothing that pods ask for.
                _ => {}
            }
        }
        Ok(kept)
    }
}

fn amounts(field: &str, all: &BTreeMap<String, String>) -> Result<Quantities, InvalidSetting> {
    let mut amounts = Quantities::default();
    for (name, text) in all {
        let amount = quantity::amount(name, text)
            .map_err(|error| InvalidSetting { field: format!("{field}.{name}"), cause: error.into() })?;
        match name.as_str() {
            ResourceName::CPU => amounts.cpu_milli = Some(amount),
            ResourceName::MEMORY => amounts.memory = Some(amount),
            ResourceName::EPHEMERAL_STORAGE => amounts.ephemeral_storage = Some(amount),
            // Processes are nothing that pods ask for.
            _ => {}
        }
    }
    Ok(amounts)
}

/// As kubelet reads it (`parseThresholdStatement`, kubernetes/kubernetes `pkg/kubelet/eviction/helpers.go`): 0 % and 100 % are no
/// threshold at all, and a quantity must be more than nothing.
fn threshold(text: &str) -> Result<Threshold, SettingProblem> {
    let Some(number) = text.strip_suffix('%') else {
        return match quantity::amount(ResourceName::MEMORY, text)? {
            0 => Err(SettingProblem::Zero(text.to_owned())),
            bytes => Ok(Threshold::Bytes(bytes)),
        };
    };
    if ["0", "100"].contains(&number) {
        return Ok(Threshold::Bytes(0));
    }
    let wrong = || SettingProblem::Percentage(text.to_owned());
    if !number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let percent = quantity::parse(number).map_err(|_| wrong())?;
    let share = u32::try_from(percent.milli_ceil()).ok().filter(|share| *share <= WHOLE);
    share.map(Threshold::Share).ok_or_else(wrong)
}
