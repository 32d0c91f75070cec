//! The limits that must be raised for pods that limits leave out.

use poolwright_catalog::UsdPerHour;

use crate::plan::left_by::LeftBy;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::inputs::UnplacedInputs;
use crate::supply::offerings::{Availability, PoolOffering};

/// The price of an offering, and the limits that one more node of it would break, with what it uses of each.
pub(crate) type Beyond = (Option<UsdPerHour>, Vec<(u32, u64)>);

/// The price of an offering, and what a node of it uses of each limit.
pub(crate) type Uses = (Option<UsdPerHour>, Vec<(u32, u64)>);

/// Returns the limits that keep the nearest of these offerings away. That is the one that breaks the fewest limits, so that raising a
/// single one comes first. Of several, it is one that breaks the preferred limit, then the cheapest. Of those that break the same
/// limits, the amounts are those of the smallest. Returns `None` if one breaks no limit, or if there is none.
pub(crate) fn nearest_beyond(all: &[Beyond], preferred: Option<u32>) -> Option<Vec<(u32, u64)>> {
    let breaks = |beyond: &[(u32, u64)]| beyond.iter().any(|(of, _)| Some(*of) == preferred);
    let (_, nearest) = all
        .iter()
        .min_by_key(|(price, beyond)| (beyond.len(), !breaks(beyond), price.is_none(), *price))
        .filter(|(_, beyond)| !beyond.is_empty())?;
    let is_same =
        |beyond: &&Vec<(u32, u64)>| beyond.iter().map(|(of, _)| of).eq(nearest.iter().map(|(of, _)| of));
    let mut smallest = all.iter().map(|(_, beyond)| beyond).filter(is_same).min()?.clone();
    smallest.sort_by_key(|(of, _)| Some(*of) != preferred);
    Some(smallest)
}

/// Returns the least that one of these nodes uses of a limit.
fn least_use(all: &[Uses], limit: u32) -> u64 {
    let amounts = all.iter().flat_map(|(_, uses)| uses).filter(|(of, _)| *of == limit);
    amounts.map(|(_, amount)| *amount).min().unwrap_or(0)
}

impl UnplacedInputs<'_, '_> {
    /// Returns what a node of an offering uses of each limit if it serves pods of the class.
    pub(crate) fn uses_of(
        &self,
        at: usize,
        offering: usize,
        price: Option<UsdPerHour>,
        class: &PodClass<'_>,
    ) -> Vec<(u32, u64)> {
        self.limits.uses_for(self.supply, at, offering, price, class.gpu_need.as_ref().as_slice())
    }

    /// Returns the limits that one more node of an offering would break if it served pods of the class, with what it uses of each.
    pub(crate) fn beyond_one(
        &self,
        at: usize,
        offer: &PoolOffering,
        class: &PodClass<'_>,
    ) -> Vec<(u32, u64)> {
        let price = self.supply.price_in_time(at, offer);
        self.limits.beyond(&self.uses_of(at, offer.offering, price, class))
    }

    /// Returns the limits that leave the pods of a class out. The solver names the limit that it reached first; another one may
    /// serve them alone. Offerings that are held back count too, unless they are within the limits: if nodes of these are the nearest,
    /// the pods must wait for them besides, unless a node that can be bought now is beyond no more.
    pub(crate) fn left_by_limits(&self, class: &PodClass<'_>, named: u32) -> LeftBy {
        let beyond = |(price, uses): &Uses| (*price, self.limits.beyond(uses));
        let mut all: Vec<Uses> = self.uses_of_fitting(class).collect();
        let mut near: Vec<Beyond> = all.iter().map(beyond).collect();
        let sold = near.len();
        let counts_held = self.held_back(class).is_some_and(|held| !held.limits.is_empty());
        let later = if counts_held { self.uses_of_held_back(class) } else { Vec::new() };
        near.extend(later.iter().map(|(_, uses)| beyond(uses)));
        all.extend(later.iter().map(|(_, uses)| uses.clone()));
        let least = |limit: u32| least_use(&all, limit);
        let Some(nearest) = nearest_beyond(&near, Some(named)) else {
            return LeftBy::limit(named, least(named));
        };
        let (now, in_time) = near.split_at(sold);
        let is_nearest = |(_, beyond): &Beyond| {
            beyond.len() == nearest.len() && beyond.iter().all(|one| nearest.contains(one))
        };
        // The pool of the cheapest node that is the nearest and must be waited for.
        let waits = in_time.iter().zip(&later).filter(|(one, _)| is_nearest(one));
        let waits = waits.min_by_key(|((price, _), _)| (price.is_none(), *price)).map(|(_, (at, _))| *at);
        let waits = waits.filter(|_| !now.iter().any(is_nearest));
        let held = waits.and_then(|at| self.held_back_of(at, class));
        let is_smallest = nearest.first().is_none_or(|(of, amount)| *amount <= least(*of));
        let mut left_by = LeftBy::limits(nearest);
        if !is_smallest {
            left_by = left_by.with("; smaller nodes are beyond other limits and do not count");
        }
        match held {
            Some(held) => left_by.with(&format!("; besides, {}", held.words("it"))),
            None => left_by,
        }
    }

    /// Says which instance type would hold the pods too, because a pool allows its unknown price, if no limit on money excluded it.
    pub(crate) fn barred_unpriced(&self, class: &PodClass<'_>) -> Option<String> {
        let UnplacedInputs { supply, options, .. } = *self;
        supply.pools.iter().enumerate().find_map(|(at, pool)| {
            let kind = |offer: &PoolOffering| &supply.offering(at, offer.offering).id.instance_type;
            let is_barred = |offer: &&PoolOffering| {
                offer.availability == Availability::PriceUnknown
                    && pool.pool.allow_unknown_price.contains(kind(offer))
                    && self.admissions.admits(at, class.signature, offer.offering)
                    && class.requests.fits(&supply.capacities[offer.capacity])
                    && self.colocation.admits(class.profile, &supply.residents[offer.residents])
            };
            let barred =
                pool.offers.iter().find(is_barred).filter(|_| options.has_set_money_limit(pool.pool))?;
            Some(format!(
                "; {} would fit it too, but with a limit usdPerHour, {} buys nothing at an unknown price",
                kind(barred),
                pool.pool.in_words()
            ))
        })
    }
}
