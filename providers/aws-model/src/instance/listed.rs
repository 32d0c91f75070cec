//! The instance types of a catalogue, as nodes of a class.
//!
//! A catalogue has the allocatable resources of nodes without a class, and no more facts. The facts come from the list of types in
//! the binary. For a type that the list lacks, they are computed back from its allocatable resources, because those follow from
//! cores, memory and addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use poolwright_catalog::{Arch, InstanceType, InstanceTypeName, ResourceList, ResourceName};

use super::allocatable::{
    Efa, LocalDisks, MaxPods, Settings, VPC_EFA, allocatable, pods_by_cores, reserved_cpu_milli,
};
use super::facts::{Architecture, Hypervisor, NetworkFacts, TypeFacts, UsageClass};
use super::json::from_json;
use super::kind::has_room;

const DESCRIBED: &str = include_str!("../../../../fixtures/aws/instance-types.jsonl");

/// Returns EC2's description of a type, from the list in the binary.
pub fn described(name: &InstanceTypeName) -> Option<&'static TypeFacts> {
    static ALL: OnceLock<BTreeMap<InstanceTypeName, TypeFacts>> = OnceLock::new();
    let all = ALL.get_or_init(|| {
        let read = |line| from_json(line).ok().map(|facts| (facts.name.clone(), facts));
        DESCRIBED.lines().filter_map(read).collect()
    });
    all.get(name)
}

/// Returns the facts about a type of a catalogue.
pub fn facts_of(kind: &InstanceType) -> TypeFacts {
    described(&kind.name).cloned().unwrap_or_else(|| computed_back(kind))
}

/// Returns the type with the allocatable resources of its nodes under these settings, if it lists those under the default
/// settings. `None` if no resources are left for pods.
///
/// A type whose figures in the catalogue are those of the formula gets exactly what the formula gives for the settings. Other
/// figures, such as measured ones, keep their distance from the formula.
pub fn under(kind: &InstanceType, settings: &Settings) -> Option<InstanceType> {
    let facts = facts_of(kind);
    let default = Settings::default();
    let (before, after) = (allocatable(&facts, &default), allocatable(&facts, settings));
    let moved = |resource: &str| {
        let figure = |list: &ResourceList| i128::from(list.get(resource));
        let new = figure(&kind.allocatable) - figure(&before) + figure(&after);
        if after.get(resource) == 0 { 0 } else { u64::try_from(new).unwrap_or(0) }
    };
    let pods = match settings.max_pods {
        MaxPods::Fixed(pods) => pods.into(),
        MaxPods::Addresses | MaxPods::Prefixes => kind.allocatable.get(ResourceName::PODS),
    };
    let has_array = settings.local_disks == LocalDisks::Raid0 && facts.local_nvme_gb > 0;
    let disk = if has_array || settings.root_disk_gib != default.root_disk_gib {
        after.get(ResourceName::EPHEMERAL_STORAGE)
    } else {
        moved(ResourceName::EPHEMERAL_STORAGE)
    };
    let mut list = kind
        .allocatable
        .clone()
        .with(ResourceName::CPU, moved(ResourceName::CPU))
        .with(ResourceName::MEMORY, moved(ResourceName::MEMORY))
        .with(ResourceName::PODS, pods.min(pods_by_cores(&facts, settings)))
        .with(ResourceName::EPHEMERAL_STORAGE, disk);
    if settings.efa == Efa::All {
        list.set(VPC_EFA, facts.network.efa_interfaces.into());
    }
    has_room(&list).then(|| InstanceType { allocatable: list, ..kind.clone() })
}

/// Returns facts from which the formula gives the allocatable resources of this type under the default settings. CPU that no
/// number of cores gives counts as the next larger number.
fn computed_back(kind: &InstanceType) -> TypeFacts {
    let has = |resource| kind.allocatable.get(resource);
    let (cpu, pods) = (has(ResourceName::CPU), has(ResourceName::PODS));
    // A node has at most 997.5 thousandths of each core left, so the search is short.
    let first = (cpu / 1995).saturating_mul(2);
    let left = |cores: u64| cores.saturating_mul(1000).saturating_sub(reserved_cpu_milli(cores));
    let cores = (first..first.saturating_add(10)).find(|cores| left(*cores) >= cpu);
    // The reserved memory and the eviction threshold, then the part that the kernel does not see.
    let seen = (has(ResourceName::MEMORY) >> 20).saturating_add(355).saturating_add(pods.saturating_mul(11));
    let memory_mib = seen.saturating_mul(1000).div_ceil(925);
    let is_arm = kind.arch == Arch::Arm64;
    TypeFacts {
        name: kind.name.clone(),
        architectures: BTreeSet::from([if is_arm { Architecture::Arm64 } else { Architecture::X86_64 }]),
        vcpus: cores.and_then(|cores| u32::try_from(cores).ok()).unwrap_or(u32::MAX),
        memory_mib: memory_mib.saturating_add(if is_arm { 64 } else { 0 }),
        hypervisor: Hypervisor::Nitro,
        bare_metal: false,
        current_generation: true,
        burstable: false,
        usage_classes: BTreeSet::from([UsageClass::OnDemand, UsageClass::Spot]),
        gpus: Vec::new(),
        accelerators: Vec::new(),
        network: NetworkFacts {
            cards: 1,
            interfaces: 1,
            ipv4_per_interface: u32::try_from(pods.saturating_sub(1)).unwrap_or(u32::MAX),
            efa_interfaces: 0,
        },
        local_nvme_gb: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_type_follow_from_its_allocatable_resources() {
        let default = Settings::default();
        let catalogue = poolwright_catalog::builtin();
        let ours = catalogue.types().values().filter(|kind| kind.provider.as_str() == "aws");
        for kind in ours {
            let (facts, again) = (described(&kind.name).expect("it is described"), computed_back(kind));
            assert_eq!(again.vcpus, facts.vcpus, "{}", kind.name);
            let mut list = allocatable(&again, &default);
            // GPUs are not computed back.
            list.set(ResourceName::NVIDIA_GPU, kind.allocatable.get(ResourceName::NVIDIA_GPU));
            assert_eq!(list, kind.allocatable, "{}", kind.name);
        }
    }
}
