//! The days of a report.

use std::fmt;

use jiff::Timestamp;
use jiff::ToSpan;
use jiff::civil::Date;
use poolwright_controller::clock::{Clock, SystemClock};
use poolwright_report::ledger::midnight;

use crate::args::When;
use crate::exit::Failure;
use crate::price_age;

/// Whole days, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    /// The first day.
    pub first: Date,
    /// The last day.
    pub last: Date,
}

impl Period {
    /// Returns the days that the flags name. No report goes beyond today.
    pub fn of(from: When, to: Option<When>, today: Date) -> Result<Self, Failure> {
        let ago = |days: i32| today.saturating_sub(days.days());
        let first = match from {
            When::Day(day) | When::Month(day) => day,
            When::Days(days) => ago(days - 1),
        };
        let last = match (to, from) {
            (Some(When::Day(day)), _) => day,
            (Some(When::Month(day)), _) | (None, When::Month(day)) => day.last_of_month(),
            (Some(When::Days(days)), _) => ago(days),
            (None, _) => today,
        };
        let last = last.min(today);
        if first > today {
            let message = format!("--from: {first} is in the future; name a day up to today, {today}");
            return Err(Failure::bad_input(message));
        }
        if first > last {
            let message =
                format!("--to: {last} is before --from, {first}; name a later day, or leave --to out");
            return Err(Failure::bad_input(message));
        }
        Ok(Self { first, last })
    }

    /// Returns its days.
    pub fn days(self) -> impl Iterator<Item = Date> {
        self.first.series(1.day()).take_while(move |day| *day <= self.last)
    }

    /// Returns how many days it has.
    pub fn length(self) -> i32 {
        (self.last - self.first).get_days() + 1
    }

    /// Returns the period before, of the same length.
    pub fn before(self) -> Self {
        let last = self.first.saturating_sub(1.day());
        Self { first: self.first.saturating_sub(self.length().days()), last }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(f, "{}", self.first)
        } else {
            write!(f, "{} to {}", self.first, self.last)
        }
    }
}

/// Returns the time up to which a ledger can tell anything: now, or the end of the day that replaces today in examples.
pub fn now(today: Date) -> Timestamp {
    if today == price_age::by_the_clock() {
        SystemClock::new().now()
    } else {
        midnight(today.saturating_add(1.day()))
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn days_months_and_numbers_of_days_are_resolved() {
        let today = date(2026, 11, 30);
        let of = |from, to| Period::of(from, to, today).ok().map(|period| period.to_string());
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(of(When::Days(30), None), said("2026-11-01 to 2026-11-30"));
        assert_eq!(of(When::Days(30), Some(When::Days(1))), said("2026-11-01 to 2026-11-29"));
        assert_eq!(of(When::Month(date(2026, 2, 1)), None), said("2026-02-01 to 2026-02-28"));
        let (one, other) = (When::Month(date(2026, 9, 1)), Some(When::Month(date(2026, 10, 1))));
        assert_eq!(of(one, other), said("2026-09-01 to 2026-10-31"));
        assert_eq!(of(When::Day(today), Some(When::Day(date(2027, 1, 1)))), said("2026-11-30"));
        assert_eq!(of(When::Day(date(2026, 12, 1)), None), None, "the future");
        assert_eq!(of(When::Day(today), Some(When::Day(date(2026, 11, 1)))), None, "backwards");
    }

    #[test]
    fn the_period_before_has_the_same_length() {
        let period = Period { first: date(2026, 11, 1), last: date(2026, 11, 30) };
        assert_eq!((period.length(), period.days().count()), (30, 30));
        assert_eq!(period.before().to_string(), "2026-10-02 to 2026-10-31");
    }
}
