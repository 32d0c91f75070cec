//! Pods that ask for another GPU model.

use std::collections::BTreeSet;

use poolwright_core::{Operator, PodKey, PodPhase, PodRole, PodSpec, Snapshot};
use poolwright_terms::labels;

use super::load::waiting;
use super::{market, pattern};
use crate::args::Replaced;
use crate::exit::Failure;

/// Lets the pods that ask for one GPU model ask for another. Those that run are made anew. Returns their number.
///
/// # Errors
///
/// No pod asks for the model by the label, or nothing with the other model may be bought.
pub fn replace(snapshot: &mut Snapshot, models: &Replaced) -> Result<usize, Failure> {
    check_sold(snapshot, models)?;
    let Replaced { from, to } = models;
    let mut changed: Vec<(PodKey, PodSpec)> = Vec::new();
    let mut asked: BTreeSet<String> = BTreeSet::new();
    // A DaemonSet chooses its nodes by the model, and nothing is bought for it.
    let pods = snapshot.pods.values();
    for pod in pods.filter(|pod| pod.role == PodRole::Workload && pod.phase != PodPhase::Finished) {
        asked.extend(asks(&pod.spec));
        let mut spec = PodSpec::clone(&pod.spec);
        if in_spec(&mut spec, from, to) {
            changed.push((pod.key.clone(), spec));
        }
    }
    if changed.is_empty() {
        return Err(unasked(models, &asked));
    }
    let pods = changed.len();
    let phase = waiting(snapshot, "another GPU model");
    for (key, spec) in changed {
        snapshot.pods.change(&key, |pod| {
            pod.spec = spec.into();
            if matches!(pod.phase, PodPhase::Bound { .. }) {
                pod.phase = phase.clone();
                pod.nominated_node = None;
                pod.reserved_for.clear();
            }
        });
    }
    Ok(pods)
}

/// Checks that the model to ask for may be bought.
pub fn check_sold(snapshot: &Snapshot, Replaced { from, to }: &Replaced) -> Result<(), Failure> {
    let models = market::models(snapshot);
    if models.contains(to.as_str()) {
        return Ok(());
    }
    Err(Failure::bad_input(format!(
        "--gpu {from}={to}: matches nothing, because nothing with {to} may be bought; {}",
        pattern::instead(to, &models)
    )))
}

/// Says that no pod asks for the model, and which they ask for.
pub fn unasked(Replaced { from, to }: &Replaced, asked: &BTreeSet<String>) -> Failure {
    let asked: BTreeSet<&str> = asked.iter().map(String::as_str).collect();
    Failure::bad_input(format!(
        "--gpu {from}={to}: matches nothing, because no pod asks for {from} by the label {}; {}",
        labels::GPU_MODEL,
        pattern::instead(from, &asked)
    ))
}

/// Returns the models that a pod asks for.
fn asks(spec: &PodSpec) -> Vec<String> {
    let mut all: Vec<String> = spec.node_selector.get(labels::GPU_MODEL).cloned().into_iter().collect();
    let terms = spec.node_affinity.iter().flatten();
    for wanted in terms.flat_map(|term| &term.requirements).filter(|wanted| wanted.key == labels::GPU_MODEL) {
        if let Operator::In(values) = &wanted.operator {
            all.extend(values.iter().cloned());
        }
    }
    all
}

/// Replaces a model in what a pod asks for. Returns whether it asked for it.
fn in_spec(spec: &mut PodSpec, from: &str, to: &str) -> bool {
    let mut changed = false;
    if let Some(value) = spec.node_selector.get_mut(labels::GPU_MODEL).filter(|value| value.as_str() == from)
    {
        to.clone_into(value);
        changed = true;
    }
    let terms = spec.node_affinity.iter_mut().flatten();
    for wanted in terms.flat_map(|term| &mut term.requirements) {
        if let Operator::In(values) = &mut wanted.operator
            && wanted.key == labels::GPU_MODEL
            && values.remove(from)
        {
            values.insert(to.to_owned());
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_core::{NodeSelectorTerm, Pod, Requirement};
    use poolwright_terms::CapacityType;

    use super::super::market::tests::world;
    use super::*;

    #[test]
    fn a_pod_of_a_daemonset_does_not_ask_for_a_model() {
        let mut snapshot = world(&[CapacityType::OnDemand]);
        let mut spec = PodSpec::default();
        spec.node_selector.insert(labels::GPU_MODEL.to_owned(), "l4".to_owned());
        for (name, role) in [("agent", PodRole::DaemonSet), ("work", PodRole::Workload)] {
            let pod = Pod { role, ..Pod::waiting(PodKey::new("ml", name), spec.clone()) };
            snapshot.pods.insert(pod.key.clone(), Arc::new(pod));
            let models = Replaced { from: "l4".to_owned(), to: "a10g".to_owned() };
            let replaced = replace(&mut snapshot.clone(), &models).ok();
            assert_eq!(replaced, (role == PodRole::Workload).then_some(1), "{name}");
        }
    }

    #[test]
    fn a_model_is_replaced_in_selectors_and_in_affinity() {
        let label = labels::GPU_MODEL.to_owned();
        let mut spec = PodSpec::default();
        spec.node_selector.insert(label.clone(), "l4".to_owned());
        let operator = Operator::In(["l4", "t4"].map(str::to_owned).into());
        let requirements = vec![Requirement { key: label.clone(), operator }];
        spec.node_affinity = Some(vec![NodeSelectorTerm { requirements }]);
        assert_eq!(asks(&spec), ["l4", "l4", "t4"]);
        assert!(in_spec(&mut spec, "l4", "a10g"));
        assert_eq!(asks(&spec), ["a10g", "a10g", "t4"]);
        assert!(!in_spec(&mut spec, "l4", "a10g"), "it is replaced already");
    }
}
