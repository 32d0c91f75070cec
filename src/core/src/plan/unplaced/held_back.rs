//! Offerings that would hold unplaced pods, but are held back because they failed recently.

use std::collections::BTreeSet;

use poolwright_catalog::OfferingId;

use crate::model::MinValuesPolicy;
use crate::plan::pack::classes::PodClass;
use crate::plan::unplaced::beyond::{Beyond, Uses, nearest_beyond};
use crate::plan::unplaced::inputs::{UnplacedInputs, list};
use crate::supply::flexibility;
use crate::supply::held_back::HeldBack;
use crate::supply::offerings::PoolOffering;

impl<'s> UnplacedInputs<'s, '_> {
    /// Returns the offerings that would hold the pods once they are tried again, of the pool where the fewest limits keep the pods off,
    /// then of the one that tries first. `None` if there are none.
    pub(crate) fn held_back(&self, class: &PodClass<'_>) -> Option<HeldBack> {
        let pools = 0..self.supply.pools.len();
        let found = pools.filter_map(|at| self.held_back_of(at, class));
        found.min_by_key(|held| (held.limits.len(), held.first))
    }

    /// Returns the offerings that would hold the pods once they are tried again, if limits allow these but no other.
    pub(crate) fn held_back_within_limits(&self, class: &PodClass<'_>) -> Option<HeldBack> {
        let held = self.held_back(class).filter(|held| held.limits.is_empty())?;
        let mut sold = self.uses_of_fitting(class);
        let is_limited = sold.all(|(_, uses)| !self.limits.beyond(&uses).is_empty());
        is_limited.then_some(held)
    }

    /// Returns whether limits keep the pods off all that can be bought now even if this plan bought nothing for others.
    pub(crate) fn is_beyond_without_others(&self, class: &PodClass<'_>) -> bool {
        self.uses_of_holding(class).all(|(_, uses)| self.limits.is_beyond_without_others(&uses))
    }

    /// Returns the price and the uses of limits of each offering that would hold the pods once it is tried again, with the index of its
    /// pool.
    pub(crate) fn uses_of_held_back(&self, class: &PodClass<'_>) -> Vec<(usize, Uses)> {
        let uses = |at: usize, offer: &PoolOffering| {
            let price = self.supply.price_in_time(at, offer);
            (price, self.uses_of(at, offer.offering, price, class))
        };
        let pools = 0..self.supply.pools.len();
        pools
            .flat_map(|at| self.held_in(at, class).into_iter().map(move |offer| (at, offer)))
            .map(|(at, offer)| (at, uses(at, offer)))
            .collect()
    }

    /// Returns those of one pool.
    pub(crate) fn held_back_of(&self, at: usize, class: &PodClass<'_>) -> Option<HeldBack> {
        let supply = self.supply;
        let offers = self.held_in(at, class);
        let beyond =
            |offer: &PoolOffering| (supply.price_in_time(at, offer), self.beyond_one(at, offer, class));
        let beyond: Vec<Beyond> = offers.iter().map(|offer| beyond(offer)).collect();
        let limits = nearest_beyond(&beyond, None).unwrap_or_default();
        // Those within the limits, if there are any.
        let told = offers.iter().zip(&beyond).filter(|(_, (_, over))| !limits.is_empty() || over.is_empty());
        let told: Vec<&PoolOffering> = told.map(|(offer, _)| *offer).collect();
        let first = told.iter().filter_map(|offer| offer.availability.held_back()).min()?;
        let fitting = self.sold_in_time(at, class);
        let mut sold = fitting.iter().filter(|offer| offer.availability.is_sold());
        let (all, within) = if told.len() == fitting.len() {
            ("the offerings", "")
        } else if limits.is_empty() && sold.all(|offer| !self.beyond_one(at, offer, class).is_empty()) {
            ("the offerings", " and are within the limits")
        } else {
            ("some offerings", "")
        };
        let names: BTreeSet<&OfferingId> =
            told.iter().map(|offer| &supply.offering(at, offer.offering).id).collect();
        Some(HeldBack {
            which: format!("{all} of {}", supply.pools[at].pool.in_words()),
            within,
            names: list(names.into_iter().map(ToString::to_string)),
            first,
            limits,
        })
    }

    /// Returns the offerings of a pool that are held back and would hold the pods, if all that is sold in time leaves the choice that
    /// the pool asks for.
    fn held_in(&self, at: usize, class: &PodClass<'_>) -> Vec<&'s PoolOffering> {
        let mut fitting = self.sold_in_time(at, class);
        if !self.leaves_choice(at, &fitting, class) {
            return Vec::new();
        }
        fitting.retain(|offer| offer.availability.held_back().is_some());
        fitting
    }

    /// Returns the offerings of a pool that hold the pods, and that may be bought now or when they are tried again.
    fn sold_in_time(&self, at: usize, class: &PodClass<'_>) -> Vec<&'s PoolOffering> {
        let supply = self.supply;
        let in_time = supply.pools[at].offers.iter().filter(|offer| offer.availability.is_sold_in_time());
        in_time.filter(|offer| self.suits(at, offer, class)).collect()
    }

    /// Returns whether offerings that hold the pods leave the choice that their pool asks for.
    fn leaves_choice(&self, at: usize, offers: &[&PoolOffering], class: &PodClass<'_>) -> bool {
        let (supply, pool) = (self.supply, self.supply.pools[at].pool);
        if pool.min_values.is_empty() || self.options.min_values == MinValuesPolicy::BestEffort {
            return true;
        }
        let offerings = offers
            .iter()
            .map(|offer| (&supply.offering(at, offer.offering).id, supply.labels(at, offer.offering)));
        let offerings: Vec<_> = offerings.collect();
        offerings.iter().any(|(id, _)| !flexibility::applies(pool, id))
            || (class.gpu_need.is_none() && flexibility::lacking(pool, &offerings).is_empty())
    }
}
