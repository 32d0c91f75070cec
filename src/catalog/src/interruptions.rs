//! Rates of interruption by the cloud, with their sources.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::price::{PriceSource, age_in_days};

/// The rate at which the cloud interrupts nodes of an offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interruptions {
    /// The number of interruptions in a million node-hours.
    pub per_million_hours: u32,
    /// The source.
    pub source: PriceSource,
    /// The date of the rate; `None` if the source does not state it.
    pub as_of: Option<Date>,
}

impl Interruptions {
    /// Returns the whole days from its date to `today`; `None` without a date, zero for a future date.
    pub fn age_in_days(&self, today: Date) -> Option<u32> {
        age_in_days(self.as_of, today)
    }
}
