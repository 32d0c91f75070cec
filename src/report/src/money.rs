//! Sums of prices, amounts paid over time, and ratios, in the form that documents show.

use std::fmt;

pub use poolwright_catalog::Usd;
use poolwright_catalog::UsdPerHour;
use serde::{Serialize, Serializer};

/// Milliseconds of an hour.
pub(crate) const HOUR: u128 = 3_600_000;

/// A sum of prices per hour. Unknown prices are counted, never guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// The sum of the known prices.
    #[serde(serialize_with = "usd")]
    pub usd_per_hour: UsdPerHour,
    /// How many prices are unknown.
    pub unknown_prices: usize,
}

impl Cost {
    /// Adds one price.
    pub fn add(&mut self, price: Option<UsdPerHour>) {
        match price {
            Some(price) => self.usd_per_hour += price,
            None => self.unknown_prices += 1,
        }
    }
}

impl FromIterator<Option<UsdPerHour>> for Cost {
    fn from_iter<I: IntoIterator<Item = Option<UsdPerHour>>>(prices: I) -> Self {
        let mut cost = Self::default();
        prices.into_iter().for_each(|price| cost.add(price));
        cost
    }
}

impl fmt::Display for Cost {
    /// Writes the known sum, with a `+` if a price is unknown: `2.012`, `0.00+`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plus = if self.unknown_prices > 0 { "+" } else { "" };
        f.pad(&format!("{}{plus}", self.usd_per_hour))
    }
}

/// A part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// The part.
    pub part: u128,
    /// The whole.
    pub whole: u128,
}

impl Ratio {
    /// Returns the ratio with six decimals. Use it for output only.
    pub fn as_f64(self) -> f64 {
        six_decimals(self.part as f64 / self.whole as f64)
    }
}

impl fmt::Display for Ratio {
    /// Writes a percentage with one decimal, rounded half up; zero if the whole is zero.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.part * 1000 + self.whole / 2).checked_div(self.whole).unwrap_or(0);
        f.pad(&format!("{}.{} %", tenths / 10, tenths % 10))
    }
}

/// Serializes an amount as a number.
pub fn usd<S: Serializer>(amount: &UsdPerHour, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount.as_f64())
}

/// Serializes an amount paid over time as a number.
pub fn amount<S: Serializer>(amount: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(amount.as_f64())
}

/// Serializes an amount as a number, and an unknown one as null.
pub fn maybe_usd<S: Serializer>(amount: &Option<UsdPerHour>, serializer: S) -> Result<S::Ok, S::Error> {
    match amount {
        Some(amount) => usd(amount, serializer),
        None => serializer.serialize_none(),
    }
}

/// Serializes an amount paid over time as a number, and an unknown one as null.
pub fn maybe_amount<S: Serializer>(paid: &Option<Usd>, serializer: S) -> Result<S::Ok, S::Error> {
    match paid {
        Some(paid) => amount(paid, serializer),
        None => serializer.serialize_none(),
    }
}

/// Rounds to six decimals, so that documents show no meaningless digits.
pub fn six_decimals(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sum_shows_that_a_price_in_it_is_unknown() {
        let price = |text: &str| Some(text.parse::<UsdPerHour>().unwrap());
        assert_eq!([price("1.006"), price("1.006")].into_iter().collect::<Cost>().to_string(), "2.012");
        assert_eq!([None].into_iter().collect::<Cost>().to_string(), "0.00+");
    }

    #[test]
    fn money_is_printed_without_float_noise() {
        let print = |text: &str| {
            serde_json::to_string(&Cost { usd_per_hour: text.parse().unwrap(), unknown_prices: 0 }).unwrap()
        };
        assert!(print("8110.300001").contains(":8110.300001,"), "{}", print("8110.300001"));
        assert!(print("0.1").contains(":0.1,"));
    }

    #[test]
    fn the_gap_has_six_decimals_and_is_zero_for_nothing() {
        let gap = |cost: &str, bound: &str| {
            six_decimals(poolwright_solver::gap(cost.parse().unwrap(), bound.parse().unwrap())).to_string()
        };
        assert_eq!(gap("8110.3", "8106.4"), "0.000481");
        assert_eq!(gap("0", "0"), "0");
    }

    #[test]
    fn time_is_paid_by_the_millisecond_and_rounded_up() {
        let price = Some(UsdPerHour::from_micros(3_600_000));
        assert_eq!(Usd::of(price, Duration::from_millis(1)), Usd(1));
        assert_eq!(Usd::of(Some(UsdPerHour::from_micros(1)), Duration::from_millis(1)), Usd(1));
        assert_eq!(Usd::of(None, Duration::from_hours(1)), Usd(0));
        assert_eq!(Usd::of(price, Duration::from_hours(2)).to_string(), "7.20");
    }

    #[test]
    fn a_ratio_is_a_percentage_for_people_and_a_fraction_for_programs() {
        let ratio = Ratio { part: 1, whole: 8 };
        assert_eq!((ratio.to_string().as_str(), ratio.as_f64()), ("12.5 %", 0.125));
        assert_eq!(Ratio { part: 0, whole: 0 }.to_string(), "0.0 %");
    }
}
