//! Effective requests of a pod, from its spec.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use poolwright_api::FieldProblem;
use poolwright_catalog::{ResourceList, ResourceName};
use poolwright_core::RequestOrigin;
use poolwright_core::rules::requests::{InitContainer, effective, origins};

use crate::convert::resources;

const HUGE_PAGES: &str = "hugepages-";

type Quantities = BTreeMap<String, Quantity>;

/// Returns the requests that the scheduler counts for this pod. `path` is the path of the spec.
///
/// A running pod may be resized in place (KEP-1287). Then the largest of three values counts, for each container and for the
/// whole pod: the spec, the amount that the node has allocated, and the amount in force. A resize that the node can never admit
/// does not count. `status` contains the last two.
pub(crate) fn requests(
    path: &str,
    spec: &k8s::PodSpec,
    status: Option<&k8s::PodStatus>,
) -> Result<ResourceList, FieldProblem> {
    let Asked { containers, init, overhead, whole } = Asked::of(path, spec, status)?;
    Ok(effective(&containers, &init, &overhead, whole.as_ref()))
}

/// Returns what makes up these requests, for each resource that the containers do not explain. `path` is the path of the spec.
pub(crate) fn request_origins(
    path: &str,
    spec: &k8s::PodSpec,
    status: Option<&k8s::PodStatus>,
) -> Result<Vec<RequestOrigin>, FieldProblem> {
    let init = spec.init_containers.as_deref().unwrap_or_default();
    if init.is_empty() && spec.overhead.is_none() && spec.resources.is_none() {
        return Ok(Vec::new());
    }
    let asked = Asked::of(path, spec, status)?;
    let named: Vec<(&str, &InitContainer)> =
        init.iter().map(|container| container.name.as_str()).zip(&asked.init).collect();
    let overhead = (&asked.overhead, spec.runtime_class_name.as_deref().filter(|name| !name.is_empty()));
    Ok(origins(&asked.containers, &named, overhead, asked.whole.as_ref()))
}

/// What the parts of a pod ask for.
struct Asked {
    containers: Vec<ResourceList>,
    init: Vec<InitContainer>,
    overhead: ResourceList,
    /// The requests of the pod as a whole.
    whole: Option<ResourceList>,
}

impl Asked {
    fn of(path: &str, spec: &k8s::PodSpec, status: Option<&k8s::PodStatus>) -> Result<Self, FieldProblem> {
        let node = Node { status };
        let containers = spec
            .containers
            .iter()
            .enumerate()
            .map(|(at, container)| {
                let stated = of_container(&format!("{path}.containers[{at}]"), container)?;
                node.counts(stated, "containerStatuses", &container.name)
            })
            .collect::<Result<Vec<_>, _>>()?;
        let init = spec
            .init_containers
            .iter()
            .flatten()
            .enumerate()
            .map(|(at, container)| {
                let stated = of_container(&format!("{path}.initContainers[{at}]"), container)?;
                let sidecar = container.restart_policy.as_deref() == Some("Always");
                let requests = if sidecar {
                    node.counts(stated, "initContainerStatuses", &container.name)?
                } else {
                    stated
                };
                Ok(InitContainer { requests, sidecar })
            })
            .collect::<Result<Vec<_>, FieldProblem>>()?;
        let overhead = resources(&format!("{path}.overhead"), spec.overhead.as_ref())?;
        let from_containers = effective(&containers, &init, &ResourceList::new(), None);
        let whole = of_pod(&format!("{path}.resources"), spec.resources.as_ref(), &from_containers)?;
        let whole = whole.map(|stated| node.counts_whole(stated)).transpose()?;
        Ok(Self { containers, init, overhead, whole })
    }
}

/// Returns the requests of the containers together, which leaves out those of the pod as a whole and its
/// overhead. `path` is the path of the spec.
pub(crate) fn of_containers(path: &str, spec: &k8s::PodSpec) -> Result<ResourceList, FieldProblem> {
    let containers = spec.containers.iter().enumerate();
    let containers = containers.map(|(at, one)| of_container(&format!("{path}.containers[{at}]"), one));
    let containers = containers.collect::<Result<Vec<_>, _>>()?;
    let init = spec.init_containers.iter().flatten().enumerate().map(|(at, one)| {
        let sidecar = one.restart_policy.as_deref() == Some("Always");
        Ok(InitContainer { requests: of_container(&format!("{path}.initContainers[{at}]"), one)?, sidecar })
    });
    let init = init.collect::<Result<Vec<_>, FieldProblem>>()?;
    Ok(effective(&containers, &init, &ResourceList::new(), None))
}

/// Writes the requests of the whole pod that an API server adds when it reads a pod with limits of the whole
/// pod (`defaultPodRequests` in Kubernetes): what the containers request together, else the limit. Admission
/// runs after that, so defaults of containers do not lower them.
pub(crate) fn fill_in_whole(spec: &mut k8s::PodSpec) {
    // The containers are judged later. If they cannot be read, nothing is known of what they request.
    let together = of_containers("", spec).unwrap_or_default();
    let Some(whole) = &mut spec.resources else { return };
    let Some(limits) = whole.limits.as_ref().filter(|limits| !limits.is_empty()) else { return };
    let mut requests = whole.requests.clone().unwrap_or_default();
    for (name, amount) in together.iter().filter(|(name, _)| for_whole_pods(name)) {
        // Huge pages cannot be overcommitted, so their request is the limit.
        if !name.as_str().starts_with(HUGE_PAGES) {
            requests.entry(name.to_string()).or_insert_with(|| Quantity(name.quantity(amount)));
        }
    }
    for (name, limit) in limits {
        if for_whole_pods(&ResourceName::new(name.as_str())) {
            requests.entry(name.clone()).or_insert_with(|| limit.clone());
        }
    }
    if !requests.is_empty() {
        whole.requests = Some(requests);
    }
}

/// Returns the limits that quotas count for this pod. `path` is the path of the spec.
pub(crate) fn limits(path: &str, spec: &k8s::PodSpec) -> Result<ResourceList, FieldProblem> {
    let of = |path: &str, stated: Option<&k8s::ResourceRequirements>| {
        resources(&format!("{path}.limits"), stated.and_then(|stated| stated.limits.as_ref()))
    };
    let containers = spec.containers.iter().map(|container| of(path, container.resources.as_ref()));
    let containers = containers.collect::<Result<Vec<_>, _>>()?;
    let init = spec.init_containers.iter().flatten().map(|container| {
        let sidecar = container.restart_policy.as_deref() == Some("Always");
        Ok(InitContainer { requests: of(path, container.resources.as_ref())?, sidecar })
    });
    let init = init.collect::<Result<Vec<_>, FieldProblem>>()?;
    let whole = of(path, spec.resources.as_ref())?;
    let mut limits = effective(&containers, &init, &ResourceList::new(), Some(&whole));
    // The overhead only raises limits that are there.
    for (name, amount) in resources(&format!("{path}.overhead"), spec.overhead.as_ref())?.iter() {
        let stated = limits.get(name.as_str());
        if stated > 0 {
            limits.set(name.clone(), stated.saturating_add(amount));
        }
    }
    Ok(limits)
}

/// The resources of a pod according to its node.
struct Node<'a> {
    status: Option<&'a k8s::PodStatus>,
}

impl Node<'_> {
    /// Returns the requests of a container with these stated requests.
    fn counts(&self, stated: ResourceList, list: &str, name: &str) -> Result<ResourceList, FieldProblem> {
        let Some(status) = self.status else { return Ok(stated) };
        let all = match list {
            "containerStatuses" => &status.container_statuses,
            _ => &status.init_container_statuses,
        };
        let found = all.iter().flatten().enumerate().find(|(_, one)| one.name == name);
        let Some((at, one)) = found else { return Ok(stated) };
        let Some(actual) = &one.resources else { return Ok(stated) };
        let path = format!("status.{list}[{at}]");
        let actual = resources(&format!("{path}.resources.requests"), actual.requests.as_ref())?;
        let admitted = resources(&format!("{path}.allocatedResources"), one.allocated_resources.as_ref())?;
        Ok(self.larger(stated, &actual, &admitted))
    }

    /// Returns the requests of the whole pod with these stated requests.
    fn counts_whole(&self, stated: ResourceList) -> Result<ResourceList, FieldProblem> {
        let Some(status) = self.status else { return Ok(stated) };
        let Some(actual) = &status.resources else { return Ok(stated) };
        let actual = resources("status.resources.requests", actual.requests.as_ref())?;
        let admitted = resources("status.allocatedResources", status.allocated_resources.as_ref())?;
        let counted = self.larger(stated.clone(), &actual, &admitted);
        // Resources that the pod does not state as a whole are the sum of its containers.
        let mut whole = ResourceList::new();
        for (name, _) in stated.iter() {
            whole.set(name.clone(), counted.get(name.as_str()));
        }
        Ok(whole)
    }

    fn larger(&self, stated: ResourceList, actual: &ResourceList, admitted: &ResourceList) -> ResourceList {
        let conditions = self.status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let pending = conditions.iter().find(|condition| condition.type_ == "PodResizePending");
        let given = ResourceList::max(actual, admitted);
        match pending.and_then(|condition| condition.reason.as_deref()) {
            Some("Infeasible") => given,
            _ => ResourceList::max(&stated, &given),
        }
    }
}

/// Returns the requests of one container. A limit without a request counts as the request, as in the API server.
fn of_container(path: &str, container: &k8s::Container) -> Result<ResourceList, FieldProblem> {
    let Some(stated) = &container.resources else { return Ok(ResourceList::new()) };
    let mut all = resources(&format!("{path}.resources.limits"), stated.limits.as_ref())?;
    let requests = resources(&format!("{path}.resources.requests"), stated.requests.as_ref())?;
    // A request of zero counts as stated.
    for name in stated.requests.iter().flat_map(Quantities::keys) {
        all.set(name.as_str(), requests.get(name));
    }
    Ok(all)
}

/// Returns the requests of the whole pod (KEP-2837): stated, or its limits if no container states any.
fn of_pod(
    path: &str,
    stated: Option<&k8s::ResourceRequirements>,
    containers: &ResourceList,
) -> Result<Option<ResourceList>, FieldProblem> {
    let Some(stated) = stated else { return Ok(None) };
    let requests = resources(&format!("{path}.requests"), stated.requests.as_ref())?;
    let limits = resources(&format!("{path}.limits"), stated.limits.as_ref())?;
    let mut whole = ResourceList::new();
    // If containers request CPU or memory, these are not filled in from the pod's limits; huge pages always are.
    let is_filled_in =
        |name: &ResourceName| containers.get(name.as_str()) == 0 || name.as_str().starts_with(HUGE_PAGES);
    for (name, amount) in limits.iter().filter(|(name, _)| for_whole_pods(name) && is_filled_in(name)) {
        whole.set(name.clone(), amount);
    }
    for (name, amount) in requests.iter().filter(|(name, _)| for_whole_pods(name)) {
        whole.set(name.clone(), amount);
    }
    Ok(Some(whole))
}

/// Returns whether Kubernetes supports the resource for whole pods.
fn for_whole_pods(name: &ResourceName) -> bool {
    let name = name.as_str();
    name == ResourceName::CPU || name == ResourceName::MEMORY || name.starts_with(HUGE_PAGES)
}
