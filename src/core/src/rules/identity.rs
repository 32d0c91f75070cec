//! The properties of a pod that rules of other pods look at.

use std::collections::BTreeMap;

use crate::model::{DaemonSet, NamespaceLabels, Namespaces, Pod, PodAffinityTerm, PodSpec};
use crate::rules::labels::Labels;
use crate::rules::requirement::matches;

/// The label that every namespace has, with its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The properties of a pod that rules of other pods look at.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Labels of its namespace; `None` if unknown.
    pub namespace_labels: Option<&'a BTreeMap<String, String>>,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// Its spec.
    pub spec: &'a PodSpec,
}

impl<'a> Identity<'a> {
    /// Returns the identity of a pod.
    pub fn of_pod(pod: &'a Pod, namespaces: &'a NamespaceLabels) -> Self {
        let namespace = pod.key.namespace();
        Self { namespace, namespace_labels: namespaces.get(namespace), labels: &pod.labels, spec: &pod.spec }
    }

    /// Returns the identity of a DaemonSet's pods.
    pub fn of_daemonset(set: &'a DaemonSet, namespaces: &'a NamespaceLabels) -> Self {
        let namespace = set.key.namespace.as_str();
        Self { namespace, namespace_labels: namespaces.get(namespace), labels: &set.labels, spec: &set.spec }
    }
}

/// The labels that a namespace selector sees. Every namespace has its name as a label, even if nothing else is known about it.
struct NamespaceOf<'a>(Identity<'a>);

impl Labels for NamespaceOf<'_> {
    fn label(&self, key: &str) -> Option<&str> {
        let known = self.0.namespace_labels.and_then(|labels| labels.get(key)).map(String::as_str);
        known.or_else(|| (key == NAMESPACE_NAME).then_some(self.0.namespace))
    }
}

/// Returns whether a pod affinity or anti-affinity term selects this pod.
pub fn selects(term: &PodAffinityTerm, pod: Identity<'_>) -> bool {
    let lives_there = match &term.namespaces {
        Namespaces::All => true,
        Namespaces::Named(names) => names.contains(pod.namespace),
        Namespaces::NamedOrSelected(names, by) => {
            names.contains(pod.namespace)
                || by.iter().all(|requirement| matches(requirement, &NamespaceOf(pod)))
        }
    };
    lives_there
        && term
            .selector
            .as_ref()
            .is_some_and(|all| all.iter().all(|requirement| matches(requirement, pod.labels)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Operator;
    use crate::model::Requirement;

    #[test]
    fn a_namespace_is_chosen_by_name_or_by_its_labels() {
        let (labels, spec) = (BTreeMap::new(), PodSpec::default());
        let team = BTreeMap::from([("team".to_owned(), "ml".to_owned())]);
        let chosen = |key: &str, value: &str, namespace: &str, known: bool| {
            let operator = Operator::In([value.to_owned()].into());
            let term = PodAffinityTerm {
                topology_key: "zone".into(),
                namespaces: Namespaces::NamedOrSelected(
                    ["other".to_owned()].into(),
                    vec![Requirement { key: key.into(), operator }],
                ),
                selector: Some(vec![]),
            };
            let namespace_labels = known.then_some(&team);
            selects(&term, Identity { namespace, namespace_labels, labels: &labels, spec: &spec })
        };
        assert!(chosen("team", "ml", "a", true));
        assert!(!chosen("team", "web", "a", true) && !chosen("team", "ml", "a", false));
        assert!(chosen("team", "web", "other", true), "named beside the selector");
        assert!(chosen(NAMESPACE_NAME, "a", "a", false), "every namespace has its name as a label");
    }
}
