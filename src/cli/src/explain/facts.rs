//! What `poolwright explain -o wide` prints below its lines: facts that belong to the object and that no line needs.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use poolwright_catalog::{OfferingId, Price};
use poolwright_core::{Claim, ClaimName, Node, PodKey, PodPhase, PoolName, Snapshot, Uid};
use poolwright_terms::{NodeClassRef, Taint, one_line};

use crate::plan::buyable;
use crate::price_age;
use crate::top::words::age;

/// Facts with their names. What is not known is left out.
type Facts = Vec<(&'static str, String)>;

/// Returns the facts of a pod.
pub fn of_pod(snapshot: &Snapshot, key: &PodKey, now: Timestamp) -> Facts {
    let Some(pod) = snapshot.pods.get(key) else { return Facts::new() };
    let mut facts = Facts::new();
    if let PodKey::Existing(key) = key {
        facts.extend(uid(&pod.uid, &key.name));
    }
    facts.extend(created(pod.created, now));
    if let PodPhase::Bound { node } = &pod.phase {
        facts.push(("node", node.clone()));
    }
    facts.push(("scheduler", pod.scheduler.clone()));
    facts.push(("priority", pod.priority.to_string()));
    facts.extend(labels(&pod.labels));
    facts
}

/// Returns the facts of a node, with those of its claim.
pub fn of_node(snapshot: &Snapshot, name: &str, now: Timestamp) -> Facts {
    let Some(node) = snapshot.nodes.get(name) else { return Facts::new() };
    let node: &Node = node;
    let mut facts = Facts::new();
    facts.extend(node.provider_id.clone().map(|id| ("instance id", id)));
    if let Some(claim) = snapshot.claims.of_node(node) {
        facts.push(("claim", claim.name.to_string()));
        facts.extend(bought(snapshot, claim, now));
    }
    facts.extend(labels(&node.labels));
    facts.extend(taints(&node.taints));
    facts
}

/// Returns the facts of a claim.
pub fn of_claim(snapshot: &Snapshot, name: &ClaimName, now: Timestamp) -> Facts {
    let Some(claim) = snapshot.claims.get(name) else { return Facts::new() };
    let mut facts = Facts::new();
    facts.extend(uid(&claim.uid, &claim.name.0));
    facts.extend(claim.node_name.clone().map(|node| ("node", node)));
    facts.extend(claim.launched.as_ref().map(|launched| ("instance id", launched.provider_id.clone())));
    facts.extend(bought(snapshot, claim, now));
    facts.extend(labels(&claim.labels));
    facts.extend(taints(&claim.taints));
    facts
}

/// Returns the facts of a pool.
pub fn of_pool(snapshot: &Snapshot, name: &PoolName) -> Facts {
    let Some(pool) = snapshot.pools.get(name) else { return Facts::new() };
    let mut facts = Facts::new();
    facts.extend(uid(&pool.uid, &pool.name.0));
    facts.push(("node class", pool.node_class.to_string()));
    if let Some(Ok(catalogue)) = snapshot.catalogues.get(&pool.node_class) {
        facts.push(("prices", catalogue.origin().source.clone()));
        let offerings = buyable::offerings(std::iter::once(&**pool), |_| Some(&**catalogue));
        facts.extend(price_age::oldest(offerings).map(|date| ("oldest price", date.to_string())));
    }
    facts.push(("weight", pool.weight.to_string()));
    facts.extend(labels(&pool.labels));
    facts.extend(taints(&pool.taints));
    facts
}

/// Returns what is known about the purchase of a node.
fn bought(snapshot: &Snapshot, claim: &Claim, now: Timestamp) -> Facts {
    let ranked = claim.current_offering();
    let mut facts = Facts::new();
    facts.extend(created(claim.created, now));
    facts.push(("pool", claim.pool.to_string()));
    facts.push(("node class", claim.node_class.to_string()));
    facts.push(("offering", ranked.offering.to_string()));
    facts.extend(ranked.price.map(|price| ("planned price", format!("${price}/h"))));
    facts.extend(price(snapshot, &claim.node_class, &ranked.offering).map(|price| ("price", price)));
    facts
}

/// Says what an offering costs in the catalogue of a node class, with the source and the age of the price.
fn price(snapshot: &Snapshot, class: &NodeClassRef, offering: &OfferingId) -> Option<String> {
    let Some(Ok(catalogue)) = snapshot.catalogues.get(class) else { return None };
    match &catalogue.offering(offering)?.price {
        Price::Known(quote) => {
            let dated = quote.as_of.zip(quote.age_in_days(price_age::today()));
            let dated = dated.map(|(date, days)| {
                format!(", of {date}, {days} day{} ago", if days == 1 { "" } else { "s" })
            });
            Some(format!("${}/h, from {}{}", quote.usd_per_hour, quote.source, dated.unwrap_or_default()))
        }
        Price::Unknown(why) => Some(format!("unknown: {why}")),
    }
}

/// Returns the UID, unless no API server gave one: then the name stands for it, with or without the namespace.
fn uid(uid: &Uid, name: &str) -> Option<(&'static str, String)> {
    let is_made_up = uid.0.rsplit('/').next() == Some(name);
    (!is_made_up).then(|| ("uid", uid.0.clone()))
}

/// Returns the time of the creation and the age, unless the object says none.
fn created(at: Timestamp, now: Timestamp) -> Option<(&'static str, String)> {
    (at > Timestamp::UNIX_EPOCH).then(|| ("created", format!("{at}, {} ago", age(at, now))))
}

fn labels(labels: &BTreeMap<String, String>) -> Option<(&'static str, String)> {
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    (!all.is_empty()).then(|| ("labels", all.join(", ")))
}

fn taints(taints: &[Taint]) -> Option<(&'static str, String)> {
    let all: Vec<String> = taints.iter().map(ToString::to_string).collect();
    (!all.is_empty()).then(|| ("taints", all.join(", ")))
}

/// Prints facts below an empty line, one in each line. Nothing is wrapped.
pub fn print(facts: &[(&'static str, String)], out: &mut impl Write) -> io::Result<()> {
    if !facts.is_empty() {
        writeln!(out)?;
    }
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, fact) in facts {
        writeln!(out, "{name:width$}  {}", one_line(fact))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use poolwright_core::{Pod, PodSpec};

    use super::*;

    #[test]
    fn a_price_has_its_source_and_its_age() {
        let class = NodeClassRef { group: "g".into(), kind: "K".into(), name: "n".into() };
        let catalogue = poolwright_catalog::builtin();
        let known = catalogue.offerings().iter().find_map(|offering| match &offering.price {
            Price::Known(quote) => Some((offering.id.clone(), quote.clone())),
            Price::Unknown(_) => None,
        });
        let (offering, quote) = known.expect("the catalogue has prices");
        let mut snapshot = Snapshot::default();
        assert_eq!(price(&snapshot, &class, &offering), None, "no catalogue, no price");
        snapshot.catalogues.insert(class.clone(), Ok(Arc::new(catalogue)));
        let said = price(&snapshot, &class, &offering).expect("it is sold");
        assert!(said.starts_with(&format!("${}/h, from {}", quote.usd_per_hour, quote.source)), "{said}");
        assert_eq!(said.contains("ago"), quote.as_of.is_some(), "{said}");
    }

    #[test]
    fn facts_that_nobody_told_are_left_out_and_no_line_is_forged() {
        let mut pod = Pod::waiting(PodKey::new("ml", "a"), PodSpec::default());
        pod.labels = [("team".to_owned(), "a\nlabels  b".to_owned())].into();
        let snapshot = Snapshot {
            pods: [(pod.key.clone(), Arc::new(pod.clone()))].into_iter().collect(),
            ..Snapshot::default()
        };
        let mut out = Vec::new();
        let facts = of_pod(&snapshot, &pod.key, Timestamp::UNIX_EPOCH);
        print(&facts, &mut out).expect("memory takes everything");
        let text = String::from_utf8(out).expect("UTF-8");
        let names: Vec<&str> = text.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!(names, ["", "scheduler", "priority", "labels"], "{text}");
        assert!(of_node(&snapshot, "none", Timestamp::UNIX_EPOCH).is_empty());
    }
}
