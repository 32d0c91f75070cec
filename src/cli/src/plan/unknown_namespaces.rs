//! Namespaces that the files lack, although it depends on their labels which pods a rule of a pod is about.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_core::rules::matches;
use poolwright_core::{Namespaces, Operator, Pod, PodAffinityTerm, PodPhase, Snapshot};

/// The label that every namespace has, with its name.
const NAME: &str = "kubernetes.io/metadata.name";

/// The kinds of rules about other pods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rule {
    /// It holds for a pod that waits. The pod itself may meet it.
    Affinity,
    /// It holds between two pods, whichever of them waits.
    AntiAffinity,
    /// Any preference. It counts for a pod that waits.
    Preference,
}

/// Returns a note about each namespace that a selector of namespaces may or may not choose. `left_out` are the objects of the files
/// that cannot be read.
pub fn notes(snapshot: &Snapshot, left_out: [&BTreeSet<String>; 2]) -> Vec<String> {
    let all = || snapshot.pods.unbound().chain(snapshot.pods.bound());
    let is_hidden = |pod: &&Pod| !snapshot.namespaces.contains_key(pod.key.namespace());
    let hidden: Vec<&Pod> = all().filter(is_hidden).collect();
    if hidden.is_empty() {
        return Vec::new();
    }
    let mut owners: BTreeMap<(Rule, &PodAffinityTerm), Vec<&Pod>> = BTreeMap::new();
    for pod in all() {
        for rule in rules(pod) {
            owners.entry(rule).or_default().push(pod);
        }
    }
    // Each job may have a rule of its own, so that not all pods can be compared with all rules.
    let mut by_label: BTreeMap<(&str, &str), Vec<&Pod>> = BTreeMap::new();
    for pod in hidden.iter().copied() {
        for (key, value) in &*pod.labels {
            by_label.entry((key.as_str(), value.as_str())).or_default().push(pod);
        }
    }
    let mut unknown: BTreeSet<&str> = BTreeSet::new();
    for ((rule, term), owners) in &owners {
        let waiting: Vec<&Pod> = owners.iter().copied().filter(|pod| waits(pod)).collect();
        let chosen = with_a_label(term, &by_label);
        for pod in chosen.as_deref().unwrap_or(&hidden).iter().copied() {
            let is_other = |owner: &&Pod| *rule == Rule::Affinity || owner.key != pod.key;
            let is_open = waiting.iter().any(is_other)
                || (*rule == Rule::AntiAffinity && waits(pod) && owners.iter().any(is_other));
            if is_open && may_select(term, pod) {
                unknown.insert(pod.key.namespace());
            }
        }
    }
    let note = |namespace: &str| {
        let object = format!("Namespace {namespace}");
        let (is_where, next) = if left_out.iter().any(|lost| lost.contains(&object)) {
            ("it is left out", "correct it")
        } else {
            ("it is not among the files", "add it")
        };
        format!(
            "{object}: {is_where}, so its labels are unknown; to the namespaceSelector of a pod, it has none but its name; {next}"
        )
    };
    unknown.into_iter().map(note).collect()
}

/// Returns the rules of a pod about pods in the namespaces that a selector chooses.
fn rules(pod: &Pod) -> impl Iterator<Item = (Rule, &PodAffinityTerm)> {
    let spec = &pod.spec;
    let preferred = spec.preferences.iter().flat_map(|all| all.affinity.iter().chain(&all.anti_affinity));
    let affinity = spec.affinity.iter().map(|term| (Rule::Affinity, term));
    let anti_affinity = spec.anti_affinity.iter().map(|term| (Rule::AntiAffinity, term));
    let all = affinity.chain(anti_affinity).chain(preferred.map(|one| (Rule::Preference, &one.term)));
    all.filter(|(_, term)| matches!(term.namespaces, Namespaces::NamedOrSelected(..)))
}

fn waits(pod: &Pod) -> bool {
    pod.deleting_since.is_none() && !matches!(pod.phase, PodPhase::Bound { .. } | PodPhase::Finished)
}

/// Returns whether a term selects a pod if the namespace of the pod has the right labels besides its name.
fn may_select(term: &PodAffinityTerm, pod: &Pod) -> bool {
    let Namespaces::NamedOrSelected(names, by) = &term.namespaces else { return false };
    let namespace = pod.key.namespace();
    let has_name = || {
        let name = BTreeMap::from([(NAME.to_owned(), namespace.to_owned())]);
        let mut of_name = by.iter().filter(|requirement| requirement.key == NAME);
        of_name.all(|requirement| matches(requirement, &name))
    };
    !names.contains(namespace)
        && by.iter().any(|requirement| requirement.key != NAME)
        && term.selector.as_ref().is_some_and(|all| all.iter().all(|one| matches(one, &pod.labels)))
        && has_name()
}

/// Returns the pods that have one of the values that a term wants of a label, of the label with the fewest such pods; `None` if it wants
/// no values. No other pod is selected.
fn with_a_label<'a>(
    term: &'a PodAffinityTerm,
    by_label: &BTreeMap<(&'a str, &'a str), Vec<&'a Pod>>,
) -> Option<Vec<&'a Pod>> {
    let mut fewest: Option<Vec<&'a Pod>> = None;
    for requirement in term.selector.iter().flatten() {
        let Operator::In(values) = &requirement.operator else { continue };
        let of = |value: &'a String| by_label.get(&(requirement.key.as_str(), value.as_str()));
        let pods: Vec<&'a Pod> = values.iter().filter_map(of).flatten().copied().collect();
        if fewest.as_ref().is_none_or(|fewest| pods.len() < fewest.len()) {
            fewest = Some(pods);
        }
    }
    fewest
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_core::Namespace;
    use poolwright_intake::manifest::parse;

    use super::*;

    /// A pod with these labels that runs in the namespace `nx`, and one that waits in another with a rule about pods of `app: w`.
    fn snapshot(labels: &str, kind: &str, chosen: &str) -> Snapshot {
        let selectors = format!(
            "labelSelector: {{matchLabels: {{app: w}}}}, namespaceSelector: {{matchLabels: {{{chosen}}}}}"
        );
        let term = format!("{{topologyKey: zone, {selectors}}}");
        let rule = format!("{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{term}]}}");
        let pod = |meta: String, spec: String| {
            let spec = format!("{spec}, containers: [{{image: x, name: a}}]");
            format!("{{apiVersion: v1, kind: Pod, metadata: {{{meta}}}, spec: {{{spec}}}}}")
        };
        let runs =
            pod(format!("name: old, namespace: nx, labels: {{{labels}}}"), "nodeName: node-1".to_owned());
        let waits = pod("name: new, namespace: ny".to_owned(), format!("affinity: {{{rule}}}"));
        let manifest = parse("all.yaml", &format!("{runs}\n---\n{waits}\n")).expect("it can be read");
        let pods = manifest.pods.into_iter().map(|pod| (pod.key.clone(), Arc::new(pod)));
        Snapshot { pods: pods.collect(), ..Snapshot::default() }
    }

    fn told(snapshot: &Snapshot, lost: &BTreeSet<String>) -> Vec<String> {
        notes(snapshot, [&BTreeSet::new(), lost])
    }

    #[test]
    fn a_namespace_is_named_only_if_the_files_lack_it_and_its_labels_decide() {
        let nothing = BTreeSet::new();
        for kind in ["podAffinity", "podAntiAffinity"] {
            let mut unknown = snapshot("app: w", kind, "team: red");
            let said = told(&unknown, &nothing);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("Namespace nx: it is not among the files, so"), "{said:?}");
            let said = told(&unknown, &["Namespace nx".to_owned()].into());
            assert!(said[0].starts_with("Namespace nx: it is left out, so"), "{said:?}");
            for (labels, chosen, why) in [
                ("app: other", "team: red", "no rule is about the pod"),
                ("app: w", "kubernetes.io/metadata.name: nx", "its name decides"),
                (
                    "app: w",
                    "kubernetes.io/metadata.name: nz, team: red",
                    "it is another, whatever its labels",
                ),
            ] {
                assert_eq!(told(&snapshot(labels, kind, chosen), &nothing), [""; 0], "{why}");
            }
            unknown.put_namespace(Namespace {
                name: "nx".to_owned(),
                labels: BTreeMap::new(),
                limits: BTreeMap::new(),
            });
            assert_eq!(told(&unknown, &nothing), [""; 0], "its labels are known");
        }
    }
}
