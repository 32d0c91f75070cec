//! Price estimates for new nodes that meet certain requirements, to weigh preferences before packing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};

use crate::model::Requirement;
use crate::rules;
use crate::rules::labels::Labels;
use crate::supply::offerings::{Admissions, Availability, Supply};

/// The pods that an estimate is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buyers<'d> {
    /// Index into the signatures that the estimates were made for.
    pub signature: usize,
    /// The requests of one pod.
    pub requests: &'d ResourceList,
    pub count: u64,
    /// The requests of all pods that could share such nodes. If they do not fill a node, they pay for the whole node.
    pub crowd: &'d ResourceList,
}

/// The offerings that meet some requirements.
#[derive(Debug, Default)]
struct Offered {
    /// The lowest price, by weight of the pool and by capacity (index into [`Supply::capacities`]).
    prices: BTreeMap<Reverse<u32>, BTreeMap<usize, UsdPerHour>>,
    /// Capacities of offerings that are held back.
    held_back: BTreeSet<usize>,
    /// The number of offerings with a price.
    size: usize,
}

/// Price estimates for some signatures, computed on demand.
#[derive(Debug)]
pub(crate) struct PriceEstimates<'s, 'a> {
    supply: &'s Supply<'a>,
    admissions: Admissions,
    offered: BTreeMap<(usize, Vec<Requirement>), Offered>,
}

impl<'s, 'a> PriceEstimates<'s, 'a> {
    pub fn new(supply: &'s Supply<'a>, admissions: Admissions) -> Self {
        Self { supply, admissions, offered: BTreeMap::new() }
    }

    fn offered(&mut self, signature: usize, wanted: &[Requirement]) -> &Offered {
        let key = (signature, wanted.to_vec());
        if !self.offered.contains_key(&key) {
            let mut found = Offered::default();
            for (pool, offered) in self.supply.pools.iter().enumerate() {
                if !self.admissions.tolerated(pool, signature) {
                    continue;
                }
                let weight = Reverse(offered.pool.weight);
                for offer in &offered.offers {
                    let labels = self.supply.labels(pool, offer.offering);
                    let preferred = || wanted.iter().all(|requirement| rules::matches(requirement, &labels));
                    if !self.admissions.admits(pool, signature, offer.offering) || !preferred() {
                        continue;
                    }
                    match offer.availability {
                        Availability::Priced(_) | Availability::Reclaimed(..) => {
                            let Some(price) = offer.availability.weighed() else { continue };
                            found.size += 1;
                            // Reclaimed offerings do not make a pool preferred, so they get the lowest weight.
                            let is_reclaimed = matches!(offer.availability, Availability::Reclaimed(..));
                            let weight = if is_reclaimed { Reverse(0) } else { weight };
                            let known = found.prices.entry(weight).or_default();
                            let known = known.entry(offer.capacity).or_insert(price);
                            *known = price.min(*known);
                        }
                        Availability::HeldBack(_) => {
                            found.held_back.insert(offer.capacity);
                        }
                        Availability::Unpriced | Availability::PriceUnknown => {}
                    }
                }
            }
            self.offered.insert(key.clone(), found);
        }
        &self.offered[&key]
    }

    /// Returns the estimated cost of the pods on nodes that meet these requirements, in millionths of micro-dollars per hour. The
    /// nodes are from the pools with the highest weight that fit. Returns `None` if no such offering is available now.
    pub fn cost(&mut self, buyers: Buyers<'_>, wanted: &[Requirement]) -> Option<u128> {
        let capacities = &self.supply.capacities;
        let found = self.offered(buyers.signature, wanted);
        found.prices.values().find_map(|prices| {
            let of = |(at, price): (&usize, &UsdPerHour)| {
                let capacity = &capacities[*at];
                let full = share(buyers.crowd, capacity).clamp(1, MILLION);
                let own = share(buyers.requests, capacity) * u128::from(buyers.count);
                buyers.requests.fits(capacity).then(|| own * u128::from(price.micros()) * MILLION / full)
            };
            prices.iter().filter_map(of).min()
        })
    }

    /// Returns whether nodes that meet these requirements are held back.
    pub fn is_held_back(&mut self, buyers: Buyers<'_>, wanted: &[Requirement]) -> bool {
        let capacities = &self.supply.capacities;
        self.offered(buyers.signature, wanted)
            .held_back
            .iter()
            .any(|at| buyers.requests.fits(&capacities[*at]))
    }

    /// Returns whether the additional requirements exclude no further offerings.
    pub fn is_same(&mut self, signature: usize, wanted: &[Requirement], more: &[Requirement]) -> bool {
        self.offered(signature, wanted).size == self.offered(signature, more).size
    }

    /// Returns the label values that new nodes for these pods can have.
    pub fn values(&self, buyers: Buyers<'_>, wanted: &[Requirement], key: &str) -> BTreeSet<String> {
        let mut values = BTreeSet::new();
        for (pool, offered) in self.supply.pools.iter().enumerate() {
            for offer in &offered.offers {
                let labels = self.supply.labels(pool, offer.offering);
                if let Some(value) = labels.label(key)
                    && offer.availability.price().is_some()
                    && !values.contains(value)
                    && self.admissions.admits(pool, buyers.signature, offer.offering)
                    && buyers.requests.fits(&self.supply.capacities[offer.capacity])
                    && wanted.iter().all(|requirement| rules::matches(requirement, &labels))
                {
                    values.insert(value.to_owned());
                }
            }
        }
        values
    }
}

const MILLION: u128 = 1_000_000;

/// Returns the part of a capacity that requests use, by the resource that they use most, in millionths.
pub(crate) fn share(requests: &ResourceList, capacity: &ResourceList) -> u128 {
    let of = |(name, amount): (&ResourceName, u64)| {
        u128::from(amount) * MILLION / u128::from(capacity.get(name.as_str()).max(1))
    };
    requests.iter().map(of).max().unwrap_or(0)
}

/// Returns a lower bound for the cost of nodes for these pods, in micro-dollars per hour, from each resource at its lowest unit
/// price. Each entry of `pods` is a signature, the requests of one pod, and the number of pods.
pub(crate) fn floor(
    supply: &Supply<'_>,
    admissions: &Admissions,
    pods: &BTreeMap<(usize, &ResourceList), u64>,
) -> u64 {
    let mut units: BTreeMap<(usize, &str), u128> = BTreeMap::new();
    let mut sums: BTreeMap<&str, u128> = BTreeMap::new();
    for ((signature, one), count) in pods {
        for (name, amount) in one.iter() {
            let name = name.as_str();
            let unit = *units
                .entry((*signature, name))
                .or_insert_with(|| cheapest_unit(supply, admissions, *signature, name));
            *sums.entry(name).or_default() += u128::from(amount) * u128::from(*count) * unit;
        }
    }
    let most = sums.into_values().max().unwrap_or(0);
    u64::try_from(most / (MILLION * MILLION)).unwrap_or(u64::MAX)
}

/// Returns the lowest price of one unit of a resource, in millionths of millionths of micro-dollars, rounded down.
fn cheapest_unit(supply: &Supply<'_>, admissions: &Admissions, signature: usize, name: &str) -> u128 {
    let mut least = u128::MAX;
    for (pool, offered) in supply.pools.iter().enumerate() {
        for offer in &offered.offers {
            let of = supply.capacities[offer.capacity].get(name);
            if let Some(price) = offer.availability.price()
                && of > 0
                && admissions.admits(pool, signature, offer.offering)
            {
                least = least.min(u128::from(price.micros()) * MILLION * MILLION / u128::from(of));
            }
        }
    }
    if least == u128::MAX { 0 } else { least }
}
