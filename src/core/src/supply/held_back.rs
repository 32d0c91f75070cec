//! Offerings that failed recently and are held back: they may be bought again later.

use jiff::Timestamp;
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

/// Offerings of a pool that would hold pods once they are tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeldBack {
    /// Which offerings failed: begins with "the offerings of" or "some offerings of", and the pool.
    pub which: String,
    /// What makes them fewer than all that fit the pods; often empty.
    pub within: &'static str,
    /// Their names.
    pub names: String,
    /// When the first of them is tried again.
    pub first: Timestamp,
    /// The limits that keep the pods off all of them, with what a node uses of each.
    pub limits: Vec<(u32, u64)>,
}

impl HeldBack {
    /// Says what failed and when it is tried again. `it` are the pods that it would hold.
    pub fn words(&self, it: &str) -> String {
        let Self { which, within, names, first, .. } = self;
        format!(
            "{which} that fit {it}{within} failed recently ({names}); the first is tried again at {first}"
        )
    }
}
