//! What pods want of the labels of their nodes, and whether a pool has it.

use crate::model::{Operator, PodSpec, Requirement};
use crate::plan::unplaced::inputs::list;
use crate::rules;
use crate::supply::offerings::Supply;

/// The requirements of a pod on one label.
pub(crate) struct Want<'a> {
    pub key: &'a str,
    pub(super) words: String,
    pub requirement: Requirement,
}

impl Want<'_> {
    /// Returns the label and what is wanted of it.
    pub fn in_words(&self) -> String {
        format!("`{}` ({})", self.key, self.words)
    }

    pub(super) fn quoted(&self) -> String {
        format!("`{} {}`", self.key, self.words)
    }
}

/// Returns the alternatives that the pod's node selector and node affinity leave, each a list of requirements.
pub(crate) fn wants(spec: &PodSpec) -> Vec<Vec<Want<'_>>> {
    let selected = |key: &str, value: &String| Requirement {
        key: key.to_owned(),
        operator: Operator::In([value.clone()].into()),
    };
    let selector = || {
        spec.node_selector.iter().map(|(key, value)| Want {
            key: key.as_str(),
            words: value.clone(),
            requirement: selected(key, value),
        })
    };
    match &spec.node_affinity {
        None => vec![selector().collect()],
        Some(terms) => terms
            .iter()
            .filter(|term| !term.requirements.is_empty())
            .map(|term| {
                let own = term.requirements.iter().map(|requirement| Want {
                    key: &requirement.key,
                    words: match &requirement.operator {
                        Operator::In(values) => list(values.iter().cloned()),
                        operator => operator.to_string(),
                    },
                    requirement: requirement.clone(),
                });
                selector().chain(own).collect()
            })
            .collect(),
    }
}

/// Returns the number of requirements on labels that no offering of the pool meets, of the alternative with the fewest.
pub(crate) fn unmet(spec: &PodSpec, at: usize, supply: &Supply<'_>) -> usize {
    let unmet = |wants: &Vec<Want<'_>>| wants.iter().filter(|want| !met(want, at, supply)).count();
    wants(spec).iter().map(unmet).min().unwrap_or(1)
}

/// Returns whether an offering of the pool meets the requirement.
pub(super) fn met(want: &Want<'_>, at: usize, supply: &Supply<'_>) -> bool {
    supply.pools[at]
        .offers
        .iter()
        .any(|offer| rules::matches(&want.requirement, &supply.labels(at, offer.offering)))
}
