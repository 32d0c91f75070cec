//! Spot prices, from DescribeSpotPriceHistory.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html>. With the current time as
//! start time, EC2 returns the current price of each type and zone, and the time since which it is valid. A stable price can be
//! days old. The history has 90 days.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::money::UsdPerHour;
use poolwright_catalog::sanity::{self, Claim};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, UnknownPrice, Zone};
use poolwright_terms::labels;

use crate::id::shown;

/// The default maximum age of a price: a third of the 90 days of history.
pub const DEFAULT_MAX_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// The history's names for Linux. Prices of other products include licences.
const LINUX: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

pub(super) const SOURCE: &str = "EC2 spot price history";
pub(super) const AT_FLOOR: &str =
    "EC2 spot price history: a tenth of the on-demand price, which is AWS's minimum and not a market price";

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotEntry {
    /// The instance type.
    pub instance_type: String,
    /// The name of the zone.
    pub zone: String,
    /// The product: `Linux/UNIX`.
    pub product: String,
    /// The price in dollars per hour, in EC2's format.
    pub price: String,
    /// The time since which the price is valid.
    pub since: Timestamp,
}

/// The spot price of a type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    /// The price; unknown if the latest entry is in quarantine or cannot be parsed.
    pub price: Price,
    /// The time since which the price is valid.
    pub since: Timestamp,
}

/// The reason why an entry is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpotRefusal {
    /// The entry is for another product.
    #[error("a spot price for `{0}`, not for Linux")]
    OtherProduct(String),
    /// The instance type or the zone is invalid.
    #[error("a spot price for `{instance_type}` in `{zone}`, which are not valid names of a type and a zone")]
    NoNames {
        /// The instance type.
        instance_type: String,
        /// The zone.
        zone: String,
    },
    /// The entry is older than the maximum age.
    #[error("a spot price of {instance_type} in {zone} of {since}, which is too old")]
    Stale {
        /// The instance type.
        instance_type: String,
        /// The zone.
        zone: String,
        /// The time since which the price is valid.
        since: Timestamp,
    },
    /// The price is not a number. The type then has no known price in the zone, because older prices are no longer valid.
    #[error("a spot price of {instance_type} in {zone} that is `{text}`, which is not a valid amount")]
    NotAnAmount {
        /// The instance type.
        instance_type: String,
        /// The zone.
        zone: String,
        /// The price in the entry.
        text: String,
    },
}

/// Spot prices by type and zone. A type without a price is not offered as spot capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpotPrices {
    latest: BTreeMap<(InstanceTypeName, Zone), SpotPrice>,
    refused: Vec<SpotRefusal>,
}

impl SpotPrices {
    /// Takes the latest price of each type and zone that is not older than `max_age`. The order of the entries does not matter.
    /// If two entries have the same time, the higher price counts.
    pub fn of_history(
        entries: impl IntoIterator<Item = SpotEntry>,
        now: Timestamp,
        max_age: SignedDuration,
    ) -> Self {
        let mut latest: BTreeMap<(InstanceTypeName, Zone), (Timestamp, Rank, SpotPrice)> = BTreeMap::new();
        let mut refused = Vec::new();
        for entry in entries {
            if let Some(refusal) = unusable(&entry, now, max_age) {
                refused.push(refusal);
                continue;
            }
            let (price, rank) = if let Ok(amount) = entry.price.parse::<UsdPerHour>() {
                (admitted(&entry, amount), Rank::Amount(amount))
            } else {
                refused.push(SpotRefusal::NotAnAmount {
                    instance_type: entry.instance_type.clone(),
                    zone: entry.zone.clone(),
                    text: shown(&entry.price),
                });
                (Price::Unknown(UnknownPrice::Missing), Rank::Unreadable)
            };
            let key = (InstanceTypeName::new(entry.instance_type), Zone::new(entry.zone));
            let found = (entry.since, rank, SpotPrice { price, since: entry.since });
            match latest.get_mut(&key) {
                Some(kept) if (kept.0, kept.1) >= (found.0, found.1) => {}
                Some(kept) => *kept = found,
                None => {
                    latest.insert(key, found);
                }
            }
        }
        let latest = latest.into_iter().map(|(key, (_, _, price))| (key, price)).collect();
        Self { latest, refused }
    }

    /// Returns the price of a type in a zone.
    pub fn get(&self, name: &InstanceTypeName, zone: &Zone) -> Option<&SpotPrice> {
        self.latest.get(&(name.clone(), zone.clone()))
    }

    /// Returns the number of prices.
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Returns whether there are no prices.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Returns the entries that were not used.
    pub fn refused(&self) -> &[SpotRefusal] {
        &self.refused
    }
}

/// The precedence of entries with the same time: an invalid entry, then the higher price.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Amount(UsdPerHour),
    Unreadable,
}

fn unusable(entry: &SpotEntry, now: Timestamp, max_age: SignedDuration) -> Option<SpotRefusal> {
    let (instance_type, zone) = (shown(&entry.instance_type), shown(&entry.zone));
    if !LINUX.contains(&entry.product.as_str()) {
        return Some(SpotRefusal::OtherProduct(shown(&entry.product)));
    }
    let is_name = |text: &str| !text.is_empty() && labels::is_value(text);
    if !is_name(&entry.instance_type) || !is_name(&entry.zone) {
        return Some(SpotRefusal::NoNames { instance_type, zone });
    }
    (now.duration_since(entry.since) > max_age).then_some(SpotRefusal::Stale {
        instance_type,
        zone,
        since: entry.since,
    })
}

fn admitted(entry: &SpotEntry, amount: UsdPerHour) -> Price {
    let day = entry.since.to_zoned(TimeZone::UTC).date();
    let claim = Claim { text: &shown(&entry.price), amount, currency: "USD" };
    sanity::admit(claim, PriceSource::from(SOURCE), Some(day))
}
