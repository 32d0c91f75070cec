//! Money as an integer, so that a plan's cost is exact and the same on every machine.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A running cost in US dollars per hour, held as whole micro-dollars per hour (1 USD/h = 1,000,000).
///
/// It is never negative. A missing price is not zero: see [`crate::Price`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UsdPerHour(u64);

/// The reason why a text is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a decimal number.
    #[error("`{0}` is not a decimal number of US dollars per hour")]
    NotANumber(String),
    /// Below zero.
    #[error("`{0}` is negative; a price is zero or more")]
    Negative(String),
    /// Above the largest value of the type.
    #[error("`{0}` is too large for a price")]
    TooLarge(String),
}

impl UsdPerHour {
    /// Zero dollars per hour.
    pub const ZERO: Self = Self(0);
    /// The number of micro-dollars in one dollar.
    pub const MICROS_PER_USD: u64 = 1_000_000;

    /// Creates an amount from whole micro-dollars per hour.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the amount in whole micro-dollars per hour.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Returns the nearest `f64` in dollars per hour. For output only (JSON numbers, metrics).
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::MICROS_PER_USD as f64
    }

    /// Returns `self * count`, saturating.
    pub const fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// Returns the cost of a month of 730 hours, as the clouds' calculators count it.
    pub fn per_month(self) -> Usd {
        Usd(u128::from(self.0) * 730)
    }

    /// Formats the cost with that of a month beside it, for people: `$1.01/h ($734.38/month)`.
    pub fn with_month(self) -> String {
        format!("{self:#} ({:#}/month)", self.per_month())
    }

    /// Returns the amount rounded up to the decimals that people read (`{:#}`): cents, or four decimals below a dollar.
    pub fn rounded_up(self) -> Self {
        let step = if self.0 < Self::MICROS_PER_USD { 100 } else { 10_000 };
        Self(self.0.checked_next_multiple_of(step).unwrap_or(self.0))
    }

    /// Returns `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns `self - other`, or `None` if that would be negative.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(left) => Some(Self(left)),
            None => None,
        }
    }
}

impl Add for UsdPerHour {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for UsdPerHour {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for UsdPerHour {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

const MILLIS_PER_HOUR: u128 = 3_600_000;

/// An amount of money in micro-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(pub u128);

impl Usd {
    /// Computes the amount for a price over a time, by the millisecond, rounded up to the micro-dollar. An unknown price adds
    /// nothing.
    pub fn of(price: Option<UsdPerHour>, time: Duration) -> Self {
        let price = price.map_or(0, |price| u128::from(price.micros()));
        Self((price * time.as_millis()).div_ceil(MILLIS_PER_HOUR))
    }

    /// Reads a plain decimal number of dollars (`1250.50`), rounded half up to the micro-dollar; `None` for any other text.
    pub fn read(text: &str) -> Option<Self> {
        let amount = text.parse::<UsdPerHour>().ok()?;
        Some(Self(amount.micros().into()))
    }

    /// Writes dollars with as many decimals as the amount has, at least two, so that [`Self::read`] returns the same amount.
    pub fn exact(self) -> String {
        UsdPerHour::from_micros(u64::try_from(self.0).unwrap_or(u64::MAX)).to_string()
    }

    /// Returns the nearest `f64` in dollars. Use it for output only.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl fmt::Display for Usd {
    /// Writes dollars and cents, rounded half up: `1234.50`. The alternate form (`{:#}`) is for people, with four decimals
    /// below a dollar: `$1,234.50`, `$0.0512`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.0 + 5_000) / 10_000;
        let (whole, cents) = (cents / 100, cents % 100);
        let tenths = (self.0 + 50) / 100;
        if f.alternate() && whole == 0 && tenths > 0 {
            f.pad(&format!("$0.{tenths:04}"))
        } else if f.alternate() {
            f.pad(&format!("${}.{cents:02}", thousands(whole)))
        } else {
            f.pad(&format!("{whole}.{cents:02}"))
        }
    }
}

impl fmt::Display for UsdPerHour {
    /// Writes dollars with as many decimals as the amount has, at least two: `1.006`, `55.04`, `0.10`.
    ///
    /// The alternate form (`{:#}`) is for people. It has two decimals, and four below a dollar: `$1.01/h`, `$0.5260/h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micros) = (self.0 / Self::MICROS_PER_USD, self.0 % Self::MICROS_PER_USD);
        if !f.alternate() {
            let digits = format!("{micros:06}");
            let trimmed = digits.trim_end_matches('0');
            let decimals = if trimmed.len() < 2 { &digits[..2] } else { trimmed };
            return f.pad(&format!("{whole}.{decimals}"));
        }
        match self.0 {
            0 => f.pad("$0.00/h"),
            1..50 => f.pad("under $0.0001/h"),
            50..999_950 => f.pad(&format!("$0.{:04}/h", (micros + 50) / 100)),
            _ => f.pad(&format!("{:#}/h", Usd(self.0.into()))),
        }
    }
}

/// Writes a number with a comma between groups of three digits.
fn thousands(number: u128) -> String {
    if number < 1_000 {
        number.to_string()
    } else {
        format!("{},{:03}", thousands(number / 1_000), number % 1_000)
    }
}

impl FromStr for UsdPerHour {
    type Err = MoneyError;

    /// Parses a plain decimal (`12.7948475088219`), rounding half up to the micro-dollar. No exponent, no currency sign.
    fn from_str(text: &str) -> Result<Self, MoneyError> {
        let trimmed = text.trim();
        let not_a_number = || MoneyError::NotANumber(trimmed.to_owned());
        if let Some(rest) = trimmed.strip_prefix('-') {
            let is_number = rest.bytes().all(|b| b.is_ascii_digit() || b == b'.') && !rest.is_empty();
            return Err(if is_number { MoneyError::Negative(trimmed.to_owned()) } else { not_a_number() });
        }
        let (whole, fraction) = trimmed.split_once('.').unwrap_or((trimmed, ""));
        let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
        if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
            return Err(not_a_number());
        }
        let too_large = || MoneyError::TooLarge(trimmed.to_owned());
        let dollars: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large())? };
        let mut micros = 0u64;
        for place in 0..6 {
            micros = micros * 10 + fraction.as_bytes().get(place).map_or(0, |digit| u64::from(digit - b'0'));
        }
        if fraction.as_bytes().get(6).is_some_and(|digit| *digit >= b'5') {
            micros += 1;
        }
        dollars
            .checked_mul(Self::MICROS_PER_USD)
            .and_then(|total| total.checked_add(micros))
            .map(Self)
            .ok_or_else(too_large)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_decimal_is_rounded_to_the_micro_dollar() {
        assert_eq!("12.7948475088219".parse(), Ok(UsdPerHour::from_micros(12_794_848)));
        assert_eq!("0.0000005".parse(), Ok(UsdPerHour::from_micros(1)));
        assert_eq!("0.00000049".parse(), Ok(UsdPerHour::from_micros(0)));
    }

    #[test]
    fn a_negative_price_and_a_word_are_told_apart() {
        assert_eq!("-1.5".parse::<UsdPerHour>(), Err(MoneyError::Negative("-1.5".into())));
        assert_eq!("cheap".parse::<UsdPerHour>(), Err(MoneyError::NotANumber("cheap".into())));
        assert_eq!(".".parse::<UsdPerHour>(), Err(MoneyError::NotANumber(".".into())));
        assert_eq!("1e3".parse::<UsdPerHour>(), Err(MoneyError::NotANumber("1e3".into())));
    }

    #[test]
    fn money_prints_the_decimals_it_has_and_at_least_two() {
        assert_eq!(UsdPerHour::from_micros(1_006_000).to_string(), "1.006");
        assert_eq!(UsdPerHour::from_micros(55_040_000).to_string(), "55.04");
        assert_eq!(UsdPerHour::from_micros(100_000).to_string(), "0.10");
        assert_eq!(UsdPerHour::ZERO.to_string(), "0.00");
    }

    #[test]
    fn an_amount_that_is_written_exactly_is_read_as_the_same() {
        for micros in [0, 1, 5_000_000_000, 1_234_567_891] {
            assert_eq!(Usd::read(&Usd(micros).exact()), Some(Usd(micros)));
        }
        assert_eq!(
            (Usd::read("5k"), Usd::read("-1"), Usd::read("1250.5")),
            (None, None, Some(Usd(1_250_500_000)))
        );
    }

    #[test]
    fn an_amount_rounded_up_is_what_people_read_and_never_less() {
        for (micros, read) in [
            (0, "$0.00/h"),
            (1, "$0.0001/h"),
            (200_000, "$0.2000/h"),
            (200_001, "$0.2001/h"),
            (999_901, "$1.00/h"),
            (4_714_000, "$4.72/h"),
            (4_720_000, "$4.72/h"),
        ] {
            let up = UsdPerHour::from_micros(micros).rounded_up();
            assert!(up.micros() >= micros);
            assert_eq!(format!("{up:#}"), read);
        }
    }

    #[test]
    fn people_read_cents_and_four_decimals_below_a_dollar() {
        let words = |micros| format!("{:#}", UsdPerHour::from_micros(micros));
        let amounts = [0, 49, 50, 526_000, 999_949, 999_950, 1_006_000, 1_234_567_895_000].map(words);
        let expected = [
            "$0.00/h",
            "under $0.0001/h",
            "$0.0001/h",
            "$0.5260/h",
            "$0.9999/h",
            "$1.00/h",
            "$1.01/h",
            "$1,234,567.90/h",
        ];
        assert_eq!(amounts, expected);
        assert_eq!(format!("{:>9}|{:#}", Usd(1_999_995_000), Usd(1_999_995_000)), "  2000.00|$2,000.00");
        assert_eq!(format!("{:>10}|{:>#10}", Usd(5_000_000), Usd(5_000_000)), "      5.00|     $5.00");
        assert_eq!(UsdPerHour::from_micros(1_006_000).with_month(), "$1.01/h ($734.38/month)");
    }
}
