//! A pod with its own rules and those that its scheduler's configuration adds.
//!
//! Facts: `buildDefaultConstraints` (podtopologyspread/common.go), `systemDefaultConstraints` (podtopologyspread/plugin.go),
//! `DefaultSelector` (plugins/helper/spread.go), Kubernetes 1.36.

use std::borrow::Cow;
use std::collections::BTreeMap;

use poolwright_core::rules::{self, tolerates};
use poolwright_core::{
    EnforcedAffinity, Node, NodeSelectorTerm, ObjectKey, Operator, Pod, Profile, Requirement,
    TopologySpreadConstraint, Weighted,
};
use poolwright_terms::Taint;
use poolwright_terms::keys::RESERVED_TAINT;
use poolwright_terms::labels::{HOSTNAME, ZONE};

use super::cluster::{Cluster, NodeLabels};

/// The input of one scheduling attempt.
pub(super) struct Attempt<'a> {
    pub pod: &'a Pod,
    /// Required topology spread.
    pub spreads: Cow<'a, [TopologySpreadConstraint]>,
    /// Preferred topology spread.
    pub preferred_spreads: Cow<'a, [TopologySpreadConstraint]>,
    /// The preferred spread is the built-in default, which also counts nodes that lack one of the labels.
    pub built_in: bool,
    /// Node affinity that the scheduler's configuration requires.
    pub enforced: Option<&'a EnforcedAffinity>,
    /// Preferred node affinity, of the pod first and then of its scheduler.
    pub preferred: Vec<&'a Weighted<NodeSelectorTerm>>,
}

impl<'a> Attempt<'a> {
    pub fn new(cluster: &Cluster, profile: Option<&'a Profile>, pod: &'a Pod) -> Self {
        let preferences = pod.spec.preferences.as_deref();
        let own = preferences.map(|preferences| preferences.spreads.as_slice()).unwrap_or_default();
        let unread =
            |rule: &poolwright_core::UnmodelledRule| rule.field.contains("topologySpreadConstraints");
        let spreads_itself = !pod.spec.spreads.is_empty()
            || !own.is_empty()
            || preferences.is_some_and(|preferences| preferences.unread.iter().any(unread));
        let added = profile.map(|profile| profile.preferred.as_slice()).unwrap_or_default();
        let preferred = preferences.map(|preferences| preferences.nodes.as_slice()).unwrap_or_default();
        let mut attempt = Self {
            pod,
            spreads: Cow::Borrowed(&pod.spec.spreads),
            preferred_spreads: Cow::Borrowed(own),
            built_in: false,
            enforced: profile.and_then(|profile| profile.enforced.as_ref()),
            preferred: preferred.iter().chain(added.iter().map(|(preference, _)| preference)).collect(),
        };
        if !spreads_itself && let Some(selector) = default_selector(cluster, pod) {
            let with = |rules: &[TopologySpreadConstraint]| {
                let one = |rule: &TopologySpreadConstraint| TopologySpreadConstraint {
                    selector: Some(selector.clone()),
                    ..rule.clone()
                };
                rules.iter().map(one).collect::<Vec<_>>()
            };
            if let Some(profile) = profile.filter(|profile| profile.spreads_pods()) {
                attempt.spreads = with(&profile.spreads).into();
                attempt.preferred_spreads = with(&profile.preferred_spreads).into();
            } else {
                attempt.preferred_spreads = with(&built_in()).into();
                attempt.built_in = true;
            }
        }
        attempt
    }

    /// Returns whether the pod tolerates a taint. Admitted pods tolerate a reservation ([`Pod::reserved_for`]).
    pub fn tolerates(&self, taint: &Taint) -> bool {
        let admitted = || self.pod.reserved_for.iter().any(|claim| claim.0 == taint.value);
        self.pod.spec.tolerations.iter().any(|toleration| tolerates(toleration, taint))
            || (taint.key == RESERVED_TAINT && admitted())
    }

    /// Returns whether a spread constraint counts the pods of a node.
    pub fn counts_node(&self, rule: &TopologySpreadConstraint, node: &Node) -> bool {
        use poolwright_terms::TaintEffect::PreferNoSchedule;
        let shut = |taint: &Taint| taint.effect != PreferNoSchedule && !self.tolerates(taint);
        (rule.ignore_node_affinity || rules::check_own_labels(&self.pod.spec, &NodeLabels(node)).is_ok())
            && !(rule.honor_node_taints && node.taints.iter().any(shut))
    }
}

/// Returns the scheduler's default spread constraints.
fn built_in() -> [TopologySpreadConstraint; 2] {
    let rule = |key: &str, max_skew| TopologySpreadConstraint {
        topology_key: key.to_owned(),
        max_skew,
        ..TopologySpreadConstraint::default()
    };
    [rule(HOSTNAME, 3), rule(ZONE, 5)]
}

/// Returns the selector of the default spread for this pod. `None` if no Service or controller selects the pod: then it is not
/// spread.
fn default_selector(cluster: &Cluster, pod: &Pod) -> Option<Vec<Requirement>> {
    let namespace = pod.key.namespace();
    let services = cluster.around.services.range_from(&ObjectKey::new(namespace, ""));
    let mut merged: BTreeMap<&String, &String> = BTreeMap::new();
    for (_, service) in services.take_while(|(key, _)| key.namespace == namespace) {
        if service.selector.iter().all(|(key, value)| pod.labels.get(key) == Some(value)) {
            merged.extend(&service.selector);
        }
    }
    let equal = |(key, value): (&String, &String)| Requirement {
        key: key.clone(),
        operator: Operator::In([value.clone()].into()),
    };
    let mut all: Vec<Requirement> = merged.into_iter().map(equal).collect();
    let owner = pod.owner.as_ref().and_then(|owner| cluster.around.selector_of(owner));
    all.extend_from_slice(owner.unwrap_or_default());
    (!all.is_empty()).then_some(all)
}

/// Returns whether the selector matches these labels. A missing or empty selector matches no pod (`countPodsMatchSelector`).
pub(super) fn counts(rule: &TopologySpreadConstraint, labels: &BTreeMap<String, String>) -> bool {
    let met = |all: &Vec<Requirement>| {
        !all.is_empty() && all.iter().all(|requirement| rules::matches(requirement, labels))
    };
    rule.selector.as_ref().is_some_and(met)
}
