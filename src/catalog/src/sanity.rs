//! Sanity rules. A price that cannot be right is quarantined with the reason, and counts as unknown from then on.
//!
//! A price that is too low by mistake would be bought first, so the rules prefer quarantine. A pool can still allow the offering
//! by name. Each rule has one file. Two rules check one price ([`admit`]), two compare prices ([`quarantine`]).

mod currency;
mod positive;
mod siblings;
mod spot;

use jiff::civil::Date;

use crate::instance::InstanceType;
use crate::money::UsdPerHour;
use crate::offering::Offering;
use crate::price::{Price, PriceSource, Quote};

/// A price in a source, before the rules.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The text in the source.
    pub text: &'a str,
    /// The amount of `text`, if the currency is US dollars.
    pub amount: UsdPerHour,
    /// The currency in the source; may be empty.
    pub currency: &'a str,
}

/// Returns the price, or unknown if a rule about single prices rejects it.
pub fn admit(claim: Claim<'_>, source: PriceSource, as_of: Option<Date>) -> Price {
    match currency::check(claim).or_else(|| positive::check(claim)) {
        Some(reason) => Price::Unknown(reason),
        None => Price::Known(Quote { usd_per_hour: claim.amount, source, as_of }),
    }
}

/// Quarantines each price that contradicts other prices. Offerings of types that are not in `types` stay as they are.
///
/// Size siblings are compared first, so that a quarantined on-demand price is not compared with a spot price.
pub fn quarantine(types: &[InstanceType], offerings: &mut [Offering]) {
    for rule in [siblings::check, spot::check] {
        for (at, reason) in rule(types, offerings) {
            offerings[at].price = Price::Unknown(reason);
        }
    }
}
