//! A topology spread constraint: the pods and nodes that it counts, and the number of pods that it allows on one new node.

use std::collections::BTreeMap;

use poolwright_terms::Taint;
use poolwright_terms::labels::HOSTNAME;

use crate::model::{NodeSelectorTerm, PodSpec, Toleration, TopologySpreadConstraint};
use crate::rules::fits::check_own_labels;
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;
use crate::rules::requirement::matches;
use crate::rules::taints::check as check_taints;

/// Checks whether a new node may get a pod with this constraint. `count` is the number of counted pods on the node, including the
/// new one.
///
/// This check takes the least count as zero, because a new node is empty at first. A node with at most `maxSkew` such pods always
/// keeps the constraint, in every order in which nodes join and pods are bound. If every node has some such pods, the
/// kube-scheduler would allow more.
fn check(rule: &TopologySpreadConstraint, count: u64) -> Result<(), Rejection> {
    if count <= u64::from(rule.max_skew) {
        Ok(())
    } else {
        Err(Rejection::Spread {
            topology_key: rule.topology_key.clone(),
            max_skew: rule.max_skew,
            count,
            default_of: rule.default_of.clone(),
        })
    }
}

/// Returns whether a node with these labels is in a domain of the pod's constraints over nodes. If the pod has such a constraint,
/// the node must have the label `kubernetes.io/hostname`.
pub fn is_host(spec: &PodSpec, labels: &impl Labels) -> bool {
    labels.label(HOSTNAME).is_some() || spec.spreads.iter().all(|rule| rule.topology_key != HOSTNAME)
}

/// Returns whether the constraint of a pod in this namespace counts another pod. An empty selector counts no pod here, although
/// it matches every pod elsewhere. The kube-scheduler does the same (`countPodsMatchSelector`).
pub fn counts(rule: &TopologySpreadConstraint, namespace: &str, pod: Identity<'_>) -> bool {
    namespace == pod.namespace
        && rule.selector.as_ref().is_some_and(|all| {
            !all.is_empty() && all.iter().all(|requirement| matches(requirement, pod.labels))
        })
}

/// Returns whether a constraint counts the pods of a node, by its `nodeAffinityPolicy` and `nodeTaintsPolicy`. `owner` is a pod
/// with the constraint.
pub(crate) fn includes(
    rule: &TopologySpreadConstraint,
    owner: &PodSpec,
    labels: &impl Labels,
    taints: &[Taint],
) -> bool {
    (rule.ignore_node_affinity || check_own_labels(owner, labels).is_ok())
        && (!rule.honor_node_taints || check_taints(&owner.tolerations, taints).is_ok())
}

/// Returns whether the constraints of `owner`, which is one of these pods, allow all of them on one new node.
pub(crate) fn may_share(owner: Identity<'_>, all: &[Identity<'_>]) -> bool {
    owner.spec.spreads.iter().filter(|rule| rule.topology_key == HOSTNAME).all(|rule| {
        let counted = all.iter().filter(|pod| counts(rule, owner.namespace, **pod));
        check(rule, counted.count() as u64).is_ok()
    })
}

/// The parts of a constraint and its pod that decide which pods and nodes count. Constraints with equal parts count the same pods
/// on the same nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CountsAlike<'a> {
    pub namespace: &'a str,
    pub rule: &'a TopologySpreadConstraint,
    /// All constraints of the pod. A node without one of their topology keys does not count.
    pub all: &'a [TopologySpreadConstraint],
    node_selector: &'a BTreeMap<String, String>,
    node_affinity: &'a Option<Vec<NodeSelectorTerm>>,
    tolerations: &'a [Toleration],
}

impl<'a> CountsAlike<'a> {
    /// Selects these parts of a constraint of a pod with this spec.
    pub fn new(namespace: &'a str, spec: &'a PodSpec, rule: &'a TopologySpreadConstraint) -> Self {
        let PodSpec { spreads: all, node_selector, node_affinity, tolerations, .. } = spec;
        Self { namespace, rule, all, node_selector, node_affinity, tolerations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_selector_counts_no_pod() {
        let rule = |selector| TopologySpreadConstraint {
            topology_key: "kubernetes.io/hostname".into(),
            max_skew: 1,
            selector,
            ..TopologySpreadConstraint::default()
        };
        let (labels, spec) = (BTreeMap::new(), PodSpec::default());
        let pod = Identity { namespace: "default", namespace_labels: None, labels: &labels, spec: &spec };
        assert!(!counts(&rule(Some(vec![])), "default", pod));
        assert!(!counts(&rule(None), "default", pod));
    }

    #[test]
    fn a_node_holds_as_many_as_the_skew_allows_over_an_empty_one() {
        let rule = TopologySpreadConstraint {
            topology_key: "kubernetes.io/hostname".into(),
            max_skew: 2,
            ..TopologySpreadConstraint::default()
        };
        assert!(check(&rule, 2).is_ok());
        let rejection = check(&rule, 3).expect_err("one too many");
        assert_eq!(
            rejection.to_string(),
            "is spread over `kubernetes.io/hostname` with a maxSkew of 2, and there would be 3 on the node"
        );
    }
}
