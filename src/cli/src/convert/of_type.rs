//! Requirements on a fact about instance types for which Poolwright has no label. They become lists of the types of the built-in
//! catalogue, or of their families.

use std::collections::BTreeSet;

use poolwright_api::Operator;
use poolwright_catalog::InstanceType;
use poolwright_provider_contract::karpenter::Report;
use poolwright_terms::labels as ours;

use super::labels::{KARPENTER_CATALOGUE, value_of};
use super::requirements::{KarpenterRequirement, nothing_meets};
use super::scope::and_others;
use super::values::{MOST_VALUES, is_met_by_all, values_in_words};

/// The names of the instance types of the built-in catalogue that meet a requirement, and of the others. Or those of their families.
pub(super) struct Names {
    pub met: Vec<String>,
    pub unmet: Vec<String>,
}

impl Names {
    /// Divides the values of the label `to` by a requirement on the label `key` of Karpenter.
    pub fn by(key: &str, to: &str, operator: Operator, values: &[String]) -> Self {
        Self::among(&KARPENTER_CATALOGUE.kinds, key, to, operator, values)
    }

    /// Does the same for some types of the catalogue.
    fn among<'k>(
        kinds: impl IntoIterator<Item = &'k InstanceType>,
        key: &str,
        to: &str,
        operator: Operator,
        values: &[String],
    ) -> Self {
        let (met, unmet): (Vec<_>, Vec<_>) = kinds
            .into_iter()
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

/// What becomes of a requirement.
pub(super) enum Rewritten {
    /// It is one on another label.
    Needed,
    /// No node needs it, or it is a problem, which is reported.
    Done,
    /// It is a list of names, none of which the other requirements of the pool allow.
    Contradicting,
}

/// Rewrites a requirement as one on the label `to`. `beside` are the types that the other requirements of the pool allow.
pub(super) fn convert(
    wanted: &mut KarpenterRequirement,
    to: &str,
    beside: &[&InstanceType],
    report: &mut Report,
) -> Rewritten {
    let (what, clouds) = (values_in_words(to), &KARPENTER_CATALOGUE.clouds);
    let all = Names::by(&wanted.key, to, wanted.operator, &wanted.values);
    if all.met.is_empty() {
        nothing_meets(wanted.path.clone(), report);
        return Rewritten::Done;
    }
    if all.unmet.is_empty() {
        report.changed(
            &wanted.path,
            format!(
                "Left out: all {what} of {clouds} in the built-in catalogue meet it. If the node class sells others, name those that you \
                 want with `{to}`."
            ),
        );
        (wanted.operator, wanted.values) = (Operator::Exists, Vec::new());
        return if wanted.min_values.is_some() { Rewritten::Needed } else { Rewritten::Done };
    }
    let beside = beside.iter().copied();
    let near = Names::among(beside, &wanted.key, to, wanted.operator, &wanted.values);
    let is_contradicting = near.met.is_empty();
    let others = and_others(!is_contradicting && near.met.len() < all.met.len());
    // The other requirements exclude the names that only the whole catalogue has.
    let met = if is_contradicting { all.met } else { near.met };
    let unmet = if is_contradicting || all.unmet.len() <= MOST_VALUES { all.unmet } else { near.unmet };
    let excludes = matches!(wanted.operator, Operator::NotIn | Operator::DoesNotExist);
    let can_exclude = (1..=MOST_VALUES).contains(&unmet.len());
    if met.len() <= MOST_VALUES && !(excludes && can_exclude) {
        report.changed(
            &wanted.path,
            format!(
                "Becomes `{to}` with the {what} of {clouds} that it allows in the built-in catalogue{others}: {}. The pool buys no others \
                 until you add them.",
                met.len()
            ),
        );
        (wanted.operator, wanted.values) = (Operator::In, met);
        return if is_contradicting { Rewritten::Contradicting } else { Rewritten::Needed };
    }
    if unmet.is_empty() {
        report.changed(
            &wanted.path,
            format!(
                "Left out: all {what} of {clouds} that the pool's other requirements allow in the built-in catalogue meet it. If the node \
                 class sells others, name those that you want with `{to}`."
            ),
        );
        (wanted.operator, wanted.values) = (Operator::Exists, Vec::new());
        return if wanted.min_values.is_some() { Rewritten::Needed } else { Rewritten::Done };
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
        // Types that the catalogue lacks may meet it, whatever the others allow.
        (wanted.operator, wanted.values) = (Operator::NotIn, unmet);
        return Rewritten::Needed;
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
    Rewritten::Done
}
