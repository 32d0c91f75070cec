//! Converts an instance type of EC2 to the type of the catalogue.

use poolwright_catalog::{Gpu, GpuModel, InstanceType, ProviderName, ResourceList, ResourceName};

use super::allocatable::{Settings, allocatable};
use super::class::{self, Class, Unusable};
use super::facts::TypeFacts;

/// Converts EC2's name of a GPU model to the catalogue's name, in lower case with dashes: `RTX PRO Server 6000` becomes
/// `rtx-pro-server-6000`.
pub fn gpu_model(name: &str) -> GpuModel {
    GpuModel::new(name.split_whitespace().collect::<Vec<_>>().join("-").to_lowercase())
}

/// Returns the whole GPUs that a node advertises as `nvidia.com/gpu`; `None` if there are none, or if they are of several models.
pub fn whole_gpus(facts: &TypeFacts) -> Option<Gpu> {
    let first = facts.gpus.first()?;
    let whole = facts.gpus.iter().all(|gpu| gpu.is_nvidia() && !gpu.is_fraction() && gpu.name == first.name);
    let count = facts.gpus.iter().fold(0u32, |sum, gpu| sum.saturating_add(gpu.count));
    (whole && count > 0).then(|| Gpu {
        model: gpu_model(&first.name),
        count,
        memory_mib: Some(first.memory_mib).filter(|memory| *memory > 0),
    })
}

/// Returns whether resources are left for pods. The disk counts, too: a kubelet that reserves more than the capacity does not start.
pub(super) fn has_room(allocatable: &ResourceList) -> bool {
    [ResourceName::CPU, ResourceName::MEMORY, ResourceName::PODS, ResourceName::EPHEMERAL_STORAGE]
        .iter()
        .all(|resource| allocatable.get(resource) > 0)
}

/// Makes the type of the catalogue.
///
/// # Errors
///
/// Returns the class if the type has a fraction of a GPU or cannot be a node.
pub fn instance_type(facts: &TypeFacts, settings: &Settings) -> Result<InstanceType, Class> {
    let class = class::of(facts);
    let arch = match (&class, facts.arch()) {
        (Class::Fractional(_) | Class::Unusable(_), _) => return Err(class),
        (_, None) => return Err(Class::Unusable(Unusable::NoLinux)),
        (_, Some(arch)) => arch,
    };
    let allocatable = allocatable(facts, settings);
    if !has_room(&allocatable) {
        return Err(Class::Unusable(Unusable::TooSmall));
    }
    let gpu = whole_gpus(facts);
    Ok(InstanceType { name: facts.name.clone(), provider: ProviderName::from("aws"), arch, allocatable, gpu })
}
