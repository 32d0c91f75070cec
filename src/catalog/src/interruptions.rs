//! How often a cloud takes nodes back, as far as somebody says.

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use crate::price::{PriceSource, age_in_days};

/// How often nodes of an offering are taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Interruptions {
    /// In a million node-hours.
    pub per_million_hours: u32,
    /// Who said so.
    pub source: PriceSource,
    /// The day it was true; `None` where the source does not say.
    pub as_of: Option<Date>,
}

impl Interruptions {
    /// Whole days between the day it was true and `today`; `None` where it is undated, zero when it is from the future.
    pub fn age_in_days(&self, today: Date) -> Option<u32> {
        age_in_days(self.as_of, today)
    }
}
