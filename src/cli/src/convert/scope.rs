//! The instance types that the requirements of a pool leave each other. A requirement that becomes a list of names lists only names
//! that the others allow, too: those that the pool can buy.

use poolwright_catalog::InstanceType;
use poolwright_provider_contract::karpenter::LabelMapping;
use poolwright_terms::labels as ours;

use super::labels::{KARPENTER_CATALOGUE, label, parts, value_of};
use super::requirements::KarpenterRequirement;
use super::values::is_met_by_all;

/// The requirements of one pool.
#[derive(Default)]
pub(super) struct Scope(Vec<KarpenterRequirement>);

impl Scope {
    pub fn of(all: &[KarpenterRequirement]) -> Self {
        Self(all.to_vec())
    }

    /// Returns the types of the built-in catalogue that all requirements except the one at this path allow.
    pub fn beside(&self, path: &str) -> Vec<&'static InstanceType> {
        let others = || self.0.iter().filter(|other| other.path != path);
        let kinds = KARPENTER_CATALOGUE.kinds.iter();
        kinds.filter(|kind| others().all(|other| allows(other, kind))).collect()
    }
}

/// Returns whether nodes of a type can meet a requirement, as far as their type decides it.
fn allows(wanted: &KarpenterRequirement, kind: &InstanceType) -> bool {
    let (category, generation) = parts(kind.family());
    let gpu = kind.gpu.as_ref();
    let count;
    let fact;
    let value = match label(&wanted.key) {
        LabelMapping::Renamed(ours::INSTANCE_TYPE) => Some(kind.name.as_str()),
        LabelMapping::Renamed(ours::INSTANCE_FAMILY) => Some(kind.family()),
        LabelMapping::Renamed(ours::ARCH) => Some(kind.arch.as_str()),
        LabelMapping::Renamed(ours::GPU_MODEL) => gpu.map(|gpu| gpu.model.as_str()),
        LabelMapping::Renamed(ours::GPU_COUNT) => {
            count = gpu.map(|gpu| gpu.count.to_string());
            count.as_deref()
        }
        LabelMapping::Renamed(ours::GPU_MEMORY) => match gpu.map(|gpu| gpu.memory_mib) {
            // Nobody knows whether it allows this type.
            Some(None) => return true,
            memory => {
                count = memory.flatten().map(|memory| memory.to_string());
                count.as_deref()
            }
        },
        LabelMapping::Renamed(ours::PROVIDER) => Some(kind.provider.as_str()),
        LabelMapping::GpuManufacturer => gpu.map(|_| "nvidia"),
        LabelMapping::Category => Some(category),
        LabelMapping::Generation => Some(generation),
        LabelMapping::Size => kind.name.as_str().split_once('.').map(|(_, size)| size),
        LabelMapping::OfType(_) => {
            fact = value_of(&wanted.key, kind);
            fact.as_deref()
        }
        _ => return true,
    };
    is_met_by_all(wanted.operator, &wanted.values, value)
}

/// Continues a sentence about the names that a requirement allows, if other requirements of the pool leave fewer of them.
pub(super) fn and_others(leave_fewer: bool) -> &'static str {
    if leave_fewer { " and that the pool's other requirements allow, too" } else { "" }
}
