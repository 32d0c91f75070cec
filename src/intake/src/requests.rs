//! Effective requests of a pod, from its spec.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::requests::{InitContainer, effective};

use crate::convert::resources;
use crate::error::Problem;

type Quantities = BTreeMap<String, Quantity>;

/// What the scheduler counts for this pod. `path` is that of the spec.
pub(crate) fn requests(path: &str, spec: &k8s::PodSpec) -> Result<ResourceList, Problem> {
    let containers = spec
        .containers
        .iter()
        .enumerate()
        .map(|(at, container)| of_container(&format!("{path}.containers[{at}]"), container))
        .collect::<Result<Vec<_>, _>>()?;
    let init = spec
        .init_containers
        .iter()
        .flatten()
        .enumerate()
        .map(|(at, container)| {
            Ok(InitContainer {
                requests: of_container(&format!("{path}.initContainers[{at}]"), container)?,
                sidecar: container.restart_policy.as_deref() == Some("Always"),
            })
        })
        .collect::<Result<Vec<_>, Problem>>()?;
    let overhead = resources(&format!("{path}.overhead"), spec.overhead.as_ref())?;
    let from_containers = effective(&containers, &init, &ResourceList::new(), None);
    let whole = of_pod(&format!("{path}.resources"), spec.resources.as_ref(), &from_containers)?;
    Ok(effective(&containers, &init, &overhead, whole.as_ref()))
}

/// Requests of one container; where it states only a limit, that is its request too, as the API server fills it in.
fn of_container(path: &str, container: &k8s::Container) -> Result<ResourceList, Problem> {
    let Some(stated) = &container.resources else { return Ok(ResourceList::new()) };
    let mut all = resources(&format!("{path}.resources.limits"), stated.limits.as_ref())?;
    let requests = resources(&format!("{path}.resources.requests"), stated.requests.as_ref())?;
    // A request of zero is a statement too.
    for name in stated.requests.iter().flat_map(Quantities::keys) {
        all.set(name.as_str(), requests.get(name));
    }
    Ok(all)
}

/// Requests of the pod as a whole (KEP-2837): stated, or filled in from its limits where no container states any.
fn of_pod(
    path: &str,
    stated: Option<&k8s::ResourceRequirements>,
    containers: &ResourceList,
) -> Result<Option<ResourceList>, Problem> {
    let Some(stated) = stated else { return Ok(None) };
    let requests = resources(&format!("{path}.requests"), stated.requests.as_ref())?;
    let limits = resources(&format!("{path}.limits"), stated.limits.as_ref())?;
    let mut whole = ResourceList::new();
    for (name, amount) in
        limits.iter().filter(|(name, _)| for_whole_pods(name) && containers.get(name.as_str()) == 0)
    {
        whole.set(name.clone(), amount);
    }
    for (name, amount) in requests.iter().filter(|(name, _)| for_whole_pods(name)) {
        whole.set(name.clone(), amount);
    }
    Ok(Some(whole))
}

/// Kubernetes takes these alone into account at the level of the pod.
fn for_whole_pods(name: &ResourceName) -> bool {
    let name = name.as_str();
    name == ResourceName::CPU || name == ResourceName::MEMORY || name.starts_with("hugepages-")
}
