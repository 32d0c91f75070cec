//! Topology spread over nodes: no node with many more pods of a kind than the node with fewest.
//!
//! Nodes that join are empty at first, and then the least count is zero: a node on which no more than `maxSkew` pods count
//! is within the rule whatever the others hold. Only this much is used, so that no order in which nodes join and pods are
//! bound can break a plan; where all nodes hold some already, the kube-scheduler itself would allow more.

use poolwright_terms::labels::HOSTNAME;

use crate::model::{PodSpec, SpreadRule};
use crate::rules::identity::Identity;
use crate::rules::labels::Labels;
use crate::rules::rejection::Rejection;
use crate::rules::requirement::matches;

/// Whether a node may get a pod with this rule; `count` is the pods there that the rule counts, the newcomer included.
pub fn check(rule: &SpreadRule, count: u64) -> Result<(), Rejection> {
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

/// Whether nodes with these labels are hosts to a pod: without the label `kubernetes.io/hostname` none is that a pod is
/// spread over.
pub fn is_host(spec: &PodSpec, labels: &impl Labels) -> bool {
    labels.label(HOSTNAME).is_some() || spec.spreads.iter().all(|rule| rule.topology_key != HOSTNAME)
}

/// Whether the rule of a pod in this namespace counts another pod. An empty selector, which elsewhere is every pod, counts
/// none: so the kube-scheduler has it (`countPodsMatchSelector`).
pub fn counts(rule: &SpreadRule, namespace: &str, pod: Identity<'_>) -> bool {
    namespace == pod.namespace
        && rule.selector.as_ref().is_some_and(|all| {
            !all.is_empty() && all.iter().all(|requirement| matches(requirement, pod.labels))
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::PodSpec;

    #[test]
    fn an_empty_selector_counts_no_pod() {
        let rule = |selector| SpreadRule {
            topology_key: "kubernetes.io/hostname".into(),
            max_skew: 1,
            selector,
            ..SpreadRule::default()
        };
        let (labels, spec) = (BTreeMap::new(), PodSpec::default());
        let pod = Identity { namespace: "default", namespace_labels: None, labels: &labels, spec: &spec };
        assert!(!counts(&rule(Some(vec![])), "default", pod));
        assert!(!counts(&rule(None), "default", pod));
    }

    #[test]
    fn a_node_holds_as_many_as_the_skew_allows_over_an_empty_one() {
        let rule = SpreadRule {
            topology_key: "kubernetes.io/hostname".into(),
            max_skew: 2,
            ..SpreadRule::default()
        };
        assert!(check(&rule, 2).is_ok());
        let rejection = check(&rule, 3).expect_err("one too many");
        assert_eq!(
            rejection.to_string(),
            "is spread over `kubernetes.io/hostname` with a maxSkew of 2, and there would be 3 on the node"
        );
    }
}
