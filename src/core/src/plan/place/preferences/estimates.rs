//! What new nodes with certain properties cost, roughly: to weigh preferences before anything is packed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};

use crate::model::Requirement;
use crate::rules;
use crate::rules::labels::Labels;
use crate::supply::offerings::{Admissions, Availability, Supply};

/// PodLabels wants nodes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buyers<'d> {
    /// Index into the signatures that the estimates were made for.
    pub signature: usize,
    /// What one pod takes.
    pub one: &'d ResourceList,
    pub count: u64,
    /// What all take together that could share such nodes: few pods pay for a node that they do not fill.
    pub crowd: &'d ResourceList,
}

/// What is on offer under some requirements.
#[derive(Debug, Default)]
struct Offered {
    /// By weight of the pools and capacity (index into [`Supply::capacities`]): the cheapest price.
    prices: BTreeMap<Reverse<u32>, BTreeMap<usize, UsdPerHour>>,
    /// Capacities of offerings that cannot be had now.
    held_back: BTreeSet<usize>,
    /// How many offerings with a price there are.
    size: usize,
}

/// What there is to be bought for some signatures.
#[derive(Debug)]
pub(crate) struct PriceEstimates<'s, 'a> {
    supply: &'s Supply<'a>,
    admissions: Admissions,
    stalls: BTreeMap<(usize, Vec<Requirement>), Offered>,
}

impl<'s, 'a> PriceEstimates<'s, 'a> {
    pub fn new(supply: &'s Supply<'a>, admissions: Admissions) -> Self {
        Self { supply, admissions, stalls: BTreeMap::new() }
    }

    fn offered(&mut self, signature: usize, wanted: &[Requirement]) -> &Offered {
        let key = (signature, wanted.to_vec());
        if !self.stalls.contains_key(&key) {
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
                        Availability::Priced(_) | Availability::TakenBack(..) => {
                            let Some(price) = offer.availability.weighed() else { continue };
                            found.size += 1;
                            // No pool is preferred for what is taken back.
                            let is_taken_back = matches!(offer.availability, Availability::TakenBack(..));
                            let weight = if is_taken_back { Reverse(0) } else { weight };
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
            self.stalls.insert(key.clone(), found);
        }
        &self.stalls[&key]
    }

    /// What they pay in millionths of micro-dollars per hour where nodes meet these requirements, in the heaviest pools
    /// that hold one of them; `None` where nothing does that can be had now.
    pub fn cost(&mut self, who: Buyers<'_>, wanted: &[Requirement]) -> Option<u128> {
        let capacities = &self.supply.capacities;
        let found = self.offered(who.signature, wanted);
        found.prices.values().find_map(|prices| {
            let of = |(at, price): (&usize, &UsdPerHour)| {
                let capacity = &capacities[*at];
                let full = share(who.crowd, capacity).clamp(1, MILLION);
                let own = share(who.one, capacity) * u128::from(who.count);
                who.one.fits(capacity).then(|| own * u128::from(price.micros()) * MILLION / full)
            };
            prices.iter().filter_map(of).min()
        })
    }

    /// Whether nodes that meet these requirements are sold, but cannot be had now.
    pub fn is_held_back(&mut self, who: Buyers<'_>, wanted: &[Requirement]) -> bool {
        let capacities = &self.supply.capacities;
        self.offered(who.signature, wanted).held_back.iter().any(|at| who.one.fits(&capacities[*at]))
    }

    /// Whether more requirements exclude nothing that these do not exclude.
    pub fn is_same(&mut self, signature: usize, wanted: &[Requirement], more: &[Requirement]) -> bool {
        self.offered(signature, wanted).size == self.offered(signature, more).size
    }

    /// The values of a label that new nodes for them can have.
    pub fn values(&self, who: Buyers<'_>, wanted: &[Requirement], key: &str) -> BTreeSet<String> {
        let mut values = BTreeSet::new();
        for (pool, offered) in self.supply.pools.iter().enumerate() {
            for offer in &offered.offers {
                let labels = self.supply.labels(pool, offer.offering);
                if let Some(value) = labels.label(key)
                    && offer.availability.price().is_some()
                    && !values.contains(value)
                    && self.admissions.admits(pool, who.signature, offer.offering)
                    && who.one.fits(&self.supply.capacities[offer.capacity])
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

/// How much of a capacity some requests take of what they need most of it, in millionths.
fn share(requests: &ResourceList, capacity: &ResourceList) -> u128 {
    let of = |(name, amount): (&ResourceName, u64)| {
        u128::from(amount) * MILLION / u128::from(capacity.get(name.as_str()).max(1))
    };
    requests.iter().map(of).max().unwrap_or(0)
}

/// No nodes for these pods cost less together, whatever they are: of each resource, what it costs where it is cheapest.
/// In micro-dollars per hour. Each is a signature, what one pod takes, and how many there are.
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

/// Micro-dollars for one unit of a resource, in millionths of millionths, rounded down.
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
