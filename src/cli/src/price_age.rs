//! The age of prices. Every answer that uses prices older than [`OLD`] days says so, with the sentence of [`note`].

use jiff::civil::Date;
use jiff::tz::TimeZone;
use poolwright_catalog::Catalogue;
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

/// Returns the date of the oldest price of catalogues; `None` if none has a date.
pub fn oldest<'a>(catalogues: impl IntoIterator<Item = &'a Catalogue>) -> Option<Date> {
    catalogues.into_iter().filter_map(|catalogue| catalogue.origin().as_of).min()
}

/// Returns a sentence if the oldest price is old. `remedy` says where newer prices come from.
pub fn note(oldest: Option<Date>, today: Date, remedy: &str) -> Option<String> {
    let oldest = oldest?;
    let days = (today - oldest).get_days();
    (days > OLD).then(|| {
        format!("the oldest price is of {oldest}, {days} days ago, so costs may differ today; {remedy}")
    })
}

/// Where newer prices come from for commands with `--catalogue`.
pub const CATALOGUE: &str = "--catalogue takes newer prices (docs/catalogue.md)";

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use poolwright_catalog::{Catalogue, CatalogueOrigin};

    use super::*;

    #[test]
    fn prices_older_than_thirty_days_are_said_with_their_age_and_a_remedy() {
        let of = |as_of| {
            Catalogue::new(CatalogueOrigin { source: "test".to_owned(), as_of }, Vec::new(), Vec::new())
        };
        let all = [of(Some(date(2026, 3, 1))), of(None), of(Some(date(2026, 1, 31)))];
        assert_eq!(note(oldest(&all), date(2026, 3, 2), "ask"), None);
        assert_eq!(
            note(oldest(&all), date(2026, 3, 3), "ask").as_deref(),
            Some("the oldest price is of 2026-01-31, 31 days ago, so costs may differ today; ask")
        );
        assert_eq!(note(oldest([&of(None)]), date(2026, 3, 3), "ask"), None);
    }
}
