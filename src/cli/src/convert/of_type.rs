//! Requirements on a fact about instance types for which Poolwright has no label. They become lists of the types of the built-in
//! catalogue, or of their families.

use std::collections::BTreeSet;

use poolwright_api::Operator;
use poolwright_catalog::InstanceType;
use poolwright_provider_contract::karpenter::Report;
use poolwright_terms::labels as ours;

use super::labels::{KARPENTER_CATALOGUE, value_of};
use super::requirements::{KarpenterRequirement, nothing_meets};
use super::values::{MOST_VALUES, is_met_by_all, values_in_words};

/// The names of the instance types of the built-in catalogue that meet a requirement, and of the others. Or those of their families.
pub(super) struct Names {
    pub met: Vec<String>,
    pub unmet: Vec<String>,
}

impl Names {
    /// Divides the values of the label `to` by a requirement on the label `key` of Karpenter.
    pub fn by(key: &str, to: &str, operator: Operator, values: &[String]) -> Self {
        let (met, unmet): (Vec<_>, Vec<_>) = KARPENTER_CATALOGUE
            .kinds
            .iter()
            .partition(|kind| is_met_by_all(operator, values, value_of(key, kind).as_deref()));
        let name = |kind: &InstanceType| {
            if to == ours::INSTANCE_FAMILY { kind.family().to_owned() } else { kind.name.to_string() }
        };
        // Each family once.
        let names = |kinds: Vec<&InstanceType>| -> Vec<String> {
            kinds.into_iter().map(name).collect::<BTreeSet<_>>().into_iter().collect()
        };
        Self { met: names(met), unmet: names(unmet) }
    }
}

/// Rewrites a requirement as one on the label `to`. Returns whether one is needed.
pub(super) fn convert(wanted: &mut KarpenterRequirement, to: &str, report: &mut Report) -> bool {
    let (what, clouds) = (values_in_words(to), &KARPENTER_CATALOGUE.clouds);
    let Names { met, unmet } = Names::by(&wanted.key, to, wanted.operator, &wanted.values);
    if met.is_empty() {
        nothing_meets(wanted.path.clone(), report);
        return false;
    }
    if unmet.is_empty() {
        report.changed(
            &wanted.path,
            format!(
                "Left out: all {what} of {clouds} in the built-in catalogue meet it. If the node class sells others, name those that you \
                 want with `{to}`."
            ),
        );
        (wanted.operator, wanted.values) = (Operator::Exists, Vec::new());
        return wanted.min_values.is_some();
    }
    let excludes = matches!(wanted.operator, Operator::NotIn | Operator::DoesNotExist);
    let can_exclude = unmet.len() <= MOST_VALUES;
    if met.len() <= MOST_VALUES && !(excludes && can_exclude) {
        report.changed(
            &wanted.path,
            format!(
                "Becomes `{to}` with the {what} of {clouds} that it allows in the built-in catalogue: {}. The pool buys no others until \
                 you add them.",
                met.len()
            ),
        );
        (wanted.operator, wanted.values) = (Operator::In, met);
        return true;
    }
    if can_exclude {
        report.changed(
            &wanted.path,
            format!(
                "Becomes `{to}` without the {what} of {clouds} that it excludes in the built-in catalogue: {}. It excludes no others \
                 until you add them.",
                unmet.len()
            ),
        );
        (wanted.operator, wanted.values) = (Operator::NotIn, unmet);
        return true;
    }
    report.problem(
        &wanted.path,
        format!(
            "Poolwright has no label for `{}`, and a requirement cannot list the {} {what} that meet it, or the {} others",
            wanted.key,
            met.len(),
            unmet.len()
        ),
        format!("allow fewer types, or choose them with `{}` instead", ours::INSTANCE_FAMILY),
    );
    false
}
