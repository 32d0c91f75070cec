//! Required pod anti-affinity on one node, between two pods.

use poolwright_terms::labels::HOSTNAME;

use crate::rules::identity::{Identity, selects};
use crate::rules::rejection::Rejection;

/// Checks whether a newcomer may join a resident on its node. As in the kube-scheduler, the terms of both pods must hold.
pub fn check(newcomer: Identity<'_>, resident: Identity<'_>) -> Result<(), Rejection> {
    let keeps_away = |one: Identity<'_>, other: Identity<'_>| {
        one.spec.anti_affinity.iter().any(|term| term.topology_key == HOSTNAME && selects(term, other))
    };
    if keeps_away(newcomer, resident) {
        return Err(Rejection::AntiAffinity { its_own: true });
    }
    if keeps_away(resident, newcomer) {
        return Err(Rejection::AntiAffinity { its_own: false });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::Namespaces;
    use crate::model::Operator;
    use crate::model::PodAffinityTerm;
    use crate::model::PodSpec;
    use crate::model::Requirement;

    fn term(app: &str) -> PodAffinityTerm {
        let operator = Operator::In([app.to_owned()].into());
        PodAffinityTerm {
            topology_key: HOSTNAME.into(),
            namespaces: Namespaces::Named(["default".to_owned()].into()),
            selector: Some(vec![Requirement { key: "app".into(), operator }]),
        }
    }

    fn pair(
        one: (&str, Vec<PodAffinityTerm>),
        other: (&str, Vec<PodAffinityTerm>),
        namespace: &str,
    ) -> Result<(), Rejection> {
        let labels = |app: &str| BTreeMap::from([("app".to_owned(), app.to_owned())]);
        let spec = |terms| PodSpec { anti_affinity: terms, ..PodSpec::default() };
        let (one_labels, other_labels) = (labels(one.0), labels(other.0));
        let (one_spec, other_spec) = (spec(one.1), spec(other.1));
        check(
            Identity { namespace: "default", namespace_labels: None, labels: &one_labels, spec: &one_spec },
            Identity { namespace, namespace_labels: None, labels: &other_labels, spec: &other_spec },
        )
    }

    #[test]
    fn both_pods_have_a_say() {
        let away = Rejection::AntiAffinity { its_own: true };
        assert_eq!(pair(("a", vec![term("b")]), ("b", vec![]), "default"), Err(away));
        let away = Rejection::AntiAffinity { its_own: false };
        assert_eq!(pair(("a", vec![]), ("b", vec![term("a")]), "default"), Err(away));
        assert_eq!(pair(("a", vec![term("a")]), ("b", vec![term("b")]), "default"), Ok(()));
    }

    #[test]
    fn a_term_is_about_its_namespaces_only() {
        assert_eq!(pair(("a", vec![term("b")]), ("b", vec![]), "elsewhere"), Ok(()));
        let everywhere = PodAffinityTerm { namespaces: Namespaces::All, ..term("b") };
        assert!(pair(("a", vec![everywhere]), ("b", vec![]), "elsewhere").is_err());
    }

    #[test]
    fn an_empty_selector_is_about_every_pod_and_an_absent_one_about_none() {
        let every = PodAffinityTerm { selector: Some(vec![]), ..term("b") };
        let none = PodAffinityTerm { selector: None, ..term("b") };
        assert!(pair(("a", vec![every]), ("x", vec![]), "default").is_err());
        assert_eq!(pair(("a", vec![none]), ("b", vec![]), "default"), Ok(()));
    }

    #[test]
    fn a_term_about_zones_says_nothing_about_one_node() {
        let zone = PodAffinityTerm { topology_key: "topology.kubernetes.io/zone".into(), ..term("b") };
        assert_eq!(pair(("a", vec![zone]), ("b", vec![]), "default"), Ok(()));
    }
}
