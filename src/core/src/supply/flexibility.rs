//! `minValues` of pools: the least number of different values of a label among the offerings that the cloud may choose from for a
//! node.
//!
//! One launch call has one capacity type, so only offerings of the node's capacity type count. The exception is `minValues` of the
//! capacity type itself, which counts all offerings of the claim. Reserved capacity is exempt: it is paid for, and a reservation has
//! one instance type and one zone.

use std::collections::BTreeSet;

use poolwright_catalog::OfferingId;
use poolwright_terms::{CapacityType, labels};

use crate::model::plan::LabelChoice;
use crate::model::{PlanOptions, Pool, PoolLimits};
use crate::rules::labels::Labels;

/// Returns whether a node of this offering of the pool must leave the cloud a choice.
pub(crate) fn applies(pool: &Pool, id: &OfferingId) -> bool {
    !pool.min_values.is_empty() && id.capacity_type != CapacityType::Reserved
}

/// Returns whether all capacity types count for a key.
pub(crate) fn is_over_capacity_types(key: &str) -> bool {
    key == labels::CAPACITY_TYPE
}

/// Returns how many capacity types `minValues` of a pool asks each launch for, if no launch of an on-demand node has so many: under
/// rules on spot nodes, it lists no spot offering.
pub(crate) fn bars_on_demand(pool: &Pool) -> Option<u32> {
    let asked = *pool.min_values.get(labels::CAPACITY_TYPE)?;
    (asked > 1 && !pool.spot.is_empty()).then_some(asked)
}

/// The values of each key of `minValues` that some offerings have.
pub(crate) struct ValueCount<'p> {
    pool: &'p Pool,
    /// The capacity type of the launch call.
    capacity_type: CapacityType,
    /// By key, in their order.
    seen: Vec<BTreeSet<String>>,
}

/// The number of values that offerings have of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyValues<'p> {
    pub key: &'p str,
    pub at_least: usize,
    pub found: usize,
}

impl KeyValues<'_> {
    /// Returns a message about pods for which the limits of a pool, and those over all pools, leave too few values.
    pub fn beyond_limits(self, pool: &Pool, options: &PlanOptions) -> String {
        let own = options.limits_of(pool);
        let (limits, raise) = match [&own, &options.limits].map(|limits| *limits == PoolLimits::default()) {
            [_, true] => ("its limits leave", "raise spec.limits"),
            [true, false] => ("the limits over all pools leave", "raise these limits"),
            [false, false] => ("its limits and those over all pools leave", "raise both"),
        };
        format!(
            "pool `{}` asks for {} values of `{}` (minValues), but {limits} {} for such a node; {raise}, or lower minValues",
            pool.name, self.at_least, self.key, self.found
        )
    }
}

/// Returns a message about pods planned for an on-demand node whose launch cannot have the capacity types that `minValues` asks for.
pub(crate) fn barred(pool: &Pool, asked: u32) -> String {
    format!(
        "pool `{}` asks for {asked} values of `{}` (minValues), but the launch of an on-demand node lists no spot offering, because the \
         pool has rules on spot nodes (spec.spot); lower minValues to 1, or remove these rules",
        pool.name,
        labels::CAPACITY_TYPE
    )
}

impl From<KeyValues<'_>> for LabelChoice {
    fn from(of: KeyValues<'_>) -> Self {
        Self { key: of.key.to_owned(), at_least: of.at_least, found: of.found }
    }
}

impl<'p> ValueCount<'p> {
    /// Starts to count for a launch call of this capacity type.
    pub fn new(pool: &'p Pool, capacity_type: CapacityType) -> Self {
        Self { pool, capacity_type, seen: vec![BTreeSet::new(); pool.min_values.len()] }
    }

    /// Returns whether an offering has a new value of a key with too few.
    pub fn needs(&self, id: &OfferingId, labels: &impl Labels) -> bool {
        self.new_values(id, labels).any(|(at, least, _)| self.seen[at].len() < least as usize)
    }

    /// Counts the values of an offering.
    pub fn add(&mut self, id: &OfferingId, labels: &impl Labels) {
        let new: Vec<_> = self.new_values(id, labels).map(|(at, _, value)| (at, value.to_owned())).collect();
        for (at, value) in new {
            self.seen[at].insert(value);
        }
    }

    /// Returns the new values of an offering, with the index and the minimum of their key.
    fn new_values<'l>(
        &self,
        id: &OfferingId,
        labels: &'l impl Labels,
    ) -> impl Iterator<Item = (usize, u32, &'l str)> {
        let is_same = id.capacity_type == self.capacity_type;
        let is_bought = id.capacity_type != CapacityType::Reserved;
        let keys = self.pool.min_values.iter().enumerate();
        keys.filter_map(move |(at, (key, least))| {
            let counts = is_bought && (is_same || is_over_capacity_types(key));
            let value = labels.label(key).filter(|_| counts)?;
            (!self.seen[at].contains(value)).then_some((at, *least, value))
        })
    }

    /// Returns the keys with too few values.
    pub fn shortages(&self) -> impl Iterator<Item = KeyValues<'p>> {
        self.found().filter(|key| key.found < key.at_least)
    }

    /// Returns every key with the number of its values.
    pub fn found(&self) -> impl Iterator<Item = KeyValues<'p>> {
        let keys = self.pool.min_values.iter().zip(&self.seen);
        keys.map(|((key, at_least), seen)| KeyValues { key, at_least: *at_least as usize, found: seen.len() })
    }
}

/// Returns the keys of which the offerings of the best capacity type have too few values; none if one capacity type has enough.
/// `holding` are the offerings that hold the node's pods.
pub(crate) fn lacking<'p, L: Labels>(pool: &'p Pool, holding: &[(&OfferingId, L)]) -> Vec<KeyValues<'p>> {
    let kinds: BTreeSet<CapacityType> = holding.iter().map(|(id, _)| id.capacity_type).collect();
    let of = |kind: CapacityType| {
        let mut count = ValueCount::new(pool, kind);
        for (id, labels) in holding {
            count.add(id, labels);
        }
        count.shortages().collect::<Vec<_>>()
    };
    let missing =
        |lacks: &Vec<KeyValues<'_>>| -> usize { lacks.iter().map(|key| key.at_least - key.found).sum() };
    kinds
        .into_iter()
        .filter(|kind| *kind != CapacityType::Reserved)
        .map(of)
        .min_by_key(missing)
        .unwrap_or_default()
}
