//! Prices that know where they come from. An unknown price is a value of its own and never the cheapest.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::instance::name_type;
use crate::money::UsdPerHour;
use std::fmt;

name_type! {
    /// Where a price was read: a file and its revision, or an API.
    PriceSource
}

/// A price somebody quoted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// The price. Above zero, since the sanity rules quarantine anything else, but for capacity paid for beforehand.
    pub usd_per_hour: UsdPerHour,
    /// Who said so.
    pub source: PriceSource,
    /// The day it was true; `None` where the source does not say.
    pub as_of: Option<Date>,
}

impl Quote {
    /// Whole days between the quote and `today`; `None` where the quote is undated, zero when it is from the future.
    pub fn age_in_days(&self, today: Date) -> Option<u32> {
        age_in_days(self.as_of, today)
    }
}

/// Whole days since a day that somebody states, if somebody does; zero when it is in the future.
pub(crate) fn age_in_days(as_of: Option<Date>, today: Date) -> Option<u32> {
    Some(u32::try_from((today - as_of?).get_days().max(0)).unwrap_or(0))
}

/// What is known about the price of an offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Price {
    /// Quoted, and not implausible.
    Known(Quote),
    /// Nothing to go by. Never bought unless the pool allows it by name.
    Unknown(UnknownPrice),
}

/// Why a price is unknown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum UnknownPrice {
    /// No source has one.
    #[error("no source has a price for it")]
    Missing,
    /// Quoted as zero or less.
    #[error("quarantined: quoted at {quoted}, and nothing is free")]
    NotPositive {
        /// What the source says.
        quoted: String,
    },
    /// A spot price at or above the on-demand price of the same type and region.
    #[error("quarantined: spot at {spot} $/h is not below on-demand at {on_demand} $/h")]
    SpotNotBelowOnDemand {
        /// The spot quote.
        spot: UsdPerHour,
        /// The on-demand quote.
        on_demand: UsdPerHour,
    },
    /// Ten times off what other sizes of its family cost per unit of size.
    #[error(
        "quarantined: {quoted} $/h is off by about ten times or more; its size siblings suggest {expected} $/h"
    )]
    OutOfLine {
        /// What the source says.
        quoted: UsdPerHour,
        /// What the siblings suggest.
        expected: UsdPerHour,
    },
    /// One source states two prices of the same thing.
    #[error("quarantined: one source quotes both {lower} and {higher} $/h")]
    Contradictory {
        /// The lowest quote.
        lower: UsdPerHour,
        /// The highest quote.
        higher: UsdPerHour,
    },
    /// No currency, or one that is not US dollars.
    #[error("quarantined: the currency is `{currency}`, not USD")]
    NotUsd {
        /// What the source says; may be empty.
        currency: String,
    },
}

impl Price {
    /// The amount, when it is known.
    pub fn known(&self) -> Option<UsdPerHour> {
        match self {
            Self::Known(quote) => Some(quote.usd_per_hour),
            Self::Unknown(_) => None,
        }
    }
}
