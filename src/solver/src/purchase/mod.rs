//! What to commit to in advance: how many reservations, savings plans, committed-use discounts and capacity blocks cost least for a
//! known use.
//!
//! An integer program, stated with `good_lp`, chooses the numbers. [`bill`] then counts the cost of these numbers in integers, as the
//! clouds do, and shares no code with the program.

mod bill;
mod program;
#[cfg(test)]
mod tests;

use poolwright_catalog::{Usd, UsdPerHour};

pub use bill::{Bill, bill};

/// Millionths: node-hours are counted in them.
pub const MILLION: u64 = 1_000_000;

/// The steps in which money per hour is committed, as the clouds sell it.
pub const STEP: UsdPerHour = UsdPerHour::from_micros(1_000);

/// The use to pay for, and the offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Market {
    /// The on-demand price of a node, by instance type.
    pub prices: Vec<UsdPerHour>,
    /// The hours, those alike together.
    pub slices: Vec<Slice>,
    /// What may be bought.
    pub offers: Vec<Offer>,
}

/// Hours that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// How many there are.
    pub hours: u64,
    /// The node-hours in each of them, in millionths, by instance type.
    pub nodes: Vec<u64>,
    /// Whether an offer that is bought is there and is paid in them, by offer.
    pub active: Vec<bool>,
}

/// A commitment that may be bought in a whole number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What a unit is.
    pub terms: Terms,
    /// The least number, if any is bought.
    pub least: u64,
    /// The largest number; `None` for no limit.
    pub most: Option<u64>,
}

/// The unit of a commitment. It is paid in each hour, used or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terms {
    /// A node of an instance type, at a price.
    Nodes {
        /// The instance type, as an index of [`Market::prices`].
        kind: usize,
        /// The price of one.
        price: UsdPerHour,
    },
    /// A [`STEP`] of money per hour, which pays for nodes at these rates, by instance type; `None` for those that it does not cover.
    Money(Vec<Option<UsdPerHour>>),
}

/// The best purchase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// The number of units, by offer.
    pub counts: Vec<u64>,
    /// The cost with it.
    pub cost: Usd,
    /// What no numbers can go below, as HiGHS says; `None` if the solver does not say it. It is rounded down to the micro-dollar.
    pub bound: Option<Usd>,
}

/// The program was not solved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the integer program of the purchase was not solved: {0}")]
pub struct Unsolved(pub String);

/// Returns the numbers that cost least. If nothing is saved, nothing is bought.
///
/// # Errors
///
/// The integer solver failed.
pub fn best(market: &Market) -> Result<Purchase, Unsolved> {
    let nothing = vec![0; market.offers.len()];
    let on_demand = bill(market, &nothing).total();
    if market.offers.is_empty() {
        return Ok(Purchase { counts: nothing, cost: on_demand, bound: Some(on_demand) });
    }
    let found = program::least(market)?;
    let cost = bill(market, &found.counts).total();
    let (counts, cost) = if cost < on_demand { (found.counts, cost) } else { (nothing, on_demand) };
    let bound = found.bound_micros.map(|micros| {
        // The program counts from the cost on demand. Its arithmetic is that of doubles, so it may be above the cost by a little.
        let above = on_demand.0.saturating_add_signed(micros);
        Usd(above.min(cost.0))
    });
    Ok(Purchase { counts, cost, bound })
}

impl Market {
    /// Returns the largest number of an offer that any hour could use, within its limits. Not below its least number.
    pub fn most(&self, at: usize) -> u64 {
        let offer = &self.offers[at];
        let of = |slice: &Slice| match &offer.terms {
            Terms::Nodes { kind, .. } => slice.nodes[*kind].div_ceil(MILLION),
            Terms::Money(rates) => {
                let spent = rates.iter().zip(&slice.nodes);
                let spent = spent.filter_map(|(rate, nodes)| {
                    Some(u128::from(rate.as_ref()?.micros()) * u128::from(*nodes))
                });
                let steps = spent.sum::<u128>().div_ceil(u128::from(MILLION) * u128::from(STEP.micros()));
                u64::try_from(steps).unwrap_or(u64::MAX)
            }
        };
        let used = self.slices.iter().filter(|slice| slice.active[at]).map(of).max().unwrap_or(0);
        offer.most.map_or(used, |most| most.min(used)).max(offer.least)
    }
}
