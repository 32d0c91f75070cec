//! Reservations and commitments that no pool may use: they are paid for, and the plan pays for other nodes.

use poolwright_catalog::{Catalogue, OfferingId};
use poolwright_core::plan::Commitment;
use poolwright_core::{Operator, Pool, Snapshot, rules};
use poolwright_intake::ReservedNodes;

/// Returns a note on each reservation and each commitment that no pool may use, with what the pool that lacks least must allow.
/// `catalogue` has all offerings.
pub fn notes(
    snapshot: &Snapshot,
    catalogue: &Catalogue,
    reserved: &[ReservedNodes],
    committed: &[Commitment],
) -> Vec<String> {
    let mut notes = Vec::new();
    for one in reserved.iter().filter(|one| one.count > 0) {
        if let Some(lacks) = lacks(snapshot, catalogue, std::iter::once(&one.offering)) {
            let OfferingId { instance_type, zone, .. } = &one.offering;
            notes.push(format!(
                "no pool may use the reservation {} ({} {instance_type} in {zone}), which is paid for: {lacks}",
                one.name, one.count
            ));
        }
    }
    for one in committed.iter().filter(|one| !one.is_used_up()) {
        if let Some(lacks) = lacks(snapshot, catalogue, one.rates.keys()) {
            notes.push(format!(
                "no pool may buy what the commitment {} pays for, so the plan does not use it: {lacks}",
                one.name
            ));
        }
    }
    notes
}

/// Returns what a pool must allow to buy one of these offerings; `None` if a pool may buy one, or if there are none.
fn lacks<'o>(
    snapshot: &Snapshot,
    catalogue: &Catalogue,
    offerings: impl Iterator<Item = &'o OfferingId>,
) -> Option<String> {
    let mut least: Option<(&Pool, Vec<String>)> = None;
    let mut any = false;
    for id in offerings {
        any = true;
        for pool in snapshot.pools.values() {
            let obstacles = obstacles(pool, snapshot, catalogue, id);
            if obstacles.is_empty() {
                return None;
            }
            if least.as_ref().is_none_or(|(_, known)| obstacles.len() < known.len()) {
                least = Some((pool, obstacles));
            }
        }
    }
    match least {
        _ if !any => None,
        Some((pool, obstacles)) if !pool.is_implicit => {
            Some(format!("in NodePool {}, {}", pool.name, obstacles.join("; ")))
        }
        _ => Some("the flags or their defaults leave it out; see --provider and --capacity-type".to_owned()),
    }
}

/// Returns what keeps a pool from an offering, each with the remedy.
fn obstacles(pool: &Pool, snapshot: &Snapshot, catalogue: &Catalogue, id: &OfferingId) -> Vec<String> {
    let Some(offering) = catalogue.offering(id) else { return vec![format!("the catalogue lacks {id}")] };
    let of_offering = catalogue.node_labels(offering);
    let labels = rules::NewNodeLabels { offering: &of_offering, template: &pool.labels, pool: &pool.name };
    let unmet = pool.requirements.iter().filter(|one| !rules::matches(one, &labels));
    let mut obstacles: Vec<String> = unmet
        .map(|one| {
            let value = of_offering.get(&one.key).map_or("", String::as_str);
            match &one.operator {
                Operator::In(_) => format!("add `{value}` to the values of {}", one.key),
                Operator::NotIn(_) => format!("remove `{value}` from the values of {}", one.key),
                _ => format!("change the requirement on {}, which {id} does not meet", one.key),
            }
        })
        .collect();
    let sells = match snapshot.catalogues.get(&pool.node_class) {
        Some(Ok(sold)) => sold.offering(id).is_some(),
        _ => false,
    };
    if !sells {
        obstacles.push(format!("choose a node class that sells {id}, which {} does not", pool.node_class));
    }
    obstacles
}
