//! Offerings that failed recently and are held back: they may be bought again later.

use poolwright_catalog::UsdPerHour;

use crate::supply::offerings::{Availability, PoolOffering, Supply};

impl Availability {
    /// Returns whether the offering may be bought, now or when it is no longer held back.
    pub const fn is_sold_in_time(self) -> bool {
        self.is_sold() || self.held_back().is_some()
    }
}

impl Supply<'_> {
    /// Returns the known price at which an offering may be bought, now or when it is no longer held back.
    pub fn price_in_time(&self, pool: usize, offer: &PoolOffering) -> Option<UsdPerHour> {
        match offer.availability {
            Availability::HeldBack(_) => self.offering(pool, offer.offering).price.known(),
            availability => availability.price(),
        }
    }
}
