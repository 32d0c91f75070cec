//! Effective resource requests of pods.

use poolwright_catalog::{ResourceList, ResourceName};

/// One init container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitContainer {
    /// Its requests.
    pub requests: ResourceList,
    /// Whether it is a sidecar that keeps running (`restartPolicy: Always`).
    pub sidecar: bool,
}

/// Returns the effective requests of a pod, as the kube-scheduler counts them, and one `pods`.
///
/// Containers run together with all sidecars. Each other init container runs together only with the sidecars started before it
/// (KEP-753). For each resource, the larger of the two sums counts. Where the pod itself has requests, they replace this amount
/// (KEP-2837). The overhead of the runtime class is added.
///
/// The caller must have filled in missing requests from limits.
pub fn effective(
    containers: &[ResourceList],
    init: &[InitContainer],
    overhead: &ResourceList,
    pod_level: Option<&ResourceList>,
) -> ResourceList {
    let mut sidecars = ResourceList::new();
    let mut starting = ResourceList::new();
    for container in init {
        if container.sidecar {
            sidecars.add(&container.requests);
            starting = ResourceList::max(&starting, &sidecars);
        } else {
            let mut alone = sidecars.clone();
            alone.add(&container.requests);
            starting = ResourceList::max(&starting, &alone);
        }
    }
    let mut running = sidecars;
    for container in containers {
        running.add(container);
    }
    let mut effective = ResourceList::max(&running, &starting);
    for (name, amount) in pod_level.into_iter().flat_map(ResourceList::iter) {
        effective.set(name.clone(), amount);
    }
    effective.add(overhead);
    effective.set(ResourceName::PODS, 1);
    effective
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(milli: u64) -> ResourceList {
        ResourceList::new().with(ResourceName::CPU, milli)
    }

    fn init(milli: u64) -> InitContainer {
        InitContainer { requests: cpu(milli), sidecar: false }
    }

    fn sidecar(milli: u64) -> InitContainer {
        InitContainer { requests: cpu(milli), sidecar: true }
    }

    fn total(containers: &[u64], init: &[InitContainer]) -> u64 {
        let containers: Vec<_> = containers.iter().map(|milli| cpu(*milli)).collect();
        effective(&containers, init, &ResourceList::new(), None).get(ResourceName::CPU)
    }

    #[test]
    fn containers_add_up_and_a_large_init_container_counts_alone() {
        assert_eq!(total(&[100, 200], &[]), 300);
        assert_eq!(total(&[100, 200], &[init(250)]), 300);
        assert_eq!(total(&[100, 200], &[init(400), init(350)]), 400);
    }

    #[test]
    fn sidecars_run_beside_the_containers_and_beside_init_containers_started_later() {
        // The example of KEP-753.
        assert_eq!(total(&[1000], &[init(5000), sidecar(1000), init(10000), sidecar(1000)]), 11000);
        assert_eq!(total(&[1000], &[init(500), sidecar(300)]), 1300);
        assert_eq!(total(&[100], &[sidecar(300), init(900)]), 1200);
        assert_eq!(total(&[100], &[init(900), sidecar(300)]), 900);
    }

    #[test]
    fn each_resource_takes_its_own_larger_side() {
        let containers = [cpu(1000).with(ResourceName::NVIDIA_GPU, 1)];
        let init = [InitContainer { requests: cpu(500).with(ResourceName::MEMORY, 7), sidecar: false }];
        let expected = cpu(1000)
            .with(ResourceName::NVIDIA_GPU, 1)
            .with(ResourceName::MEMORY, 7)
            .with(ResourceName::PODS, 1);
        assert_eq!(effective(&containers, &init, &ResourceList::new(), None), expected);
    }

    #[test]
    fn requests_of_the_pod_replace_those_of_its_containers_and_overhead_comes_on_top() {
        let containers = [cpu(1000).with(ResourceName::NVIDIA_GPU, 1)];
        let effective = effective(&containers, &[], &cpu(50), Some(&cpu(1500)));
        let expected = cpu(1550).with(ResourceName::NVIDIA_GPU, 1).with(ResourceName::PODS, 1);
        assert_eq!(effective, expected);
    }
}
