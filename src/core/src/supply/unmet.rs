//! What keeps a pool from every offering of its node class.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_terms::CapacityType;
use poolwright_terms::labels::{CAPACITY_TYPE, INSTANCE_TYPE};

use crate::model::{Pool, Requirement};
use crate::rules::format::{count, list};
use crate::rules::new_node::NewNodeLabels;
use crate::rules::{self, Labels};

/// The most values that a message lists.
const SHOWN: usize = 6;

/// The next step for a pool that wants prices which nobody has given.
const GIVE_PRICES: &str = "a file for --catalogue can have these prices, and a controller reads those of its cloud (docs/catalogue.md); or change spec.template.spec.requirements";
/// The next step for a pool that wants reservations. Nothing sells reserved capacity: users say what they have.
const NAME_RESERVATIONS: &str = "name your reservations (for a plan, in a file for --commitments; for a controller, in the node class), or correct spec.template.spec.requirements";

/// Names the requirements of a pool that no offering meets, each with the values that the offerings have, and a change that helps.
/// `offerings` are the labels of all offerings of its node class.
pub(crate) fn unmet(pool: &Pool, offerings: &[BTreeMap<String, String>]) -> String {
    let is_met =
        |one: &&Requirement| offerings.iter().any(|offering| rules::matches(one, &labels(pool, offering)));
    let missing: Vec<&Requirement> = pool.requirements.iter().filter(|one| !is_met(one)).collect();
    if missing.is_empty() {
        return format!("meets all requirements together{}", together(pool, offerings));
    }
    let words = missing.iter().map(|one| {
        let values: BTreeSet<&str> =
            offerings.iter().filter_map(|offering| Some(offering.get(&one.key)?.as_str())).collect();
        let values: Vec<&str> = values.into_iter().collect();
        if values.is_empty() {
            format!("`{one}` (no offering has a label `{}`)", one.key)
        } else {
            format!("`{one}` (they have {})", list(&values, SHOWN))
        }
    });
    let words: Vec<String> = words.collect();
    let wanted =
        if missing.iter().any(|one| one.key == CAPACITY_TYPE) { capacity_types(pool) } else { Vec::new() };
    let change = change_of_capacity(&wanted);
    format!("meets {}; {change}", words.join(", nor "))
}

fn labels<'p>(pool: &'p Pool, offering: &'p BTreeMap<String, String>) -> NewNodeLabels<'p> {
    NewNodeLabels { offering, template: &pool.labels, pool: &pool.name }
}

/// Says which requirement excludes what all others allow, and a change that helps. Each requirement alone is met.
fn together(pool: &Pool, offerings: &[BTreeMap<String, String>]) -> String {
    let keys: BTreeSet<&str> = pool.requirements.iter().map(|one| one.key.as_str()).collect();
    let without = |key: &str| -> Vec<&BTreeMap<String, String>> {
        let meets = |offering: &&BTreeMap<String, String>| {
            let mut others = pool.requirements.iter().filter(|one| one.key != key);
            others.all(|one| rules::matches(one, &labels(pool, offering)))
        };
        offerings.iter().filter(meets).collect()
    };
    if keys.contains(CAPACITY_TYPE) {
        let left = without(CAPACITY_TYPE);
        let types: BTreeSet<&str> =
            left.iter().filter_map(|offering| offering.label(INSTANCE_TYPE)).collect();
        let types: Vec<&str> = types.into_iter().collect();
        let wanted = capacity_types(pool);
        if !types.is_empty() && !wanted.is_empty() {
            let named: Vec<&str> = wanted.iter().copied().map(CapacityType::as_str).collect();
            let meet = if types.len() == 1 { "meets" } else { "meet" };
            return format!(
                ": there is no {} price here of {} that {meet} the others ({}); {}",
                named.join(" or "),
                count(types.len(), "instance type"),
                list(&types, SHOWN),
                change_of_capacity(&wanted)
            );
        }
    }
    let helps = keys.into_iter().filter_map(|key| {
        let left = without(key).len();
        (left > 0).then(|| format!("; without the rules on `{key}`, {} would", count(left, "offering")))
    });
    let helps: Vec<String> = helps.take(SHOWN).collect();
    let which = if helps.len() > 1 { "one of them in " } else { "" };
    format!("{}; widen {which}spec.template.spec.requirements", helps.concat())
}

/// Returns the capacity types that all requirements of a pool on them allow.
pub(crate) fn capacity_types(pool: &Pool) -> Vec<CapacityType> {
    let allowed = |of: &CapacityType| {
        let label = BTreeMap::from([(CAPACITY_TYPE.to_owned(), of.as_str().to_owned())]);
        let mut own = pool.requirements.iter().filter(|one| one.key == CAPACITY_TYPE);
        own.all(|one| rules::matches(one, &label))
    };
    CapacityType::ALL.into_iter().filter(allowed).collect()
}

/// Returns the change that helps if these capacity types are wanted and missing, or if something else is.
fn change_of_capacity(wanted: &[CapacityType]) -> &'static str {
    match wanted {
        [] => "correct spec.template.spec.requirements, or use a node class or catalogue that sells it",
        [CapacityType::Reserved] => NAME_RESERVATIONS,
        _ => GIVE_PRICES,
    }
}
