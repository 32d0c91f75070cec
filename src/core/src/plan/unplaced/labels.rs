//! Requirements of unplaced pods on labels: the one that no offering of a pool meets, and a change that helps.

use std::collections::BTreeSet;

use poolwright_catalog::ResourceName;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::{CapacityType, domains, labels};

use crate::model::{Operator, PodSpec, PoolInWords, Requirement};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::{UnplacedInputs, list};
use crate::plan::unplaced::label_hint::{
    ADD_IT, NO_CONTROL_PLANE, decided_by, hint, is_of_template, near_value, ours_of, same_value, translator,
    value_of, values_differ,
};
use crate::plan::unplaced::relaxed::Relaxed;
use crate::plan::unplaced::wants::{Want, met, wants};
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
    let advice = match (is_of_template(&wanted.key), named.is_catalogue()) {
        (true, true) => {
            "write a NodePool whose spec.template.metadata.labels has the label, if its nodes will have it"
        }
        (true, false) => {
            "widen the pool's requirements, or add the label to spec.template.metadata.labels if its nodes will have it"
        }
        (false, false) if labels::DECIDED_BY_OFFERING.contains(&wanted.key.as_str()) => {
            match supply.class_without(at, |labels| rules::matches(&wanted, labels)) {
                Some(_) => "use a node class with such offerings, or correct it there",
                None => "widen the pool's requirements, or correct it there",
            }
        }
        (false, _) => "correct it there",
    };
    Some(format!(
        "the scheduler's addedAffinity ({source}) allows only nodes with `{wanted}`, but no offering of {named} that it may use has that; {advice}"
    ))
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
/// would hold them if the pool's requirements allowed it, and `relaxed` what to relax if no single offering meets all requirements.
/// Returns the sentence, and whether it speaks of their resources too.
pub(crate) fn labels_miss(
    inputs: &UnplacedInputs<'_, '_>,
    class: &PodClass<'_>,
    at: usize,
    wider: Option<WiderType<'_>>,
    relaxed: Option<&Relaxed>,
) -> (String, bool) {
    let (spec, supply) = (class.spec, inputs.supply);
    let named = supply.pools[at].pool.in_words();
    let mut alternatives = wants(spec);
    alternatives.sort_by_key(|wants| wants.iter().filter(|want| !met(want, at, supply)).count());
    let Some(first) = alternatives.first() else {
        let words =
            "has a required node affinity with nothing but empty terms, which matches no node; remove it";
        return (words.to_owned(), false);
    };
    let widen = wider.map_or_else(String::new, |kind| {
        format!("; widen the pool's requirements so that it may buy {kind}")
    });
    let Some(want) = first_unmet(first, at, supply) else {
        let alternatives = relaxed.map_or(&[][..], |relaxed| relaxed.alternatives.as_slice());
        let is_beyond = relaxed.is_some_and(|relaxed| !relaxed.limits.is_empty());
        // Of a change that helps alone and one that needs a higher limit too, only the first is said.
        return match wider {
            Some(_) if is_beyond => (format!("{}{widen}", none_has_all(named, first)), true),
            Some(kind) if !alternatives.is_empty() && !inputs.beyond_of(at, kind, class).is_empty() => {
                (none_has(named, first, alternatives), false)
            }
            _ => (format!("{}{widen}", none_has(named, first, alternatives)), wider.is_some()),
        };
    };
    if want.key == rules::NODE_NAME_FIELD || want.key == labels::HOSTNAME {
        let words = format!(
            "selects a node by its name ({}), but nobody knows the name of a new node in advance; select nodes by another label",
            want.words
        );
        return (words, false);
    }
    let has = values(want.key, at, supply);
    // The pool may lack the near value, so the whole class is looked through.
    let sold = if has.is_empty() { BTreeSet::new() } else { sold_values(want.key, at, supply) };
    let meant = near_value(&want.requirement, &has).or_else(|| near_value(&want.requirement, &sold));
    let meant = meant.map_or_else(String::new, |(_, near)| format!("; did you mean `{near}`?"));
    if let Some((gpus, want)) = lacking_model(spec, first, at, supply) {
        let allowed = if has.is_empty() { "no GPUs".to_owned() } else { format!("only {}", list(has)) };
        let origin = inputs.origin(&ResourceName::new(ResourceName::NVIDIA_GPU));
        let words = format!(
            "needs {gpus} x {}{origin} in one node; {named} allows {allowed}{meant}{widen}",
            want.words
        );
        return (words, true);
    }
    // The other requirements that nothing in the pool meets: a change for the first alone would not help.
    let others = first.iter().filter(|other| other.key != want.key && !met(other, at, supply));
    if has.is_empty() {
        let hint_of = |want: &Want<'_>| match wider {
            Some(kind) => format!("widen the pool's requirements so that it may buy {kind}"),
            None => ours_instead(&want.requirement, at, supply).map_or_else(
                || hint(want.key, named),
                |(ours, note)| format!("{}; select by {ours} instead{note}", decided_by(want.key)),
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
    // The node class decides about zones and architectures by its subnets and images.
    if meant.is_empty()
        && [labels::ZONE, labels::ARCH].contains(&want.key)
        && let Some(node_class) = supply.class_without(at, |labels| rules::matches(&want.requirement, labels))
    {
        let of_class = sold_values(want.key, at, supply);
        let select = if of_class == has { "one of these" } else { "another" };
        let words = format!(
            "wants `{}` {}; {node_class} of {named} has only {}; select {select}, or use a node class that has it{}",
            want.key,
            want.words,
            list(&of_class),
            too(named, &others)
        );
        return (words, false);
    }
    let numbers = has.iter().all(|value| value.parse::<u64>().is_ok());
    let select = if numbers || !meant.is_empty() || !widen.is_empty() { "" } else { "; select one of these" };
    let words = format!(
        "wants `{}` {}; {} {}{select}{meant}{widen}{}",
        want.key,
        want.words,
        only(named),
        in_order(has),
        too(named, &others)
    );
    (words, wider.is_some())
}

/// Returns the label of ours to select by instead of one that another program sets, with its value where that can be translated, and a
/// note about the values otherwise; `None` if no label of ours has the meaning.
fn ours_instead(wanted: &Requirement, at: usize, supply: &Supply<'_>) -> Option<(String, String)> {
    let ours = ours_of(wanted)?;
    let has = values(ours, at, supply);
    let named = supply.pools[at].pool.in_words();
    let theirs = match &wanted.operator {
        Operator::In(theirs) if !values_differ(ours) && !has.is_empty() => theirs,
        _ => return Some((format!("`{ours}`"), value_of(&wanted.key, ours))),
    };
    // The names of pools mean what their users decided, so only the same name has the same meaning.
    let translated = |value: &String| match ours {
        NODEPOOL_LABEL => has.get(value).map(String::as_str),
        labels::CAPACITY_TYPE => domains::capacity_type(&wanted.key, value).map(CapacityType::as_str),
        _ => same_value(value, &has),
    };
    let same: BTreeSet<&str> = theirs.iter().filter_map(translated).collect();
    // All capacity types are known, whether or not the pool may buy them.
    let lacks = !same.is_empty() && !same.iter().any(|value| has.contains(*value));
    let lacks = if lacks { format!("; {} {}", only(named), list(&has)) } else { String::new() };
    let note = format!("{lacks}{}", translator(&wanted.key));
    Some(match same.iter().collect::<Vec<_>>().as_slice() {
        [] if named.is_catalogue() => {
            (format!("`{ours}`"), format!("; {} {}{note}", only(named), list(&has)))
        }
        [] => (format!("`{ours}`"), format!("; nodes of {named} have {}{note}", list(&has))),
        [value] => (format!("`{ours}={value}`"), note),
        _ => (format!("`{ours}` ({})", list(&same)), note),
    })
}

/// Begins the list of what a pool may buy. The flags of a plan may leave out what the catalogue has.
fn only(pool: PoolInWords<'_>) -> String {
    if pool.is_catalogue() { "this plan may buy only".to_owned() } else { format!("{pool} has only") }
}

/// Returns the rule on a label of ours that has the meaning of one on a label of another program; `None` if its values cannot be
/// translated.
pub(crate) fn translated(wanted: &Requirement, at: usize, supply: &Supply<'_>) -> Option<Requirement> {
    let ours = domains::counterpart(&wanted.key)?;
    let Operator::In(theirs) = &wanted.operator else { return None };
    if values_differ(ours) || ours == NODEPOOL_LABEL {
        return None;
    }
    let has = values(ours, at, supply);
    let same: BTreeSet<String> =
        theirs.iter().filter_map(|value| same_value(value, &has)).map(str::to_owned).collect();
    (!same.is_empty()).then(|| Requirement { key: ours.to_owned(), operator: Operator::In(same) })
}

/// Returns the values that the offerings of a pool have for a label.
pub(super) fn values(key: &str, at: usize, supply: &Supply<'_>) -> BTreeSet<String> {
    if key == NODEPOOL_LABEL && supply.pools[at].pool.is_implicit {
        // The user knows no such pool.
        return BTreeSet::new();
    }
    let of = |offer: &PoolOffering| supply.labels(at, offer.offering).label(key).map(str::to_owned);
    supply.pools[at].offers.iter().filter_map(of).collect()
}

/// Returns the values that all offerings of the pool's node class have for a label, whether or not the pool may buy them.
fn sold_values(key: &str, at: usize, supply: &Supply<'_>) -> BTreeSet<String> {
    let of = |offering: usize| supply.labels(at, offering).label(key).map(str::to_owned);
    (0..supply.catalogue(at).offerings().len()).filter_map(of).collect()
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

/// Returns the message for a pool that has offerings for each requirement, but no offering for all of them. An offering would hold the
/// pods without the requirements at the indices of one of the alternatives.
fn none_has(pool: PoolInWords<'_>, wanted: &[Want<'_>], alternatives: &[Vec<usize>]) -> String {
    let Some(first) = alternatives.first().filter(|_| !wanted.is_empty()) else {
        // Its own requirements exclude nothing, so rules about other pods are the reason.
        let buy = if pool.is_catalogue() { "" } else { "let the pool buy there, or " };
        return format!(
            "its rules about other pods leave it places, but no offering of {pool} that it may use is in one of them; {buy}change those rules"
        );
    };
    let names = |of: &[usize]| of.iter().map(|at| wanted[*at].quoted()).collect::<Vec<String>>();
    let relax = match names(first).as_slice() {
        [_] if alternatives.len() == wanted.len() && wanted.len() > 1 => "relax one of them".to_owned(),
        [_] => format!("relax {}", names(&alternatives.concat()).join(" or ")),
        [others @ .., last] => format!("relax {} and {last} together", others.join(", ")),
        [] => String::new(),
    };
    format!("{}; {relax}", none_has_all(pool, wanted))
}

/// Says that no offering of the pool meets all of these requirements.
fn none_has_all(pool: PoolInWords<'_>, wanted: &[Want<'_>]) -> String {
    let all: Vec<String> = wanted.iter().map(Want::quoted).collect();
    format!("no single offering of {pool} has all of {}", all.join(", "))
}

/// Returns the change of a pod's rule on a label, or of the pool, that would make the rule pass at the pool.
pub(crate) fn label_change(wanted: &Requirement, at: usize, supply: &Supply<'_>) -> String {
    let (key, pool) = (wanted.key.as_str(), supply.pools[at].pool);
    if let Some((ours, note)) = ours_instead(wanted, at, supply) {
        return format!("select by {ours} instead of `{key}`{note}");
    }
    if let Some((written, near)) = near_value(wanted, &values(key, at, supply)) {
        return format!("write `{near}` instead of `{written}` in the rule on `{key}`");
    }
    match pool.labels.get(key) {
        Some(value) => format!(
            "drop the rule on `{key}`, or create a NodePool whose nodes meet it, because those of pool {} have `{key}={value}`",
            pool.name
        ),
        None => rule_change(key, pool.in_words()),
    }
}

/// Returns the change for a label that nodes of the pool do not have, or that their offerings decide.
fn rule_change(key: &str, pool: PoolInWords<'_>) -> String {
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
    if domains::is_control_plane(key) {
        return format!("drop the rule on `{key}`, because {NO_CONTROL_PLANE}");
    }
    if domains::is_set_by_others(key) {
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
        let nothing = none_has(PoolInWords::Named(&name), &[], &[]);
        assert!(nothing.contains("rules about other pods") && !nothing.contains("has all of"), "{nothing}");
        assert!(nothing.contains("let the pool buy there"), "{nothing}");
        let spec =
            PodSpec { node_selector: [("team".to_owned(), "ml".to_owned())].into(), ..PodSpec::default() };
        let one = none_has(PoolInWords::Named(&name), &wants(&spec)[0], &[vec![0]]);
        assert!(one.contains("has all of `team ml`"), "{one}");
        let met = none_has(PoolInWords::Named(&name), &wants(&spec)[0], &[]);
        assert!(met.contains("rules about other pods") && !met.contains("relax"), "{met}");
    }

    #[test]
    fn nobody_is_told_to_change_a_pool_that_nobody_wrote() {
        let nothing = none_has(PoolInWords::Catalogue, &[], &[]);
        assert!(
            nothing.contains("no offering of the catalogue") && !nothing.contains("the pool"),
            "{nothing}"
        );
        let change = rule_change("team", PoolInWords::Catalogue);
        assert_eq!(
            change,
            "drop the rule on `team`, or write a NodePool whose spec.template.metadata.labels has it"
        );
    }
}
