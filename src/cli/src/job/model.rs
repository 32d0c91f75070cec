//! The GPU model that the pods of a job ask for.

use std::collections::BTreeMap;

use poolwright_catalog::ResourceName;
use poolwright_core::{PodKey, PodSpec, Requirement, Snapshot, rules};
use poolwright_terms::labels;

/// Returns whether a pod requests whole GPUs.
pub fn wants_gpus(spec: &PodSpec) -> bool {
    spec.requests.get(ResourceName::NVIDIA_GPU) > 0
}

/// Returns whether what a pod requires of the GPU model of its node admits this one.
pub fn may_use(spec: &PodSpec, model: &str) -> bool {
    let known = BTreeMap::from([(labels::GPU_MODEL.to_owned(), model.to_owned())]);
    let is_met = |one: &Requirement| one.key != labels::GPU_MODEL || rules::matches(one, &known);
    spec.node_selector.get(labels::GPU_MODEL).is_none_or(|wanted| wanted == model)
        && spec
            .node_affinity
            .as_ref()
            .is_none_or(|terms| terms.iter().any(|term| term.requirements.iter().all(is_met)))
}

/// Returns the snapshot in which the waiting pods with whole GPUs ask for this model, and for no other.
pub fn asking_for(snapshot: &Snapshot, model: &str) -> Snapshot {
    let mut other = snapshot.clone();
    let pods = snapshot.pods.unbound().filter(|pod| wants_gpus(&pod.spec));
    let changed: Vec<(PodKey, PodSpec)> =
        pods.map(|pod| (pod.key.clone(), with_model(PodSpec::clone(&pod.spec), model))).collect();
    for (key, spec) in changed {
        other.pods.change(&key, |pod| pod.spec = spec.into());
    }
    other
}

fn with_model(mut spec: PodSpec, model: &str) -> PodSpec {
    keep_rules(&mut spec, |key| key != labels::GPU_MODEL);
    spec.node_selector.insert(labels::GPU_MODEL.to_owned(), model.to_owned());
    spec
}

/// Drops what a pod requires of labels of its node, apart from the labels to keep.
pub fn keep_rules(spec: &mut PodSpec, keep: impl Fn(&str) -> bool) {
    spec.node_selector.retain(|key, _| keep(key));
    let mut is_free = false;
    for term in spec.node_affinity.iter_mut().flatten() {
        let before = term.requirements.len();
        term.requirements.retain(|one| keep(&one.key));
        // Terms are alternatives. One that asked for such labels alone now asks for nothing.
        is_free |= before > 0 && term.requirements.is_empty();
    }
    if is_free {
        spec.node_affinity = None;
    }
}

#[cfg(test)]
mod tests {
    use poolwright_core::{NodeSelectorTerm, Operator};

    use super::*;

    fn requirement(key: &str) -> Requirement {
        Requirement { key: key.to_owned(), operator: Operator::In(["a".to_owned()].into()) }
    }

    #[test]
    fn the_model_replaces_those_that_a_pod_asks_for_and_nothing_else() {
        let term = |keys: &[&str]| NodeSelectorTerm {
            requirements: keys.iter().map(|key| requirement(key)).collect(),
        };
        let spec =
            |terms: Vec<NodeSelectorTerm>| PodSpec { node_affinity: Some(terms), ..PodSpec::default() };
        let changed = with_model(spec(vec![term(&[labels::GPU_MODEL, "zone"])]), "l4");
        assert_eq!(changed.node_selector.get(labels::GPU_MODEL).map(String::as_str), Some("l4"));
        assert_eq!(changed.node_affinity, Some(vec![term(&["zone"])]));
        let free = with_model(spec(vec![term(&[labels::GPU_MODEL]), term(&["zone"])]), "l4");
        assert_eq!(free.node_affinity, None, "one of two alternatives asked for a model alone");
    }

    #[test]
    fn a_pod_may_use_the_models_that_one_of_its_alternatives_admits() {
        let term = |keys: &[&str]| NodeSelectorTerm {
            requirements: keys.iter().map(|key| requirement(key)).collect(),
        };
        let asks = |terms| PodSpec { node_affinity: Some(terms), ..PodSpec::default() };
        let (any, one) = (PodSpec::default(), asks(vec![term(&[labels::GPU_MODEL, "zone"])]));
        let either = asks(vec![term(&[labels::GPU_MODEL]), term(&["zone"])]);
        let selects = with_model(PodSpec::default(), "a");
        let may = |model: &str| [&any, &one, &either, &selects].map(|spec| may_use(spec, model));
        assert_eq!((may("a"), may("l4")), ([true; 4], [true, false, true, false]));
    }
}
