//! How much of the GPUs of a machine a pod holds.

use poolwright_catalog::{Gpu, MigGeometry, MigModel, ResourceList};

use crate::model::PodSpec;
use crate::rules::gpus::{AdvertisedGpus, cut_milli};

/// Returns how much of a machine's GPUs a pod with this spec holds on its node, in thousandths of whole GPUs.
///
/// `machine` has the GPUs of the machine, and `gpu` their model if it is known. `advertised` are the resources of its node: where it
/// advertises each GPU several times, because pods share it, the pod holds its part of it. A MIG instance counts by its compute, on a GPU
/// of seven slices if the model is unknown.
pub fn held_gpus(
    gpu: Option<&Gpu>,
    machine: &ResourceList,
    advertised: &ResourceList,
    spec: &PodSpec,
) -> u64 {
    let geometry = gpu.and_then(MigModel::of).map_or(MigGeometry::Seven, |model| model.geometry);
    let held = AdvertisedGpus::new(machine, advertised).milli(spec);
    // That counted MIG instances on a GPU of seven slices.
    let usual = cut_milli(MigGeometry::Seven, &spec.requests);
    held.saturating_sub(usual).saturating_add(cut_milli(geometry, &spec.requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources(amounts: &[(&str, u64)]) -> ResourceList {
        amounts.iter().fold(ResourceList::new(), |all, (name, amount)| all.with(*name, *amount))
    }

    fn held(gpu: Option<&Gpu>, machine: u64, advertised: &[(&str, u64)], wanted: &[(&str, u64)]) -> u64 {
        let spec = PodSpec { requests: resources(wanted), ..PodSpec::default() };
        held_gpus(gpu, &resources(&[("nvidia.com/gpu", machine)]), &resources(advertised), &spec)
    }

    #[test]
    fn a_pod_holds_its_part_of_a_gpu_that_is_shared_or_cut() {
        let (gpu, shared) = ("nvidia.com/gpu", "nvidia.com/gpu.shared");
        assert_eq!(held(None, 8, &[(gpu, 8)], &[(gpu, 2)]), 2000);
        assert_eq!(held(None, 2, &[(gpu, 8)], &[(gpu, 1)]), 250, "each is advertised four times");
        assert_eq!(held(None, 2, &[(shared, 8)], &[(shared, 1)]), 250);
        let part = "nvidia.com/mig-1g.10gb";
        assert_eq!(held(None, 1, &[(part, 7)], &[(part, 7)]), 1000);
        assert_eq!(held(None, 1, &[(part, 7)], &[(part, 1)]), 142);
        let a30 = Gpu { model: "a30".into(), count: 1, memory_mib: Some(24_576) };
        let part = "nvidia.com/mig-1g.6gb";
        assert_eq!(held(Some(&a30), 1, &[(part, 4)], &[(part, 1)]), 250, "an A30 has four slices");
    }
}
