//! Prices with their sources. An unknown price is a separate value, and never the cheapest.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::instance::name_type;
use crate::money::UsdPerHour;
use std::fmt;

name_type! {
    /// The source of a price: a file and its revision, or an API.
    PriceSource
}

/// A price from a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The price. It is above zero, except for prepaid capacity: the sanity rules quarantine any other price.
    pub usd_per_hour: UsdPerHour,
    /// The source.
    pub source: PriceSource,
    /// The date of the price; `None` if the source does not state it.
    pub as_of: Option<Date>,
}

impl Quote {
    /// Returns the whole days from the quote to `today`; `None` without a date, zero for a future date.
    pub fn age_in_days(&self, today: Date) -> Option<u32> {
        age_in_days(self.as_of, today)
    }
}

/// Returns the whole days since a date, if there is one; zero for a future date.
pub(crate) fn age_in_days(as_of: Option<Date>, today: Date) -> Option<u32> {
    Some(u32::try_from((today - as_of?).get_days().max(0)).unwrap_or(0))
}

/// The price of an offering, known or unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Price {
    /// A plausible price from a source.
    Known(Quote),
    /// No usable price. Poolwright buys such an offering only if the pool allows its type by name.
    Unknown(UnknownPrice),
}

/// The reason why a price is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum UnknownPrice {
    /// No source has a price.
    #[error("no source has a price for it")]
    Missing,
    /// The quote is zero or less.
    #[error("quarantined: quoted at {quoted}, and nothing is free")]
    NotPositive {
        /// The quote.
        quoted: String,
    },
    /// The spot price is not below the on-demand price of the same type and region.
    #[error("quarantined: spot at {spot:#} is not below on-demand at {on_demand:#}")]
    SpotNotBelowOnDemand {
        /// The spot quote.
        spot: UsdPerHour,
        /// The on-demand quote.
        on_demand: UsdPerHour,
    },
    /// The price is about ten times above or below other sizes of its family, per unit of size.
    #[error(
        "quarantined: {quoted:#} is off by about ten times or more; its size siblings suggest {expected:#}"
    )]
    OutOfLine {
        /// The quote.
        quoted: UsdPerHour,
        /// The price that the siblings suggest.
        expected: UsdPerHour,
    },
    /// One source has two prices for the same offering.
    #[error("quarantined: one source quotes both {lower:#} and {higher:#}")]
    Contradictory {
        /// The lowest quote.
        lower: UsdPerHour,
        /// The highest quote.
        higher: UsdPerHour,
    },
    /// The source states no currency, or one that is not US dollars.
    #[error("quarantined: the currency is `{currency}`, not USD")]
    NotUsd {
        /// The currency in the source; may be empty.
        currency: String,
    },
}

impl Price {
    /// Returns the amount, if it is known.
    pub fn known(&self) -> Option<UsdPerHour> {
        match self {
            Self::Known(quote) => Some(quote.usd_per_hour),
            Self::Unknown(_) => None,
        }
    }
}
