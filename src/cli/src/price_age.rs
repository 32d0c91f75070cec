//! The age of prices. Every answer that uses prices older than [`OLD`] days says so, with the sentence of [`note`].

use jiff::civil::Date;
use jiff::tz::TimeZone;
use poolwright_catalog::{Offering, Price};
use poolwright_controller::clock::{Clock, SystemClock};

/// The greatest age in days of prices that need no sentence. Clouds change list prices seldom, and spot prices all the time.
pub const OLD: i32 = 30;

/// The variable that replaces the date of today. The examples of the documentation set it, so that they stay true.
const TODAY: &str = "POOLWRIGHT_TODAY";

/// Returns the date of today.
pub fn today() -> Date {
    let set = std::env::var(TODAY).ok().and_then(|text| text.parse().ok());
    set.unwrap_or_else(by_the_clock)
}

/// Returns the date of the system's clock.
pub fn by_the_clock() -> Date {
    SystemClock::new().now().to_zoned(TimeZone::UTC).date()
}

/// Returns the date of the oldest price of offerings; `None` if none has a date. An answer counts those that it shows or could have
/// bought: the age of other prices says nothing about it.
pub fn oldest<'a>(offerings: impl IntoIterator<Item = &'a Offering>) -> Option<Date> {
    let dates = offerings.into_iter().filter_map(|offering| match &offering.price {
        Price::Known(quote) => quote.as_of,
        Price::Unknown(_) => None,
    });
    dates.min()
}

/// Returns a sentence if the oldest price is old. `whose` says whose price it is, if the answer also tells of other prices. `remedy`
/// says where newer prices come from.
pub fn note(oldest: Option<Date>, today: Date, whose: &str, remedy: &str) -> Option<String> {
    let oldest = oldest?;
    let days = (today - oldest).get_days();
    (days > OLD).then(|| {
        format!(
            "the oldest price{whose} is of {oldest}, {days} days ago, so costs may differ today; {remedy}"
        )
    })
}

/// Whose prices count for an answer about a plan: the catalogue may have older ones.
pub const BUYABLE: &str = " of what may be bought";

/// Where newer prices come from for commands with `--catalogue`.
pub const CATALOGUE: &str = "--catalogue takes newer prices (docs/catalogue.md)";

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use poolwright_catalog::{InstanceTypeName, OfferingId, PriceSource, Quote, UsdPerHour, Zone};
    use poolwright_terms::CapacityType;

    use super::*;

    fn priced(as_of: Option<Date>) -> Offering {
        let (instance_type, zone) = (InstanceTypeName::from("a"), Zone::from("z"));
        Offering {
            id: OfferingId { instance_type, zone, capacity_type: CapacityType::OnDemand },
            region: None,
            price: Price::Known(Quote {
                usd_per_hour: UsdPerHour::from_micros(1),
                source: PriceSource::from("test"),
                as_of,
            }),
            available: None,
            interruptions: None,
            notice: None,
        }
    }

    #[test]
    fn prices_older_than_thirty_days_are_said_with_their_age_and_a_remedy() {
        let all = [priced(Some(date(2026, 3, 1))), priced(None), priced(Some(date(2026, 1, 31)))];
        assert_eq!(note(oldest(&all), date(2026, 3, 2), "", "ask"), None);
        assert_eq!(
            note(oldest(&all), date(2026, 3, 3), "", "ask").as_deref(),
            Some("the oldest price is of 2026-01-31, 31 days ago, so costs may differ today; ask")
        );
        let of_plan = note(oldest(&all), date(2026, 3, 3), BUYABLE, "ask").expect("it is old");
        assert!(of_plan.starts_with("the oldest price of what may be bought is of 2026-01-31,"), "{of_plan}");
        assert_eq!(note(oldest(&all[..2]), date(2026, 3, 3), "", "ask"), None, "only these count");
        assert_eq!(note(oldest([&priced(None)]), date(2026, 3, 3), "", "ask"), None);
    }
}
