//! The prices of nodes for single pods.

use std::cell::OnceCell;

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;

use crate::model::{PlanOptions, PodSpec, PoolName, Snapshot};
use crate::plan::context::PlanContext;
use crate::plan::prepare;
use crate::rules;
use crate::rules::pin::Pin;
use crate::supply::limits::Limits;
use crate::supply::offerings::{self, PoolOffering, PoolSupply, Supply};

/// Returns the lowest price of a node that can be bought now for one pod with each of these specs; `None` if none can.
pub(crate) fn cheapest(
    snapshot: &Snapshot,
    now: Timestamp,
    options: &PlanOptions,
    specs: &[&PodSpec],
) -> Vec<Option<UsdPerHour>> {
    let prepared = prepare::prepare(snapshot, now, options);
    let (context, supply) = PlanContext::new(&prepared);
    let limits = Limits::new(&supply, context.snapshot, options);
    let prices = by_pool(&supply, &limits, specs).into_iter();
    prices.map(|pools| pools.into_iter().map(|(_, price)| price).min()).collect()
}

/// An offering of a pool with a known price.
struct PricedOffer<'s> {
    offer: &'s PoolOffering,
    price: UsdPerHour,
    /// Whether the limits allow one more such node. It is worked out at the first question.
    is_allowed: OnceCell<bool>,
}

/// Returns the lowest price of a node that can be bought now for one pod with each of these specs, by pool.
///
/// It asks the cheapest offering first and stops at the first that serves. Most pods fit on one of the cheapest, so few are asked.
pub(crate) fn by_pool(
    supply: &Supply<'_>,
    limits: &Limits,
    specs: &[&PodSpec],
) -> Vec<Vec<(PoolName, UsdPerHour)>> {
    let pin = Pin::default();
    let offers: Vec<Vec<PricedOffer<'_>>> = supply.pools.iter().map(by_price).collect();
    let of = |spec: &&PodSpec| {
        let keys = offerings::keys(spec, &pin);
        // What is known of each capacity, and of each offering of a node class. Most pools of a class share the latter.
        let fits: Vec<OnceCell<bool>> = vec![OnceCell::new(); supply.capacities.len()];
        let admitted: Vec<Vec<OnceCell<bool>>> =
            supply.tables.iter().map(|table| vec![OnceCell::new(); table.labels.len()]).collect();
        let lowest = supply.pools.iter().enumerate().filter_map(|(at, offered)| {
            let pool = offered.pool;
            let own = offerings::are_asked_of_pool(&keys, pool);
            if rules::check_taints(&spec.tolerations, &pool.taints).is_err()
                || own && offerings::selects_another(spec, pool)
            {
                return None;
            }
            let look = |offering: usize| rules::check_labels(spec, &supply.labels(at, offering)).is_ok();
            let admits = |offering: usize| {
                if own {
                    return look(offering);
                }
                *admitted[offered.table][offering].get_or_init(|| look(offering))
            };
            let serves = |priced: &&PricedOffer<'_>| {
                let PoolOffering { offering, capacity, availability, .. } = *priced.offer;
                *fits[capacity].get_or_init(|| spec.requests.fits(&supply.capacities[capacity]))
                    && admits(offering)
                    && *priced.is_allowed.get_or_init(|| {
                        limits.allow(&limits.uses(supply, at, offering, availability.price()))
                    })
            };
            let first = offers[at].iter().find(serves)?;
            Some((pool.name.clone(), first.price))
        });
        lowest.collect()
    };
    specs.iter().map(of).collect()
}

/// Returns the offerings of a pool with a known price, the cheapest first.
fn by_price<'s>(offered: &'s PoolSupply<'_>) -> Vec<PricedOffer<'s>> {
    let priced = |offer: &'s PoolOffering| {
        Some(PricedOffer { offer, price: offer.availability.weighed()?, is_allowed: OnceCell::new() })
    };
    let mut all: Vec<PricedOffer<'s>> = offered.offers.iter().filter_map(priced).collect();
    all.sort_by_key(|priced| priced.price);
    all
}
