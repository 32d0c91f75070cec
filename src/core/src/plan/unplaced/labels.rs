//! Requirements of unplaced pods on labels: the one that no offering of a pool meets, and a change that helps.

use std::collections::BTreeSet;

use poolwright_catalog::ResourceName;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{domains, labels};

use crate::model::{Operator, PodSpec, PoolInWords, Requirement};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::{UnplacedInputs, list};
use crate::plan::unplaced::label_hint::{ADD_IT, hint, same_value, translator, value_of, values_differ};
use crate::rules::labels::Labels;
use crate::rules::{self, Rejection};
use crate::supply::offerings::{PoolOffering, Supply};
use crate::supply::wider::WiderType;

/// Returns the message if the pods' own rules match, but the affinity that their scheduler adds does not.
pub(crate) fn enforced_miss(spec: &PodSpec, at: usize, supply: &Supply<'_>) -> Option<String> {
    let enforced = spec.enforced.as_deref()?;
    let pool = &supply.pools[at];
    let own =
        |offer: &&PoolOffering| rules::check_own_labels(spec, &supply.labels(at, offer.offering)).is_ok();
    let mut rejections = pool
        .offers
        .iter()
        .filter(own)
        .map(|offer| rules::check_enforced(Some(enforced), &supply.labels(at, offer.offering)).err());
    let first = rejections.next()??;
    if rejections.any(|rejection| rejection.is_none()) {
        return None;
    }
    let (named, source) = (pool.pool.in_words(), &enforced.source);
    let Rejection::Enforced { requirement: Some(wanted), .. } = first else {
        return Some(format!(
            "the scheduler's addedAffinity ({source}) matches no node at all; correct it there"
        ));
    };
    let advice = if named.is_catalogue() {
        "write a NodePool whose spec.template.metadata.labels has the label, if its nodes will have it"
    } else {
        "widen the pool's requirements, or add the label to spec.template.metadata.labels if its nodes will have it"
    };
    Some(format!(
        "the scheduler's addedAffinity ({source}) allows only nodes with `{wanted}`, but no offering of {named} that it may use has that; {advice}"
    ))
}

/// The requirements of a pod on one label.
pub(crate) struct Want<'a> {
    pub key: &'a str,
    words: String,
    pub requirement: Requirement,
}

impl Want<'_> {
    fn in_words(&self) -> String {
        format!("`{}` ({})", self.key, self.words)
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
fn met(want: &Want<'_>, at: usize, supply: &Supply<'_>) -> bool {
    supply.pools[at]
        .offers
        .iter()
        .any(|offer| rules::matches(&want.requirement, &supply.labels(at, offer.offering)))
}

/// Returns the first requirement of the alternative that comes closest, if no offering of the pool meets it.
fn first_unmet<'p>(alternative: &'p [Want<'p>], at: usize, supply: &Supply<'_>) -> Option<&'p Want<'p>> {
    alternative.iter().find(|want| !met(want, at, supply))
}

/// Returns the number of GPUs of a model that the pods ask for and the pool lacks, with the requirement.
fn lacking_model<'p>(
    spec: &PodSpec,
    alternative: &'p [Want<'p>],
    at: usize,
    supply: &Supply<'_>,
) -> Option<(u64, &'p Want<'p>)> {
    let want = first_unmet(alternative, at, supply).filter(|want| want.key == labels::GPU_MODEL)?;
    let gpus = spec.requests.get(ResourceName::NVIDIA_GPU) + u64::from(spec.gpu_share.is_some());
    (gpus > 0).then_some((gpus, want))
}

/// Describes the requirement on a label that keeps the pods off the pool, and a change that helps. `wider` is an instance type that
/// would hold them if the pool's requirements allowed it. Returns the sentence, and whether it speaks of their resources too.
pub(crate) fn labels_miss(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    wider: Option<WiderType<'_>>,
) -> (String, bool) {
    let (spec, supply) = (class.spec, inputs.supply);
    let named = supply.pools[at].pool.in_words();
    let mut alternatives = wants(spec);
    alternatives.sort_by_key(|wants| wants.iter().filter(|want| !met(want, at, supply)).count());
    let Some(first) = alternatives.first() else {
        let words = "has a required node affinity without terms, which matches no node; remove it";
        return (words.to_owned(), false);
    };
    let widen = wider.map_or_else(String::new, |kind| {
        format!("; widen the pool's requirements so that it may buy {kind}")
    });
    let Some(want) = first_unmet(first, at, supply) else {
        return (format!("{}{widen}", none_has(named, first)), wider.is_some());
    };
    if want.key == rules::NODE_NAME_FIELD || want.key == labels::HOSTNAME {
        let words = format!(
            "selects a node by its name ({}), but nobody knows the name of a new node in advance; select nodes by another label",
            want.words
        );
        return (words, false);
    }
    let has = values(want.key, at, supply);
    if let Some((gpus, want)) = lacking_model(spec, first, at, supply) {
        let allowed = if has.is_empty() { "no GPUs".to_owned() } else { format!("only {}", list(has)) };
        let origin = inputs.origin(&ResourceName::new(ResourceName::NVIDIA_GPU));
        let words =
            format!("needs {gpus} x {}{origin} in one node; {named} allows {allowed}{widen}", want.words);
        return (words, true);
    }
    // The other requirements that nothing in the pool meets: a change for the first alone would not help.
    let others = first.iter().filter(|other| other.key != want.key && !met(other, at, supply));
    if has.is_empty() {
        let hint_of = |want: &Want<'_>| match wider {
            Some(kind) => format!("widen the pool's requirements so that it may buy {kind}"),
            None => ours_instead(&want.requirement, at, supply).map_or_else(
                || hint(want.key, named),
                |(ours, note)| {
                    format!("another program sets it, on its own nodes; select by {ours} instead{note}")
                },
            ),
        };
        let hint = hint_of(want);
        let (alike, others): (Vec<&Want<'_>>, Vec<&Want<'_>>) =
            others.partition(|other| hint_of(other) == hint && values(other.key, at, supply).is_empty());
        let labels: Vec<String> = [want].into_iter().chain(alike).map(Want::in_words).collect();
        let (label, it) = if labels.len() == 1 { ("label", "it") } else { ("labels", "them") };
        let change = if hint != ADD_IT {
            format!("nodes of {named} do not have {it}: {hint}")
        } else if named.is_catalogue() {
            format!("no NodePool is given; write one whose spec.template.metadata.labels has {it}")
        } else {
            format!(
                "nodes of {named} do not have {it}: add {it} to spec.template.metadata.labels if its nodes will have {it}"
            )
        };
        let words = format!("wants {label} {}; {change}{}", labels.join(", "), too(named, &others));
        return (words, wider.is_some());
    }
    let others: Vec<&Want<'_>> = others.collect();
    let letters = |value: &str| -> String {
        value.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
    };
    let meant = has.iter().find(|value| letters(value) == letters(&want.words));
    let meant = meant.map_or_else(String::new, |value| format!("; did you mean `{value}`?"));
    let numbers = has.iter().all(|value| value.parse::<u64>().is_ok());
    let select = if numbers || !meant.is_empty() || !widen.is_empty() { "" } else { "; select one of these" };
    // The flags of the plan may leave out what the catalogue has.
    let only =
        if named.is_catalogue() { "this plan may buy only".to_owned() } else { format!("{named} has only") };
    let words = format!(
        "wants `{}` {}; {only} {}{select}{meant}{widen}{}",
        want.key,
        want.words,
        in_order(has),
        too(named, &others)
    );
    (words, wider.is_some())
}

/// Returns the label of ours to select by instead of one that another program sets, with its value where that can be translated, and a
/// note about the values otherwise; `None` if no label of ours has the meaning.
pub(crate) fn ours_instead(wanted: &Requirement, at: usize, supply: &Supply<'_>) -> Option<(String, String)> {
    let ours = domains::counterpart(&wanted.key)?;
    let has = values(ours, at, supply);
    let theirs = match &wanted.operator {
        Operator::In(theirs) if !values_differ(ours) && !has.is_empty() => theirs,
        _ => return Some((format!("`{ours}`"), value_of(&wanted.key, ours))),
    };
    // The names of pools mean what their users decided, so only the same name has the same meaning.
    let translated = |value: &String| {
        if ours == NODEPOOL_LABEL { has.get(value).map(String::as_str) } else { same_value(value, &has) }
    };
    let same: BTreeSet<&str> = theirs.iter().filter_map(translated).collect();
    Some(match same.iter().collect::<Vec<_>>().as_slice() {
        [] => {
            let named = supply.pools[at].pool.in_words();
            (
                format!("`{ours}`"),
                format!("; nodes of {named} have {}{}", list(&has), translator(&wanted.key)),
            )
        }
        [value] => (format!("`{ours}={value}`"), translator(&wanted.key).to_owned()),
        _ => (format!("`{ours}` ({})", list(&same)), translator(&wanted.key).to_owned()),
    })
}

/// Returns the values that the offerings of a pool have for a label.
fn values(key: &str, at: usize, supply: &Supply<'_>) -> BTreeSet<String> {
    if key == NODEPOOL_LABEL && supply.pools[at].pool.is_implicit {
        // The user knows no such pool.
        return BTreeSet::new();
    }
    let of = |offer: &PoolOffering| supply.labels(at, offer.offering).label(key).map(str::to_owned);
    supply.pools[at].offers.iter().filter_map(of).collect()
}

/// Names further requirements that the pool does not meet.
fn too(pool: PoolInWords<'_>, others: &[&Want<'_>]) -> String {
    let others: Vec<String> = others.iter().map(|want| want.in_words()).collect();
    if others.is_empty() {
        return String::new();
    }
    let who = if pool.is_catalogue() { "the catalogue" } else { "the pool" };
    format!("; {who} does not meet {} either", others.join(", "))
}

/// Lists values, numbers by size and with a change that helps.
fn in_order(values: BTreeSet<String>) -> String {
    let mut numbers: Vec<u64> = values.iter().filter_map(|value| value.parse().ok()).collect();
    if numbers.len() < values.len() {
        return list(values);
    }
    numbers.sort_unstable();
    let numbers = list(numbers.iter().map(ToString::to_string));
    format!("{numbers}; ask for one of them, or for a range with Gt and Lt in a node affinity")
}

/// Returns the message for a pool that has offerings for each requirement, but no offering for all of them.
fn none_has(pool: PoolInWords<'_>, wanted: &[Want<'_>]) -> String {
    if wanted.is_empty() {
        // The pod has no requirements itself, so rules about other pods are the reason.
        let buy = if pool.is_catalogue() { "" } else { "let the pool buy there, or " };
        return format!(
            "its rules about other pods leave it places, but no offering of {pool} that it may use is in one of them; {buy}change those rules"
        );
    }
    let all: Vec<String> = wanted.iter().map(|want| format!("`{} {}`", want.key, want.words)).collect();
    format!("no single offering of {pool} has all of {}; relax one of them", all.join(", "))
}

/// Returns the change of a pod's rule on a label, or of the pool, that would make the rule pass at the pool.
pub(crate) fn label_change(key: &str, pool: PoolInWords<'_>) -> String {
    if labels::DECIDED_BY_OFFERING.contains(&key) {
        return format!("relax the rule on `{key}`");
    }
    if key == NODEPOOL_LABEL {
        return match pool {
            PoolInWords::Named(name) => format!("select `{key}={name}`"),
            PoolInWords::Catalogue => format!("write that NodePool, or drop the rule on `{key}`"),
        };
    }
    if key == rules::NODE_NAME_FIELD || key == labels::HOSTNAME {
        return format!("select nodes by another label than `{key}`, because a new node has another name");
    }
    if domains::is_karpenters(key) || domains::is_foreign(key) {
        return format!("select by the labels of docs/nodepool.md instead of `{key}`");
    }
    match pool {
        PoolInWords::Named(name) => format!(
            "drop the rule on `{key}`, or add the label to spec.template.metadata.labels of pool {name} if its nodes will have it"
        ),
        PoolInWords::Catalogue => format!(
            "drop the rule on `{key}`, or write a NodePool whose spec.template.metadata.labels has it"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PoolName;

    #[test]
    fn a_pod_that_asks_for_no_label_is_not_told_to_relax_one() {
        let name = PoolName("gpu".to_owned());
        let nothing = none_has(PoolInWords::Named(&name), &[]);
        assert!(nothing.contains("rules about other pods") && !nothing.contains("has all of"), "{nothing}");
        assert!(nothing.contains("let the pool buy there"), "{nothing}");
        let spec =
            PodSpec { node_selector: [("team".to_owned(), "ml".to_owned())].into(), ..PodSpec::default() };
        let one = none_has(PoolInWords::Named(&name), &wants(&spec)[0]);
        assert!(one.contains("has all of `team ml`"), "{one}");
    }

    #[test]
    fn nobody_is_told_to_change_a_pool_that_nobody_wrote() {
        let nothing = none_has(PoolInWords::Catalogue, &[]);
        assert!(
            nothing.contains("no offering of the catalogue") && !nothing.contains("the pool"),
            "{nothing}"
        );
        let change = label_change("team", PoolInWords::Catalogue);
        assert_eq!(
            change,
            "drop the rule on `team`, or write a NodePool whose spec.template.metadata.labels has it"
        );
    }
}
