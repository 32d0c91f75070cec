//! Effective resource requests of pods, and what makes them up.

use std::collections::BTreeSet;

use poolwright_catalog::{ResourceList, ResourceName};

use crate::model::{RequestOrigin, RequestPart};
use crate::rules::format::named;

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

/// Returns what makes up the effective requests of a pod, for each resource that its containers do not explain. The arguments are
/// those of [`effective`], with the names of the init containers and of the runtime class.
pub fn origins(
    containers: &[ResourceList],
    init: &[(&str, &InitContainer)],
    (overhead, runtime_class): (&ResourceList, Option<&str>),
    pod_level: Option<&ResourceList>,
) -> Vec<RequestOrigin> {
    let lists = init.iter().map(|(_, container)| &container.requests).chain([overhead]).chain(pod_level);
    let resources: BTreeSet<&ResourceName> =
        lists.flat_map(ResourceList::iter).map(|(name, _)| name).collect();
    let origin = |resource: &ResourceName| {
        let of = |list: &ResourceList| list.get(resource.as_str());
        let together = containers.iter().map(of).fold(0, u64::saturating_add);
        let (from_containers, mut parts) = of_containers(together, init, of);
        if let Some(amount) = pod_level.map(of).filter(|whole| *whole > 0 && *whole != from_containers) {
            parts = vec![RequestPart::Whole { amount }];
        }
        let amount = of(overhead);
        if amount > 0 {
            parts.push(RequestPart::Overhead { runtime_class: runtime_class.map(str::to_owned), amount });
        }
        (!parts.is_empty()).then(|| RequestOrigin { resource: resource.clone(), parts })
    };
    resources.into_iter().filter_map(origin).collect()
}

/// Returns the effective amount of one resource without overhead and requests of the pod, and the init containers that it comes
/// from. `together` is the amount of the containers.
fn of_containers(
    together: u64,
    init: &[(&str, &InitContainer)],
    of: impl Fn(&ResourceList) -> u64,
) -> (u64, Vec<RequestPart>) {
    let mut sidecars = Vec::new();
    let mut beside = 0u64;
    // The init container that asks for most, with the sidecars that run beside it.
    let mut starting: (u64, Vec<RequestPart>) = (0, Vec::new());
    for (name, one) in init {
        let (container, amount) = ((*name).to_owned(), of(&one.requests));
        if amount == 0 {
            continue;
        }
        if one.sidecar {
            beside = beside.saturating_add(amount);
            sidecars.push(RequestPart::Sidecar { container, amount });
        } else if beside.saturating_add(amount) > starting.0 {
            let first = RequestPart::Init { container, amount };
            starting = (beside.saturating_add(amount), [first].into_iter().chain(sidecars.clone()).collect());
        }
    }
    let running = together.saturating_add(beside);
    if starting.0 > running { starting } else { (running, sidecars) }
}

/// Says where the requests for some resources come from: `` (init container `load` asks for 8 cpu)``. Empty if the containers
/// explain them.
pub(crate) fn in_words(origins: &[RequestOrigin], is_meant: impl Fn(&ResourceName) -> bool) -> String {
    let meant = origins.iter().filter(|origin| is_meant(&origin.resource));
    let parts = meant.flat_map(|origin| origin.parts.iter().map(move |part| words(&origin.resource, part)));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

fn words(resource: &ResourceName, part: &RequestPart) -> String {
    let of = |amount: u64| named(resource, amount);
    match part {
        RequestPart::Init { container, amount } => {
            format!("init container `{container}` asks for {}", of(*amount))
        }
        RequestPart::Sidecar { container, amount } => {
            format!("sidecar `{container}` asks for {}", of(*amount))
        }
        RequestPart::Whole { amount } => format!("spec.resources of the pod asks for {}", of(*amount)),
        RequestPart::Overhead { runtime_class: Some(class), amount } => {
            format!("the overhead of RuntimeClass `{class}` is {}", of(*amount))
        }
        RequestPart::Overhead { runtime_class: None, amount } => {
            format!("spec.overhead of the pod is {}", of(*amount))
        }
        RequestPart::Default { limit_range, amount } => {
            format!("LimitRange `{limit_range}` adds {}", of(*amount))
        }
    }
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

    /// Returns what is said about CPU, and the effective amount that it must explain.
    fn said(
        containers: &[u64],
        init: &[(&str, InitContainer)],
        overhead: u64,
        whole: Option<u64>,
    ) -> (String, u64) {
        let containers: Vec<_> = containers.iter().map(|milli| cpu(*milli)).collect();
        let (overhead, whole) = (cpu(overhead), whole.map(cpu));
        let named: Vec<(&str, &InitContainer)> = init.iter().map(|(name, one)| (*name, one)).collect();
        let origins = origins(&containers, &named, (&overhead, Some("kata")), whole.as_ref());
        let init: Vec<InitContainer> = init.iter().map(|(_, one)| one.clone()).collect();
        let effective = effective(&containers, &init, &overhead, whole.as_ref());
        (in_words(&origins, ResourceName::is_cpu), effective.get(ResourceName::CPU))
    }

    #[test]
    fn a_request_says_which_part_of_the_pod_it_comes_from() {
        assert_eq!(said(&[1000], &[("small", init(500))], 0, None), (String::new(), 1000));
        let load = [("small", init(500)), ("load", init(8000))];
        assert_eq!(
            said(&[1000], &load, 0, None),
            (" (init container `load` asks for 8 cpu)".to_owned(), 8000)
        );
        let beside = [("early", sidecar(300)), ("load", init(900)), ("late", sidecar(100))];
        assert_eq!(
            said(&[100], &beside, 0, None),
            (" (init container `load` asks for 0.9 cpu, sidecar `early` asks for 0.3 cpu)".to_owned(), 1200)
        );
        assert_eq!(
            said(&[1000], &[("proxy", sidecar(100))], 50, None),
            (
                " (sidecar `proxy` asks for 0.1 cpu, the overhead of RuntimeClass `kata` is 0.05 cpu)"
                    .to_owned(),
                1150
            )
        );
        assert_eq!(
            said(&[1000], &load, 0, Some(4000)),
            (" (spec.resources of the pod asks for 4 cpu)".to_owned(), 4000)
        );
        let same = said(&[1000], &load, 0, Some(8000));
        assert_eq!(same.0, " (init container `load` asks for 8 cpu)", "the whole asks for what its parts do");
        assert_eq!(said(&[1000], &[], 0, Some(1000)), (String::new(), 1000));
    }

    #[test]
    fn a_default_that_the_pod_does_not_state_is_named_with_its_limit_range() {
        let part = RequestPart::Default { limit_range: "lr".to_owned(), amount: 2000 };
        let origin = RequestOrigin { resource: ResourceName::new(ResourceName::CPU), parts: vec![part] };
        assert_eq!(in_words(&[origin], ResourceName::is_cpu), " (LimitRange `lr` adds 2 cpu)");
    }

    #[test]
    fn requests_of_the_pod_replace_those_of_its_containers_and_overhead_comes_on_top() {
        let containers = [cpu(1000).with(ResourceName::NVIDIA_GPU, 1)];
        let effective = effective(&containers, &[], &cpu(50), Some(&cpu(1500)));
        let expected = cpu(1550).with(ResourceName::NVIDIA_GPU, 1).with(ResourceName::PODS, 1);
        assert_eq!(effective, expected);
    }
}
