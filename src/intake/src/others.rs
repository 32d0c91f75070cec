//! Rules of a pod about other pods: host ports, required pod affinity and anti-affinity, topology spread.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1 as k8s;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use poolwright_api::FieldProblem;
use poolwright_core::{
    HostPort, Namespaces, Operator, PodAffinityTerm, Requirement, TopologySpreadConstraint, UnmodelledRule,
};

use crate::error::Keep;
use crate::rules::operator;

/// The owner of the rules. Their meaning depends on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a> {
    pub namespace: &'a str,
    pub labels: &'a BTreeMap<String, String>,
}

/// Returns the host ports that the pod uses while it runs: those of containers and sidecars. The kube-scheduler ignores those of
/// init containers that end. Also returns the problems of the others.
pub(crate) fn host_ports(path: &str, spec: &k8s::PodSpec) -> (BTreeSet<HostPort>, Vec<FieldProblem>) {
    let (mut taken, mut problems) = (BTreeSet::new(), Vec::new());
    let is_sidecar = |container: &&k8s::Container| container.restart_policy.as_deref() == Some("Always");
    let sidecars = spec.init_containers.iter().flatten().enumerate().filter(|(_, one)| is_sidecar(one));
    let containers = spec.containers.iter().enumerate();
    let all = sidecars.map(|one| ("initContainers", one)).chain(containers.map(|one| ("containers", one)));
    for (list, (at, container)) in all {
        for (index, port) in container.ports.iter().flatten().enumerate() {
            let path = || format!("{path}.{list}[{at}].ports[{index}]");
            // With host networking, every container port is a host port. Admission fills it in.
            let host = port.host_port.filter(|port| *port != 0);
            let host = host.or_else(|| (spec.host_network == Some(true)).then_some(port.container_port));
            if let Some(host) = host {
                taken.extend(host_port(path, port, host).keep(&mut problems));
            }
        }
    }
    (taken, problems)
}

fn host_port(
    path: impl Fn() -> String,
    from: &k8s::ContainerPort,
    host: i32,
) -> Result<HostPort, FieldProblem> {
    let port = u16::try_from(host).ok().filter(|port| *port > 0).ok_or_else(|| {
        let field = if from.host_port == Some(host) { "hostPort" } else { "containerPort" };
        FieldProblem::new(
            format!("{}.{field}", path()),
            format!("{host} is not a port"),
            "use a number from 1 to 65535",
        )
    })?;
    let protocol = from.protocol.as_deref().filter(|name| !name.is_empty()).unwrap_or("TCP");
    if !["TCP", "UDP", "SCTP"].contains(&protocol) {
        return Err(FieldProblem::new(
            format!("{}.protocol", path()),
            format!("`{protocol}` is not a protocol of a port"),
            "use TCP, UDP or SCTP",
        ));
    }
    let ip = from.host_ip.clone().filter(|ip| !ip.is_empty() && ip != "0.0.0.0");
    Ok(HostPort { port, protocol: protocol.to_owned(), ip })
}

/// Returns the required pod affinity. Terms that cannot be read go to `unmodelled`.
pub(crate) fn affinity(
    path: &str,
    owner: Owner<'_>,
    spec: &k8s::PodSpec,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<PodAffinityTerm> {
    let rule = spec.affinity.as_ref().and_then(|affinity| affinity.pod_affinity.as_ref());
    let terms = rule.and_then(|rule| rule.required_during_scheduling_ignored_during_execution.as_deref());
    terms_of(&format!("{path}.affinity.podAffinity"), owner, terms.unwrap_or_default(), unmodelled)
}

/// Returns the required pod anti-affinity. Terms that cannot be read go to `unmodelled`.
pub(crate) fn anti_affinity(
    path: &str,
    owner: Owner<'_>,
    spec: &k8s::PodSpec,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<PodAffinityTerm> {
    let rule = spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let terms = rule.and_then(|rule| rule.required_during_scheduling_ignored_during_execution.as_deref());
    terms_of(&format!("{path}.affinity.podAntiAffinity"), owner, terms.unwrap_or_default(), unmodelled)
}

fn terms_of(
    path: &str,
    owner: Owner<'_>,
    terms: &[k8s::PodAffinityTerm],
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<PodAffinityTerm> {
    let path = format!("{path}.requiredDuringSchedulingIgnoredDuringExecution");
    let terms = terms.iter().enumerate();
    terms.filter_map(|(at, term)| term_of(&format!("{path}[{at}]"), owner, term, unmodelled)).collect()
}

/// Returns a term about other pods; `None` if it cannot be read, which adds it to `unmodelled`.
pub(crate) fn term_of(
    path: &str,
    owner: Owner<'_>,
    term: &k8s::PodAffinityTerm,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Option<PodAffinityTerm> {
    let mut add = |field: &str| {
        let rule = "a rule about other pods with an invalid expression".to_owned();
        unmodelled.push(UnmodelledRule { field: format!("{path}{field}"), rule });
    };
    let (same, other) = (term.match_label_keys.as_deref(), term.mismatch_label_keys.as_deref());
    let Ok(selector) = selector(owner, term.label_selector.as_ref(), same, other) else {
        add(".labelSelector");
        return None;
    };
    let Some(namespaces) = namespaces(owner, term) else {
        add(".namespaceSelector");
        return None;
    };
    Some(PodAffinityTerm { topology_key: term.topology_key.clone(), namespaces, selector })
}

/// Returns the namespaces of a term: those that it names or selects, or its own if it does neither. An empty selector selects
/// all. `None` if the selector is invalid.
fn namespaces(owner: Owner<'_>, term: &k8s::PodAffinityTerm) -> Option<Namespaces> {
    let names: BTreeSet<String> = term.namespaces.iter().flatten().cloned().collect();
    Some(match &term.namespace_selector {
        None if names.is_empty() => Namespaces::Named([owner.namespace.to_owned()].into()),
        None => Namespaces::Named(names),
        Some(chosen) => match requirements(chosen)? {
            all if all.is_empty() => Namespaces::All,
            by => Namespaces::NamedOrSelected(names, by),
        },
    })
}

/// An expression of a selector that the API server would refuse.
struct Senseless;

/// Returns a selector with the requirements that admission adds for the owner's labels, in a fixed order.
fn selector(
    owner: Owner<'_>,
    from: Option<&LabelSelector>,
    same: Option<&[String]>,
    other: Option<&[String]>,
) -> Result<Option<Vec<Requirement>>, Senseless> {
    let Some(from) = from else { return Ok(None) };
    let mut all = requirements(from).ok_or(Senseless)?;
    all.extend(own_values(owner, same, Operator::In));
    all.extend(own_values(owner, other, Operator::NotIn));
    all.sort();
    all.dedup();
    Ok(Some(all))
}

/// The value of `whenUnsatisfiable` that makes a constraint a preference.
pub(crate) const ANYWAY: &str = "ScheduleAnyway";

/// Returns the required topology spread. A preference (`ScheduleAnyway`) forbids nothing and is left out. A constraint that
/// cannot be read goes to `unmodelled`.
pub(crate) fn spreads(
    path: &str,
    owner: Owner<'_>,
    spec: &k8s::PodSpec,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Vec<TopologySpreadConstraint> {
    let all = spec.topology_spread_constraints.iter().flatten().enumerate();
    let kept = all.filter(|(_, spread)| spread.when_unsatisfiable != ANYWAY);
    let path = |at| format!("{path}.topologySpreadConstraints[{at}]");
    kept.filter_map(|(at, spread)| spread_of(&path(at), owner, spread, unmodelled)).collect()
}

/// Returns one constraint; `None` if it cannot be read, which adds it to `unmodelled`.
pub(crate) fn spread_of(
    path: &str,
    owner: Owner<'_>,
    spread: &k8s::TopologySpreadConstraint,
    unmodelled: &mut Vec<UnmodelledRule>,
) -> Option<TopologySpreadConstraint> {
    let mut add = |field: &str, rule: String| {
        unmodelled.push(UnmodelledRule { field: format!("{path}{field}"), rule });
    };
    let Some(max_skew) = u32::try_from(spread.max_skew).ok().filter(|skew| *skew > 0) else {
        add(".maxSkew", format!("topology spread with a maxSkew of {}", spread.max_skew));
        return None;
    };
    let same = spread.match_label_keys.as_deref();
    let Ok(selector) = selector(owner, spread.label_selector.as_ref(), same, None) else {
        add(".labelSelector", "topology spread with an invalid expression".to_owned());
        return None;
    };
    // For an empty selector, the kube-scheduler counts no pods.
    let selector = selector.filter(|all| !all.is_empty());
    let keys = same.unwrap_or_default().iter().filter(|key| owner.labels.contains_key(*key));
    Some(TopologySpreadConstraint {
        topology_key: spread.topology_key.clone(),
        max_skew,
        match_label_keys: keys.filter(|_| selector.is_some()).cloned().collect(),
        selector,
        min_domains: spread.min_domains.and_then(|least| u32::try_from(least).ok()),
        ignore_node_affinity: spread.node_affinity_policy.as_deref() == Some("Ignore"),
        honor_node_taints: spread.node_taints_policy.as_deref() == Some("Honor"),
        default_of: None,
    })
}

/// Returns requirements for the owner's values of these labels. Labels that the owner does not have add none.
fn own_values(
    owner: Owner<'_>,
    keys: Option<&[String]>,
    operator: fn(BTreeSet<String>) -> Operator,
) -> Vec<Requirement> {
    let of = |key: &String| {
        let value = owner.labels.get(key)?.clone();
        Some(Requirement { key: key.clone(), operator: operator([value].into()) })
    };
    keys.into_iter().flatten().filter_map(of).collect()
}

/// Returns the requirements of a label selector, in a fixed order; `None` if it is invalid.
pub(crate) fn requirements(selector: &LabelSelector) -> Option<Vec<Requirement>> {
    let mut all: Vec<Requirement> = Vec::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        all.push(Requirement { key: key.clone(), operator: Operator::In([value.clone()].into()) });
    }
    for expression in selector.match_expressions.iter().flatten() {
        let known = ["In", "NotIn", "Exists", "DoesNotExist"].contains(&expression.operator.as_str());
        let operator = operator(&expression.operator, expression.values.clone().unwrap_or_default());
        all.push(Requirement { key: expression.key.clone(), operator: operator.filter(|_| known)? });
    }
    all.sort();
    Some(all)
}
