//! Price estimates by place, for the choice of places before packing.

use std::collections::BTreeMap;

use poolwright_catalog::{ResourceList, ResourceName, UsdPerHour};

use crate::plan::place::topology::places::{NONE, Place, Places};
use crate::supply::offerings::{Admissions, Availability, Supply};

/// The distinct places (cells) for pods with rules over the same keys.
#[derive(Debug)]
pub(crate) struct PlaceLayout {
    /// The values of each cell by key; [`NONE`] for keys that do not matter.
    pub cells: Vec<Place>,
    /// The cell of each room.
    pub of_room: Vec<usize>,
    /// The cell of each offering, by pool.
    of_offer: Vec<Vec<usize>>,
}

impl PlaceLayout {
    pub fn new(keys: &[usize], places: &Places<'_>) -> Self {
        let mut known: BTreeMap<Place, usize> = BTreeMap::new();
        let mut cell = |place: &Place| {
            let mut own: Place = vec![NONE; place.len()].into();
            for key in keys {
                own[*key] = place[*key];
            }
            let next = known.len();
            *known.entry(own).or_insert(next)
        };
        let of_offer = places.offers.iter().map(|offers| offers.iter().map(&mut cell).collect()).collect();
        let of_room = places.rooms.iter().map(&mut cell).collect();
        let mut cells: Vec<(Place, usize)> = known.into_iter().collect();
        cells.sort_by_key(|(_, at)| *at);
        Self { cells: cells.into_iter().map(|(place, _)| place).collect(), of_room, of_offer }
    }
}

/// The offerings that pods of one signature can buy in each cell.
#[derive(Debug)]
pub(crate) struct PlacePrices {
    /// Prices by cell.
    cells: Vec<PriceList>,
    /// Whether all cells with offerings have the same offerings.
    alike: bool,
    known: BTreeMap<ResourceList, Vec<u128>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct PriceList {
    /// The lowest price by capacity (index into [`Supply::capacities`]).
    prices: BTreeMap<usize, UsdPerHour>,
    /// The largest capacities. Every other capacity fits into one of them.
    largest: Vec<usize>,
}

impl PlacePrices {
    pub fn new(
        layout: &PlaceLayout,
        supply: &Supply<'_>,
        admissions: &Admissions,
        signature: usize,
        welcome: impl Fn(usize) -> bool,
    ) -> Self {
        let mut cells: Vec<PriceList> = layout.cells.iter().map(|_| PriceList::default()).collect();
        for (pool, offered) in supply.pools.iter().enumerate() {
            if !admissions.tolerated(pool, signature) {
                continue;
            }
            for (at, offer) in offered.offers.iter().enumerate() {
                let price = match offer.availability {
                    Availability::Unpriced => UsdPerHour::ZERO,
                    availability => match availability.weighed() {
                        Some(price) => price,
                        None => continue,
                    },
                };
                if admissions.admits(pool, signature, offer.offering) && welcome(offer.residents) {
                    let known =
                        cells[layout.of_offer[pool][at]].prices.entry(offer.capacity).or_insert(price);
                    *known = price.min(*known);
                }
            }
        }
        for cell in &mut cells {
            let mut sizes: Vec<usize> = cell.prices.keys().copied().collect();
            sizes.sort_by_key(|at| std::cmp::Reverse(supply.capacities[*at].get("cpu")));
            for at in sizes {
                let holds = |other: &usize| supply.capacities[at].fits(&supply.capacities[*other]);
                if !cell.largest.iter().any(holds) {
                    cell.largest.push(at);
                }
            }
        }
        let mut selling = cells.iter().filter(|cell| !cell.prices.is_empty());
        let first = selling.next();
        let alike = selling.all(|cell| Some(cell) == first);
        Self { cells, alike, known: BTreeMap::new() }
    }

    /// Returns whether a cell has an offering that fits these requests.
    pub fn sells(&self, cell: usize, requests: &ResourceList, supply: &Supply<'_>) -> bool {
        self.cells[cell].largest.iter().any(|at| requests.fits(&supply.capacities[*at]))
    }

    /// Returns the estimated cost of a pod in a cell, in millionths of micro-dollars per hour. It is the node's price times the
    /// pod's largest part of a resource, and it is zero if all cells sell the same. Use it only to compare cells.
    pub fn cost(&mut self, cell: usize, requests: &ResourceList, supply: &Supply<'_>) -> u128 {
        if self.alike {
            return 0;
        }
        let rough = rough(requests);
        if !self.known.contains_key(&rough) {
            let costs = self.cells.iter().map(|cell| least_cost(&cell.prices, &rough, supply)).collect();
            self.known.insert(rough.clone(), costs);
        }
        self.known[&rough][cell]
    }
}

/// Returns the lowest cost of a pod with these requests on a node of one of these capacities, as [`cost_of_part`] counts it; the
/// greatest number if none holds it. Capacities are indices into [`Supply::capacities`].
pub(crate) fn least_cost(
    prices: &BTreeMap<usize, UsdPerHour>,
    requests: &ResourceList,
    supply: &Supply<'_>,
) -> u128 {
    let of = |(at, price): (&usize, &UsdPerHour)| {
        let capacity = &supply.capacities[*at];
        requests.fits(capacity).then(|| cost_of_part(requests, capacity, *price))
    };
    prices.iter().filter_map(of).min().unwrap_or(u128::MAX)
}

/// Returns the cost of a pod on a node with this capacity and price, in millionths of micro-dollars per hour: the price times the
/// pod's largest part of a resource.
pub(crate) fn cost_of_part(requests: &ResourceList, capacity: &ResourceList, price: UsdPerHour) -> u128 {
    let share = |(name, amount): (&ResourceName, u64)| {
        u128::from(amount) * 1_000_000 / u128::from(capacity.get(name.as_str()).max(1))
    };
    let share = requests.iter().map(share).max().unwrap_or(0);
    share.saturating_mul(u128::from(price.micros()))
}

/// Returns the requests rounded down to two binary digits, so that only a few distinct ones need an estimate.
fn rough(requests: &ResourceList) -> ResourceList {
    let round = |amount: u64| {
        let unit = 1u64 << amount.checked_ilog2().unwrap_or(0).saturating_sub(1);
        amount / unit * unit
    };
    requests.iter().map(|(name, amount)| (name.clone(), round(amount))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_pod_that_no_node_holds_does_not_overflow() {
        let requests = ResourceList::new().with(ResourceName::CPU, u64::MAX);
        let price = UsdPerHour::from_micros(u64::MAX);
        assert_eq!(cost_of_part(&requests, &ResourceList::new(), price), u128::MAX);
    }
}
