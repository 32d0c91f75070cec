//! The cost of commitments and of the rest on demand, in integers.

use std::cmp::Reverse;

use poolwright_catalog::{Usd, UsdPerHour};

use super::{MILLION, Market, STEP, Slice, Terms};

/// What commitments and the rest cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bill {
    /// The commitments, used or not.
    pub committed: Usd,
    /// The node-hours that they do not pay, on demand.
    pub on_demand: Usd,
}

impl Bill {
    /// Returns the sum.
    pub fn total(self) -> Usd {
        Usd(self.committed.0 + self.on_demand.0)
    }
}

/// Returns the cost of these numbers, by offer.
///
/// Nodes that are paid for are used first. Money then pays where it saves the largest part of the price, and an offer that covers fewer
/// instance types comes before one that covers more. The clouds bill in this order. It is the cheapest with one offer of money; with more,
/// another order could cost less.
pub fn bill(market: &Market, counts: &[u64]) -> Bill {
    let mut committed: u128 = 0;
    // In millionths of a micro-dollar.
    let mut rest: u128 = 0;
    for slice in &market.slices {
        let hours = u128::from(slice.hours);
        let offers = market.offers.iter().zip(counts).zip(&slice.active);
        for ((offer, count), _) in offers.filter(|(_, active)| **active) {
            let price = match &offer.terms {
                Terms::Nodes { price, .. } => price.micros(),
                Terms::Money(_) => STEP.micros(),
            };
            committed += hours * u128::from(price) * u128::from(*count);
        }
        let left = left(market, slice, counts);
        let on_demand = left.iter().zip(&market.prices);
        rest += hours
            * on_demand.map(|(left, price)| u128::from(*left) * u128::from(price.micros())).sum::<u128>();
    }
    Bill { committed: Usd(committed), on_demand: Usd(rest.div_ceil(u128::from(MILLION))) }
}

/// Returns the node-hours that the commitments leave in an hour, by instance type.
fn left(market: &Market, slice: &Slice, counts: &[u64]) -> Vec<u64> {
    let mut left = slice.nodes.clone();
    let mut money = Vec::new();
    for (at, offer) in market.offers.iter().enumerate().filter(|(at, _)| slice.active[*at] && counts[*at] > 0)
    {
        match &offer.terms {
            Terms::Nodes { kind, .. } => {
                left[*kind] = left[*kind].saturating_sub(counts[at].saturating_mul(MILLION));
            }
            Terms::Money(rates) => money.push((rates.iter().flatten().count(), at, rates)),
        }
    }
    money.sort_by_key(|(covered, at, _)| (*covered, *at));
    for (_, at, rates) in money {
        let mut budget = u128::from(counts[at]) * u128::from(STEP.micros()) * u128::from(MILLION);
        let covered = |(kind, rate): (usize, &Option<UsdPerHour>)| {
            let rate = u128::from(rate.as_ref()?.micros()).max(1);
            // In millionths of the rate, which is precise enough to compare discounts.
            let worth = u128::from(market.prices[kind].micros()) * u128::from(MILLION) / rate;
            Some((Reverse(worth), kind, rate))
        };
        let mut kinds: Vec<_> = rates.iter().enumerate().filter_map(covered).collect();
        kinds.sort_unstable();
        for (_, kind, rate) in kinds {
            let whole = rate * u128::from(left[kind]);
            if whole <= budget {
                budget -= whole;
                left[kind] = 0;
            } else {
                // Less than all of it, so it fits.
                let paid = u64::try_from(budget / rate).unwrap_or(u64::MAX);
                left[kind] = left[kind].saturating_sub(paid);
                budget = 0;
            }
        }
    }
    left
}
