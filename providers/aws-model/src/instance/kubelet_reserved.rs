//! The kubelet settings of a node class that change the allocatable resources of its nodes.
//!
//! Allocatable resources are the capacity less `kubeReserved`, `systemReserved` and the hard eviction thresholds
//! (`GetNodeAllocatableReservation`, kubernetes/kubernetes `pkg/kubelet/cm/node_container_manager_linux.go`). The settings of a
//! class combine with those of the image as follows:
//!
//! | setting | AL2023 | Bottlerocket |
//! |---|---|---|
//! | `kubeReserved` | by resource: the image's figure applies to resources that the class does not name. nodeadm writes its own figures into the kubelet's file and those of the class into a second file (`writeKubeletConfigToDir`, awslabs/amazon-eks-ami `nodeadm/internal/kubelet/config.go`), and the kubelet merges the two as JSON, key by key (`mergeKubeletConfigurations`, kubernetes/kubernetes `cmd/kubelet/app/server.go`) | by resource, too (`packages/kubernetes-1.31/kubelet-config`, bottlerocket-os/bottlerocket-core-kit) |
//! | `evictionHard` | by signal, as above | as a whole: the image sets none, so the kubelet drops its own defaults, and signals that the class does not name have no threshold (`mergeDefaultEvictionSettings`, <https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/>) |
//! | `systemReserved` | the image sets none | the image sets none |
//! | `podsPerCore` | this number per core, at most `maxPods` (`nodestatus.MachineInfo`, kubernetes/kubernetes) | there is no such setting |

use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_catalog::quantity::{self, QuantityError};

use crate::bootstrap::Kubelet;

/// The resources that the kubelet of a node class reserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KubeletReserved {
    /// `kubeReserved`, which replaces the image's figures.
    pub kube: Quantities,
    /// `systemReserved`.
    pub system: Quantities,
    /// The hard eviction threshold for memory.
    pub memory_left: Threshold,
    /// The hard eviction threshold for disk space.
    pub disk_left: Threshold,
    /// The maximum number of pods per core.
    pub pods_per_core: Option<u32>,
}

impl Default for KubeletReserved {
    /// Returns the value for a class without settings: the thresholds of the images, which are the kubelet's defaults.
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

/// Reserved quantities; `None` if the class does not set one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantities {
    /// CPU in thousandths of a core.
    pub cpu_milli: Option<u64>,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Ephemeral storage in bytes.
    pub ephemeral_storage: Option<u64>,
}

/// An eviction threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// A number of bytes. Zero means no threshold.
    Bytes(u64),
    /// A share of the capacity, in thousandths of a percent.
    Share(u32),
}

impl Threshold {
    /// Returns the threshold in bytes for this capacity, rounded up.
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

/// One hundred percent, in thousandths of a percent.
const WHOLE: u32 = 100_000;

/// The thresholds of signals that `evictionHard` of a class does not name, if it names others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdDefaults {
    /// They have the image's thresholds.
    AsTheImage,
    /// They have no threshold.
    None,
}

/// The error for an invalid setting: the field, the cause and the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {cause}")]
pub struct InvalidSetting {
    /// The field: `kubeReserved.memory`.
    pub field: String,
    /// The cause.
    pub cause: SettingProblem,
}

/// The cause of an invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingProblem {
    /// The value is not a quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The value is not a percentage.
    #[error("`{0}` is not a percentage; write a number from 0 to 100 with %, such as 5%")]
    Percentage(String),
    /// The kubelet rejects the threshold.
    #[error(
        "`{0}` is not a valid threshold, and the kubelet would not start; write a positive quantity, or 0% for no threshold"
    )]
    Zero(String),
}

impl KubeletReserved {
    /// Computes the reserved resources.
    ///
    /// # Errors
    ///
    /// The first setting that is not a valid quantity or percentage, or that would keep the kubelet from starting.
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
                // Pods do not request inodes or processes.
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
            // Pods do not request processes.
            _ => {}
        }
    }
    Ok(amounts)
}

/// Parses a threshold like the kubelet (`parseThresholdStatement`, kubernetes/kubernetes `pkg/kubelet/eviction/helpers.go`): 0 %
/// and 100 % mean no threshold, and a quantity must be positive.
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
