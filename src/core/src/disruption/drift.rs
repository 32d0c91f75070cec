//! Drift: checks whether a claim still matches its pool.

use std::collections::BTreeMap;

use poolwright_terms::Taint;

use crate::model::{Claim, Pool, Snapshot};
use crate::rules;
use crate::rules::claim_node::labels_of_claim;

/// Describes how a claim differs from its pool; `None` if it does not. The claim's own spec is compared, so manual changes on the
/// node are not drift.
pub fn drift(snapshot: &Snapshot, pool: &Pool, claim: &Claim) -> Option<String> {
    let mut changes: Vec<String> = Vec::new();
    changes.extend(maps("label", &claim.labels, &pool.labels));
    changes.extend(maps("annotation", &claim.annotations, &pool.annotations));
    changes.extend(taints("taint", &claim.taints, &pool.taints));
    changes.extend(taints("startup taint", &claim.startup_taints, &pool.startup_taints));
    if claim.node_class != pool.node_class {
        changes.push(format!("its node class was {} and is now {}", claim.node_class, pool.node_class));
    }
    let labels = labels_of_claim(snapshot, claim, None);
    let fails = |requirement: &&crate::model::Requirement| !rules::matches(requirement, &labels);
    // Without a catalogue that contains it, the offering cannot be compared.
    let known = matches!(snapshot.catalogues.get(&claim.node_class), Some(Ok(catalogue)) if catalogue.offering(&claim.current_offering().offering).is_some());
    if let Some(requirement) = pool.requirements.iter().find(fails).filter(|_| known) {
        let value = labels.get(&requirement.key).map_or("none".to_owned(), |value| format!("`{value}`"));
        changes.push(format!("the requirement on {} does not allow its value, {value}", requirement.key));
    }
    (!changes.is_empty()).then(|| changes.join("; "))
}

fn maps(what: &str, had: &BTreeMap<String, String>, has: &BTreeMap<String, String>) -> Vec<String> {
    let gone = had.iter().filter(|(key, value)| has.get(*key) != Some(value));
    let gone = gone.map(|(key, value)| match has.get(key) {
        Some(now) => format!("{what} {key} was `{value}` and is now `{now}`"),
        None => format!("{what} {key}=`{value}` was removed"),
    });
    let new = has.iter().filter(|(key, _)| !had.contains_key(*key));
    gone.chain(new.map(|(key, value)| format!("{what} {key}=`{value}` was added"))).collect()
}

fn taints(what: &str, had: &[Taint], has: &[Taint]) -> Vec<String> {
    let gone = had.iter().filter(|taint| !has.contains(taint));
    let gone = gone.map(|taint| format!("{what} `{taint}` was removed"));
    let new = has.iter().filter(|taint| !had.contains(taint));
    gone.chain(new.map(|taint| format!("{what} `{taint}` was added"))).collect()
}
