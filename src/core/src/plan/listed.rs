//! The offerings that a claim lists. For a pool with `minValues`, they leave the cloud the choice that it asks for.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::MinValuesPolicy;
use crate::model::plan::LabelChoice;
use crate::plan::claims::ClaimBuilder;
use crate::plan::listing::{Listed, MOST, Rank};
use crate::plan::pack::solves::packing::NewNode;
use crate::supply::flexibility::{self, KeyValues, ValueCount, applies, bars_on_demand};
use crate::supply::offerings::PoolOffering;

impl ClaimBuilder<'_, '_> {
    /// Adds to the alternatives (`chosen`, the node's own offering first) what `minValues` asks for, at any price, as long as it
    /// `holds` the pods and the limits have this much to `spare`.
    ///
    /// # Errors
    /// A sentence if that is not enough and `minValues` is strict.
    pub(crate) fn listed<'o>(
        &'o self,
        node: &NewNode<'_>,
        chosen: Vec<&'o PoolOffering>,
        rank: impl Fn(&PoolOffering) -> Rank<'o>,
        holds: impl Fn(&PoolOffering) -> bool,
        spare: &[u64],
    ) -> Result<Listed<'o>, String> {
        let (pool, first) = (self.supply.pools[node.pool].pool, chosen[0]);
        let most = self.options.max_offerings.clamp(1, MOST);
        if !applies(pool, self.id(node, first)) {
            let offers: Vec<&PoolOffering> = chosen.into_iter().take(most).collect();
            let mut more = BTreeMap::new();
            let planned = self.uses(node, &node.offer);
            for (limit, amount) in offers.iter().flat_map(|offer| self.beyond(node, offer, &planned)) {
                let known: &mut u64 = more.entry(limit).or_default();
                *known = amount.max(*known);
            }
            return Ok(Listed { offers, more, ..Listed::default() });
        }
        let kind = self.id(node, first).capacity_type;
        let is_priced = |offer: &PoolOffering| offer.availability.price().is_some();
        let listed: BTreeSet<usize> = chosen.iter().map(|offer| offer.offering).collect();
        let is_other = |offer: &&PoolOffering| {
            offer.availability.is_sold()
                && is_priced(offer) == is_priced(first)
                && !listed.contains(&offer.offering)
        };
        let mut others: Vec<&PoolOffering> =
            self.supply.pools[node.pool].offers.iter().filter(is_other).collect();
        others.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let planned = self.uses(node, &node.offer);
        let mut count = ValueCount::new(pool, kind);
        let mut needed = BTreeSet::from([first.offering]);
        let mut more: BTreeMap<u32, u64> = BTreeMap::new();
        for offer in chosen.iter().chain(&others) {
            if needed.len() == MOST || count.shortages().next().is_none() {
                break;
            }
            let (id, labels) = (self.id(node, offer), self.supply.labels(node.pool, offer.offering));
            if !count.needs(id, &labels) {
                continue;
            }
            let beyond = self.beyond(node, offer, &planned);
            let is_within = beyond.iter().all(|(limit, amount)| *amount <= spare[*limit as usize]);
            let may_be_listed = listed.contains(&offer.offering) || (is_within && holds(offer));
            if !may_be_listed {
                continue;
            }
            count.add(id, &labels);
            needed.insert(offer.offering);
            for (limit, amount) in beyond {
                let known = more.entry(limit).or_default();
                *known = amount.max(*known);
            }
        }
        let short: Vec<KeyValues<'_>> = count.shortages().collect();
        if let (Some(key), MinValuesPolicy::Strict) = (short.first(), self.options.min_values) {
            let barred = bars_on_demand(pool).filter(|_| self.stays_on_demand(node));
            let by_limits = || key.beyond_limits(pool, self.options);
            return Err(barred.map_or_else(by_limits, |asked| flexibility::barred(pool, asked)));
        }
        let kept = chosen
            .iter()
            .chain(&others)
            .copied()
            .filter(|offer| listed.contains(&offer.offering) || needed.contains(&offer.offering));
        let mut offers: Vec<&PoolOffering> = kept.collect();
        // A launch call has one capacity type.
        let is_other_kind = |offer: &PoolOffering| self.id(node, offer).capacity_type != kind;
        offers[1..].sort_by(|a, b| (is_other_kind(a), rank(a)).cmp(&(is_other_kind(b), rank(b))));
        while offers.len() > most
            && let Some(at) = offers.iter().rposition(|offer| !needed.contains(&offer.offering))
        {
            offers.remove(at);
        }
        let is_called = |offer: &&PoolOffering| needed.contains(&offer.offering) && !is_other_kind(offer);
        let together = offers.iter().rposition(is_called).map_or(0, |at| at + 1);
        let mut count = ValueCount::new(pool, kind);
        for (at, offer) in offers.iter().enumerate() {
            if at < together || is_other_kind(offer) {
                count.add(self.id(node, offer), &self.supply.labels(node.pool, offer.offering));
            }
        }
        Ok(Listed { offers, together, choice: count.found().map(LabelChoice::from).collect(), more })
    }
}
