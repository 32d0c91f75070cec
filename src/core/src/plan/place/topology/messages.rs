//! Messages about pods without a place.

use std::collections::BTreeSet;

use poolwright_terms::domains;
use poolwright_terms::keys::NODEPOOL_LABEL;
use poolwright_terms::labels::{DECIDED_BY_OFFERING, HOSTNAME};

use crate::model::{Operator, Pod, Requirement};
use crate::plan::place::topology::barrier::{self, Barrier};
use crate::plan::place::topology::inputs::TopologyInputs;
use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::plan::place::topology::relations::PodRelations;
use crate::plan::place::topology::tally::{Refusal, Tally};
use crate::plan::place::topology::uneven::Uneven;
use crate::rules::csi_labels::repeats;
use crate::rules::format::list;
use crate::rules::spread::domains::DomainSpread;
use crate::rules::spread::messages;

/// The most values that a message lists.
const SHOWN: usize = 6;

/// Returns the message for a pod with these relations that every possible place refuses.
pub(crate) fn refused(
    inputs: &TopologyInputs<'_, '_>,
    (pod, kind): (&Pod, &PodRelations),
    places: &Places<'_>,
    tally: &Tally,
    refusals: &[(&Place, Refusal)],
) -> String {
    let relations = inputs.relations;
    let Some((_, first)) = refusals.first() else {
        return "no more nodes are available in any place that fits it".to_owned();
    };
    // The whole catalogue may be bought already where the user wrote no pool.
    let is_catalogue = inputs.supply.is_catalogue();
    let let_a_pool = |buy: &'static str| if is_catalogue { "" } else { buy };
    // The rule may follow from a volume, and then nobody wrote it.
    let (rule, change) = match inputs.volumes.shared.get(&pod.key) {
        Some(claims) => (format!("they share {claims}"), "give each of them a volume of its own"),
        None => ("required pod affinity".to_owned(), "change the rule"),
    };
    let is_open = |place: &Place| tally.check(relations, kind, place).is_ok();
    let own_barrier = || barrier::find(inputs, pod, places, is_open);
    match *first {
        Refusal::NoLabel(key) if relations.keys[key] == HOSTNAME => format!(
            "must share a node with other pods ({rule}), but neither their node nor an available offering has room for all of them, or their priorities, tolerations or parts of GPUs differ; free room on that node, {}or {change}",
            let_a_pool("let a pool buy larger nodes if none of them runs yet, ")
        ),
        Refusal::NoLabel(key) => format!(
            "must be on a node with the label `{}`, but no node or offering that fits it has this label; {}change the rule",
            relations.keys[key],
            let_nodes_have(relations.keys[key], is_catalogue)
        ),
        Refusal::Uneven(spread) => {
            let DomainSpread { rule, key, .. } = relations.spreads[spread];
            let mut domains: Vec<(String, u64)> = tally
                .counts(spread)
                .map(|(value, count)| (places.values[key][value].clone(), count))
                .collect();
            domains.sort();
            let mut full: Vec<&str> =
                refusals.iter().filter_map(|(place, _)| value(places, place, key)).collect();
            full.sort_unstable();
            full.dedup();
            let others = kind.spreads.iter().copied().filter(|other| *other != spread).collect();
            let otherwise = PodRelations { spreads: others, ..kind.clone() };
            let is_only_reason = |place: &Place| tally.check(relations, &otherwise, place).is_ok();
            let (mut homes, mut only) = (BTreeSet::new(), BTreeSet::new());
            for (place, _) in refusals.iter().filter(|(place, _)| place[key] != NONE) {
                homes.insert(place[key] as usize);
                only.extend(is_only_reason(place).then_some(place[key] as usize));
            }
            let counts_itself = kind.counted.contains(&spread);
            let uneven = Uneven { inputs, places, tally, spread, counts_itself, homes, full: only };
            let causes = uneven.causes();
            let bound = bound_to(inputs, pod, relations.keys[key], &full);
            let may_buy_elsewhere =
                !is_catalogue && bound.is_empty() && uneven.may_go_elsewhere(&domains, &causes);
            messages::no_domain(rule, &domains, &full, (&bound, causes.as_slice()), may_buy_elsewhere)
        }
        Refusal::Alone(affinity) => {
            let set = &relations.affinities[affinity];
            let over: Vec<String> = set.terms.iter().map(|term| format!("`{}`", term.topology_key)).collect();
            if tally.is_nowhere(affinity) {
                format!(
                    "must be with other pods over {} (required pod affinity), but the rule selects no running or planned pod; create those pods first, or correct the labelSelector or namespaces of the rule",
                    over.join(" and ")
                )
            } else {
                let with_them = PodRelations { affinity: Some(affinity), ..PodRelations::default() };
                let is_there = |place: &Place| tally.check(relations, &with_them, place).is_ok();
                let there: Vec<String> = barrier::named(places, &set.keys, is_there).into_iter().collect();
                let in_words = || format!(", which are in {}", list(&there, SHOWN));
                let which = if there.is_empty() { String::new() } else { in_words() };
                let Barrier { cause, change: first } = own_barrier().unwrap_or_else(|| Barrier {
                    cause: "no offering that fits it is available where they are".to_owned(),
                    change: let_a_pool("let a pool buy nodes there that fit it").to_owned(),
                });
                let or = if first.is_empty() { "" } else { ", or " };
                format!(
                    "must be with other pods over {} ({rule}){which}, but {cause}; {first}{or}{change}",
                    over.join(" and ")
                )
            }
        }
        Refusal::Apart { anti, its_own } => {
            let key = relations.keys[relations.antis[anti].key];
            let whose = if its_own { "keeps away from other pods" } else { "is kept away by other pods" };
            let taken: Vec<&str> = refusals
                .iter()
                .filter_map(|(place, _)| value(places, place, relations.antis[anti].key))
                .take(SHOWN)
                .collect();
            let (elsewhere, first) = match own_barrier() {
                Some(Barrier { cause, change }) => {
                    (format!("; elsewhere, {cause}"), format!("{change}, or "))
                }
                None => (String::new(), let_a_pool("let a pool buy in another place, or ").to_owned()),
            };
            format!(
                "{whose} over `{key}` (required pod anti-affinity), and such pods are in every place that fits it: {}{elsewhere}; {first}change the rule",
                taken.join(", ")
            )
        }
    }
}

/// Returns what gives new nodes a label, with the word that follows it; empty if no template may.
fn let_nodes_have(key: &str, is_catalogue: bool) -> &'static str {
    if DECIDED_BY_OFFERING.contains(&key) || key == NODEPOOL_LABEL {
        ""
    } else if domains::is_set_by_others(key) {
        "another program or a cloud sets it, and plans do not know its value, so "
    } else if is_catalogue {
        "write a NodePool whose template has the label, or "
    } else {
        "add the label to a pool's template, or "
    }
}

/// Names the volumes of a pod that are usable only in these domains.
fn bound_to(inputs: &TopologyInputs<'_, '_>, pod: &Pod, key: &str, domains: &[&str]) -> BTreeSet<String> {
    let is_on = |one: &Requirement| one.key == key || repeats(&one.key) == Some(key);
    let binds = |one: &Requirement| {
        is_on(one)
            && matches!(&one.operator, Operator::In(values) if values.iter().all(|value| domains.contains(&value.as_str())))
    };
    let places = inputs.volumes.places.get(&pod.key).into_iter().flatten();
    places
        .filter(|(_, terms)| {
            !terms.is_empty() && terms.iter().all(|term| term.requirements.iter().any(binds))
        })
        .map(|(words, _)| words.clone())
        .collect()
}

fn value<'p>(places: &'p Places<'_>, place: &Place, key: usize) -> Option<&'p str> {
    (place[key] != NONE).then(|| places.values[key][place[key] as usize].as_str())
}
