//! Preferences of a pod. They forbid nothing. If a preference cannot be read, it is reported and dropped, and the pod is planned
//! without it.

use k8s_openapi::api::core::v1 as k8s;
use poolwright_core::{PodAffinityTerm, Preferences, UnmodelledRule, Weighted};

use crate::others::{ANYWAY, Owner, spread_of, term_of};
use crate::rules::node_term;

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Returns all preferences of a spec; `None` if it has none. `path` is the path of the spec.
pub(crate) fn preferences(path: &str, owner: Owner<'_>, spec: &k8s::PodSpec) -> Option<Box<Preferences>> {
    let mut unread = Vec::new();
    let affinity = spec.affinity.as_ref();
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let near = near.and_then(|rule| rule.preferred_during_scheduling_ignored_during_execution.as_deref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let apart = apart.and_then(|rule| rule.preferred_during_scheduling_ignored_during_execution.as_deref());
    let path_of = |rule: &str| format!("{path}.affinity.{rule}.{PREFERRED}");
    let preferences = Preferences {
        nodes: nodes(&path_of("nodeAffinity"), spec, &mut unread),
        added: Vec::new(),
        affinity: terms(&path_of("podAffinity"), owner, near, &mut unread),
        anti_affinity: terms(&path_of("podAntiAffinity"), owner, apart, &mut unread),
        spreads: spec
            .topology_spread_constraints
            .iter()
            .flatten()
            .enumerate()
            .filter(|(_, spread)| spread.when_unsatisfiable == ANYWAY)
            .filter_map(|(at, spread)| {
                let path = format!("{path}.topologySpreadConstraints[{at}]");
                spread_of(&path, owner, spread, &mut unread)
            })
            .collect(),
        unread,
    };
    preferences.some()
}

fn nodes(
    path: &str,
    spec: &k8s::PodSpec,
    unread: &mut Vec<UnmodelledRule>,
) -> Vec<Weighted<poolwright_core::NodeSelectorTerm>> {
    let affinity = spec.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let all = affinity.and_then(|rule| rule.preferred_during_scheduling_ignored_during_execution.as_deref());
    let mut preferences = Vec::new();
    for (at, preference) in all.unwrap_or_default().iter().enumerate() {
        let before = unread.len();
        let term = node_term(&format!("{path}[{at}].preference"), &preference.preference, unread);
        let Some(weight) = weight(&format!("{path}[{at}]"), preference.weight, unread) else { continue };
        // An empty term is met everywhere. A term that was read only in part is dropped, because its meaning is unknown.
        if unread.len() == before && !term.requirements.is_empty() {
            preferences.push(Weighted { weight, term });
        }
    }
    preferences
}

fn terms(
    path: &str,
    owner: Owner<'_>,
    all: Option<&[k8s::WeightedPodAffinityTerm]>,
    unread: &mut Vec<UnmodelledRule>,
) -> Vec<Weighted<PodAffinityTerm>> {
    let mut preferences = Vec::new();
    for (at, preference) in all.unwrap_or_default().iter().enumerate() {
        let path = format!("{path}[{at}]");
        let term = term_of(&format!("{path}.podAffinityTerm"), owner, &preference.pod_affinity_term, unread);
        let weight = weight(&path, preference.weight, unread);
        preferences.extend(term.zip(weight).map(|(term, weight)| Weighted { weight, term }));
    }
    preferences
}

fn weight(path: &str, weight: i32, unread: &mut Vec<UnmodelledRule>) -> Option<u32> {
    let known = u32::try_from(weight).ok().filter(|weight| (1..=100).contains(weight));
    if known.is_none() {
        unread.push(UnmodelledRule {
            field: format!("{path}.weight"),
            rule: format!("a preference with a weight of {weight}, which is not between 1 and 100"),
        });
    }
    known
}
