//! Spot prices: what DescribeSpotPriceHistory says now.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html>. Asked with the start
//! time now, EC2 gives the price of each type and zone that is in force, with the time at which it came into force: a price
//! that has been steady for days is days old and still the price. History reaches back 90 days.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use poolwright_catalog::money::UsdPerHour;
use poolwright_catalog::sanity::{self, Claim};
use poolwright_catalog::{InstanceTypeName, Price, PriceSource, UnknownPrice, Zone};
use poolwright_terms::labels;

use crate::id::shown;

/// How old a price may be, unless somebody says otherwise: a third of what the history reaches back.
pub const DEFAULT_MAX_AGE: SignedDuration = SignedDuration::from_hours(30 * 24);

/// What the history calls Linux. What is sold under other names has licences in its price.
const LINUX: [&str; 2] = ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"];

pub(super) const SOURCE: &str = "EC2 spot price history";
pub(super) const AT_FLOOR: &str =
    "EC2 spot price history: a tenth of on-demand, AWS's floor, so no market price";

/// One entry of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotEntry {
    /// Type.
    pub instance_type: String,
    /// Zone, by its name.
    pub zone: String,
    /// What runs on it: `Linux/UNIX`.
    pub product: String,
    /// Dollars per hour, as EC2 writes them.
    pub price: String,
    /// Since when.
    pub since: Timestamp,
}

/// The spot price of a type in a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotPrice {
    /// The price; unknown where the latest entry is in quarantine or cannot be read.
    pub price: Price,
    /// Since when.
    pub since: Timestamp,
}

/// Why an entry says nothing usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpotRefusal {
    /// Another product.
    #[error("a spot price for `{0}`, not for Linux")]
    OtherProduct(String),
    /// Names that cannot be those of a type and a zone.
    #[error("a spot price for `{instance_type}` in `{zone}`, which cannot be the names of a type and a zone")]
    NoNames {
        /// Type.
        instance_type: String,
        /// Zone.
        zone: String,
    },
    /// Older than a price that is in force can be.
    #[error("a spot price of {instance_type} in {zone} of {since}, too old to go by")]
    Stale {
        /// Type.
        instance_type: String,
        /// Zone.
        zone: String,
        /// Since when.
        since: Timestamp,
    },
    /// No amount of money. The type has no known price there then, for an older one is no longer in force.
    #[error("a spot price of {instance_type} in {zone} that is `{text}`, which is no amount of dollars")]
    NotAnAmount {
        /// Type.
        instance_type: String,
        /// Zone.
        zone: String,
        /// What it says.
        text: String,
    },
}

/// Spot prices by type and zone. What is not there is not offered as spot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpotPrices {
    latest: BTreeMap<(InstanceTypeName, Zone), SpotPrice>,
    refused: Vec<SpotRefusal>,
}

impl SpotPrices {
    /// The latest price of each type and zone, as long as it is no older than `max_age`. Entries may come in any order; of
    /// two of one time the dearer counts.
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

    /// The price of a type in a zone.
    pub fn get(&self, name: &InstanceTypeName, zone: &Zone) -> Option<&SpotPrice> {
        self.latest.get(&(name.clone(), zone.clone()))
    }

    /// How many types and zones have one.
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// Entries that were not used.
    pub fn refused(&self) -> &[SpotRefusal] {
        &self.refused
    }
}

/// Which of two entries of one time counts: what cannot be read, then the dearer.
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
