//! Unplaced pods whose volume cannot be used on any new node.

use std::collections::BTreeSet;

use crate::model::{NodeSelectorTerm, PodSpec, Requirement};
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::{UnplacedInputs, list};
use crate::rules;
use crate::rules::labels::Labels;
use crate::rules::{NewNodeLabels, Rejection};
use crate::supply::offerings::PoolOffering;
use poolwright_terms::labels::HOSTNAME;

/// Returns the message if the pods' own rules match, but a volume cannot be used.
pub(crate) fn miss(inputs: &UnplacedInputs<'_, '_>, class: &PodClass<'_>, at: usize) -> Option<String> {
    let supply = inputs.supply;
    let pool = &supply.pools[at];
    let without = PodSpec { volumes: Vec::new(), ..class.spec.clone() };
    let own =
        |offer: &&PoolOffering| rules::check_labels(&without, &supply.labels(at, offer.offering)).is_ok();
    let admitted: Vec<&PoolOffering> = pool.offers.iter().filter(own).collect();
    let first = *admitted.first()?;
    let places = inputs.volumes.places.get(&class.pods.first()?.key)?;
    let mut all_elsewhere = places.iter().filter(|(_, terms)| {
        !admitted.iter().any(|o| rules::check_affinity(Some(terms), &supply.labels(at, o.offering)).is_ok())
    });
    let elsewhere = all_elsewhere.next();
    // A change for one volume does not help if another one is elsewhere, too.
    let others: Vec<&String> = all_elsewhere.map(|(words, _)| words).collect();
    let also = match others.len() {
        0 => String::new(),
        1 => format!("; {} is not usable on these nodes, either", list(others)),
        _ => format!("; {} are not usable on these nodes, either", list(others)),
    };
    let named = pool.pool.in_words();
    let is_at = |terms: &Vec<NodeSelectorTerm>, labels: &NewNodeLabels<'_>| {
        rules::check_affinity(Some(terms), labels).is_ok()
    };
    let widen = named.widen_or();
    let Some((words, terms)) = elsewhere else {
        let has_all = |offer: &PoolOffering| {
            let labels = supply.labels(at, offer.offering);
            places.iter().all(|(_, terms)| is_at(terms, &labels))
        };
        // Then rules about other pods keep it off, and its volumes do not.
        if admitted.iter().any(|offer| has_all(offer)) {
            return None;
        }
        let of_class =
            supply.class_without(at, |labels| places.iter().all(|(_, terms)| is_at(terms, labels)));
        let widen = if of_class.is_some() { "" } else { widen };
        let all: Vec<&String> = places.iter().map(|(words, _)| words).collect();
        return Some(format!(
            "no offering of {named} that it may use is where all of its volumes are: {}; {widen}recreate the volumes in one place",
            list(all)
        ));
    };
    let alternatives = terms.iter().map(|term| {
        let all: Vec<String> =
            term.requirements.iter().map(|requirement| format!("`{requirement}`")).collect();
        all.join(" and ")
    });
    let all = alternatives.collect::<Vec<_>>().join(" or ");
    let names_host = |term: &NodeSelectorTerm| {
        let key = |one: &Requirement| one.key == HOSTNAME || one.key == rules::NODE_NAME_FIELD;
        term.requirements.iter().any(key)
    };
    if terms.iter().all(names_host) {
        return Some(format!(
            "{words} is usable only on nodes with {all}, and no new node has that name; bring that node back, or recreate the volume{also}"
        ));
    }
    let has = match rules::check_affinity(Some(terms), &supply.labels(at, first.offering)) {
        Err(Rejection::Affinity { requirement: Some(failed), .. }) => {
            let values: BTreeSet<String> = admitted
                .iter()
                .filter_map(|o| supply.labels(at, o.offering).label(&failed.key).map(str::to_owned))
                .collect();
            if values.is_empty() { format!("no `{}`", failed.key) } else { format!("only {}", list(values)) }
        }
        _ => "none of them".to_owned(),
    };
    if let Some(node_class) = supply.class_without(at, |labels| is_at(terms, labels)) {
        return Some(format!(
            "{words} is usable only on nodes with {all}, but {node_class} of {named} has no such offering: those that it may use have {has}; use a node class that has one, or recreate the volume elsewhere{also}"
        ));
    }
    Some(format!(
        "{words} is usable only on nodes with {all}, but offerings of {named} that it may use have {has}; {widen}recreate the volume elsewhere{also}"
    ))
}
