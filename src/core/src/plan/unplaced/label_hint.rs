//! The change that helps with a label that no node of a pool would have.

use std::collections::BTreeSet;

use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{domains, labels};

use crate::model::{Operator, PoolInWords, Requirement};
use crate::rules;

/// Returns whether the values of Poolwright's label differ from those of the label that it replaces.
pub(super) fn values_differ(ours: &str) -> bool {
    [labels::INSTANCE_CPU, labels::INSTANCE_MEMORY].contains(&ours)
}

/// Names `convert` if it translates the label.
pub(super) fn translator(key: &str) -> &'static str {
    if domains::is_converted(key) { "; `poolwright convert` translates it" } else { "" }
}

/// Says how the values of Poolwright's label differ from those of the label `key` that it replaces, if they do, and whether
/// `convert` translates them.
pub(super) fn value_of(key: &str, ours: &str) -> String {
    let how =
        if values_differ(ours) { " with another value, because it counts what pods may use" } else { "" };
    format!("{how}{}", translator(key))
}

/// Returns the value of a label of ours that has the meaning of another program's value: `a10g` for `NVIDIA-A10G`. Other programs
/// write the same words and more.
pub(super) fn same_value<'v>(theirs: &str, ours: &'v BTreeSet<String>) -> Option<&'v str> {
    let words = |value: &str| -> BTreeSet<String> {
        value.to_lowercase().split(['-', '_']).map(str::to_owned).collect()
    };
    let all = words(theirs);
    let meant = ours.iter().filter(|value| words(value).is_subset(&all));
    meant.max_by_key(|value| value.len()).map(String::as_str)
}

/// Returns a wanted value of a label, and the known value that differs from it only in case or punctuation: `H100` and `h100`.
pub(super) fn near_value<'w, 'k>(
    wanted: &'w Requirement,
    known: &'k BTreeSet<String>,
) -> Option<(&'w str, &'k str)> {
    let Operator::In(values) = &wanted.operator else { return None };
    // A value that is known is what the user means.
    values.iter().filter(|value| !known.contains(*value)).find_map(|value| {
        let near = known.iter().find(|known| is_near(value, known))?;
        Some((value.as_str(), near.as_str()))
    })
}

/// Returns whether two values differ at most in case and punctuation.
pub(crate) fn is_near(one: &str, other: &str) -> bool {
    letters(one).eq(letters(other)) && letters(one).next().is_some()
}

fn letters(value: &str) -> impl Iterator<Item = char> {
    value.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase())
}

/// Returns Poolwright's label with the meaning of a wanted one.
pub(super) fn ours_of(wanted: &Requirement) -> Option<&'static str> {
    let names_gpus = match &wanted.operator {
        Operator::In(values) => {
            !values.is_empty() && values.iter().all(|value| domains::names_gpu_model(&wanted.key, value))
        }
        _ => false,
    };
    domains::counterpart(&wanted.key).or_else(|| names_gpus.then_some(labels::GPU_MODEL))
}

/// Says who decides about a label that has the meaning of one of Poolwright's.
pub(super) fn decided_by(key: &str) -> &'static str {
    if domains::is_set_by_others(key) {
        "another program sets it, on its own nodes"
    } else {
        "the instance type decides the GPU model"
    }
}

/// The change for a label of the user's own: the template of the pool gets it.
pub(super) const ADD_IT: &str = "add it";

/// Why no node has the label of the control plane.
pub(super) const NO_CONTROL_PLANE: &str = "Poolwright buys no control-plane nodes";

/// Returns a change that helps with a label that no node of a pool would have, whatever the pool buys.
pub(super) fn hint(key: &str, pool: PoolInWords<'_>) -> String {
    if labels::DECIDED_BY_OFFERING.contains(&key) {
        let of = if pool.is_catalogue() { "" } else { " of its node class" };
        return format!("no offering{of} that fits has it");
    }
    if key == NODEPOOL_LABEL {
        let which =
            if pool.is_catalogue() { "write a NodePool of that name" } else { "name a NodePool that exists" };
        return which.to_owned();
    }
    if domains::is_control_plane(key) {
        return NO_CONTROL_PLANE.to_owned();
    }
    // Such a label on a pool's template would claim what another program decides.
    if domains::is_set_by_others(key) {
        return "another program or a cloud sets it, and plans do not know its value; select by the labels of docs/nodepool.md instead"
            .to_owned();
    }
    ADD_IT.to_owned()
}

/// Returns whether a label of a pool's template is the change that helps with a label.
pub(crate) fn is_of_template(key: &str) -> bool {
    ![labels::HOSTNAME, rules::NODE_NAME_FIELD].contains(&key) && hint(key, PoolInWords::Catalogue) == ADD_IT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_of_another_program_is_translated_if_one_of_ours_has_its_words() {
        let ours: BTreeSet<String> =
            ["a100", "a100-80gb", "a10g", "on-demand", "spot"].map(str::to_owned).into();
        for (theirs, meant) in [
            ("NVIDIA-A10G", Some("a10g")),
            ("NVIDIA-A100-SXM4-80GB", Some("a100-80gb")),
            ("nvidia-tesla-a100", Some("a100")),
            ("ON_DEMAND", Some("on-demand")),
            ("NVIDIA-A10", None),
            ("standard", None),
        ] {
            assert_eq!(same_value(theirs, &ours), meant, "{theirs}");
        }
    }

    #[test]
    fn a_value_with_another_case_or_dash_is_near_and_another_value_is_not() {
        for (one, other) in [("H100", "h100"), ("on_demand", "on-demand"), ("P5.48xlarge", "p5.48xlarge")] {
            assert!(is_near(one, other), "{one} {other}");
        }
        let wanted = |value: &str| Requirement {
            key: labels::GPU_MODEL.to_owned(),
            operator: Operator::In([value.to_owned()].into()),
        };
        let known = ["h100".to_owned()].into();
        assert_eq!(near_value(&wanted("H100"), &known), Some(("H100", "h100")));
        assert_eq!(near_value(&wanted("h100"), &known), None, "nobody means another value than he wrote");
        for (one, other) in [("h100", "h200"), ("a100", "a100-80gb"), ("", ""), ("-", "")] {
            assert!(!is_near(one, other), "{one} {other}");
        }
    }

    #[test]
    fn labels_that_a_cloud_or_the_planner_decides_are_never_advised_for_a_template() {
        assert!(is_of_template("team"));
        for key in [
            "topology.k8s.aws/zone-id",
            "nvidia.com/mig.strategy",
            "node-role.kubernetes.io/control-plane",
            labels::ZONE,
            NODEPOOL_LABEL,
            labels::HOSTNAME,
        ] {
            assert!(!is_of_template(key), "{key}");
        }
    }

    #[test]
    fn the_command_that_translates_labels_is_named_for_those_that_it_translates() {
        for (key, is_named) in [
            ("karpenter.sh/capacity-type", true),
            ("karpenter.k8s.aws/instance-memory", true),
            ("karpenter.k8s.aws/instance-gpu-name", true),
            ("karpenter.k8s.gcp/instance-memory", false),
            ("eks.amazonaws.com/nodegroup", false),
            ("cloud.google.com/gke-accelerator", false),
        ] {
            let said = domains::counterpart(key).map_or_else(String::new, |ours| value_of(key, ours));
            assert_eq!(said.contains("`poolwright convert` translates it"), is_named, "{key}: {said}");
        }
    }
}
