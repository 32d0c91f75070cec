//! Sanity rules: a price that cannot be right is put in quarantine, with the reason, and counts as unknown from then on.
//!
//! A wrong price that is too low would be bought first, so the rules err towards quarantine; a pool that knows better can
//! allow the offering by name. One rule per file. Two look at one price ([`admit`]), two compare prices
//! ([`quarantine`]).

mod currency;
mod positive;
mod siblings;
mod spot;

use jiff::civil::Date;

use crate::instance::InstanceType;
use crate::money::UsdPerHour;
use crate::offering::Offering;
use crate::price::{Price, PriceSource, Quote};

/// A price as a source states it, before any rule has looked at it.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// As written.
    pub text: &'a str,
    /// The amount `text` stands for, if the currency is US dollars.
    pub amount: UsdPerHour,
    /// The currency the source states; empty where it states none.
    pub currency: &'a str,
}

/// The price behind a claim, as far as the rules that look at one price alone allow it.
pub fn admit(claim: Claim<'_>, source: PriceSource, as_of: Option<Date>) -> Price {
    match currency::check(claim).or_else(|| positive::check(claim)) {
        Some(reason) => Price::Unknown(reason),
        None => Price::Known(Quote { usd_per_hour: claim.amount, source, as_of }),
    }
}

/// Puts in quarantine each price that the prices beside it contradict. Offerings of types that are not among `types` are
/// left as they are.
///
/// Size siblings are compared first: an on-demand price that is itself in quarantine says nothing about a spot price.
pub fn quarantine(types: &[InstanceType], offerings: &mut [Offering]) {
    for rule in [siblings::check, spot::check] {
        for (at, reason) in rule(types, offerings) {
            offerings[at].price = Price::Unknown(reason);
        }
    }
}
