//! What a pod really asks of a node.

use poolwright_catalog::{ResourceList, ResourceName};

/// One init container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitContainer {
    /// What it requests.
    pub requests: ResourceList,
    /// Whether it keeps running beside the containers (`restartPolicy: Always`).
    pub sidecar: bool,
}

/// Effective requests of a pod, as the kube-scheduler counts them, and one `pods`.
///
/// Containers run together with all sidecars; each other init container runs alone but for the sidecars started before
/// it (KEP-753). The larger counts, resource by resource. Requests of the whole pod replace that where they are given
/// (KEP-2837). Overhead of the runtime class comes on top.
///
/// Requests must have been defaulted from limits before.
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
