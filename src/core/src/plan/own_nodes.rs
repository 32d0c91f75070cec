//! The prices of nodes for single pods.

use jiff::Timestamp;
use poolwright_catalog::UsdPerHour;

use crate::model::{PlanOptions, PodSpec, PoolName, Snapshot};
use crate::plan::context::PlanContext;
use crate::plan::prepare;
use crate::rules::pin::Pin;
use crate::supply::limits::Limits;
use crate::supply::offerings::{Admissions, Supply};

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

/// Returns the lowest price of a node that can be bought now for one pod with each of these specs, by pool.
pub(crate) fn by_pool(
    supply: &Supply<'_>,
    limits: &Limits,
    specs: &[&PodSpec],
) -> Vec<Vec<(PoolName, UsdPerHour)>> {
    let pin = Pin::default();
    let signatures: Vec<(&PodSpec, &Pin)> = specs.iter().map(|spec| (*spec, &pin)).collect();
    let admissions = Admissions::new(supply, &signatures);
    let of = |(signature, spec): (usize, &&PodSpec)| {
        let lowest = supply.pools.iter().enumerate().filter_map(|(pool, offered)| {
            let prices = offered.offers.iter().filter_map(|offer| {
                let price = offer.availability.weighed()?;
                let fits = admissions.admits(pool, signature, offer.offering)
                    && spec.requests.fits(&supply.capacities[offer.capacity])
                    && limits.allow(&limits.uses(supply, pool, offer.offering, offer.availability.price()));
                fits.then_some(price)
            });
            Some((offered.pool.name.clone(), prices.min()?))
        });
        lowest.collect()
    };
    specs.iter().enumerate().map(of).collect()
}
