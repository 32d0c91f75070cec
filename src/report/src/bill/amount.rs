//! Money that may be below zero: savings, and differences.

use std::fmt;

use poolwright_catalog::Usd;
use serde::{Serialize, Serializer};

use super::HOUR;

/// An amount of money in micro-dollars, which may be below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i128);

impl Micros {
    /// Returns what a price per hour costs over a time, rounded half up to the micro-dollar.
    pub fn of(micros_per_hour: u64, millis: u64) -> Self {
        let cost = (u128::from(micros_per_hour) * u128::from(millis) + HOUR / 2) / HOUR;
        Self(i128::try_from(cost).unwrap_or(i128::MAX))
    }

    /// Returns the amount without its sign.
    pub fn absolute(self) -> Usd {
        Usd(self.0.unsigned_abs())
    }

    /// Returns the exact decimal number of dollars: `-0.000001`, `12.50`.
    pub fn decimal(self) -> String {
        let (sign, micros) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let digits = format!("{:06}", micros % 1_000_000);
        let trimmed = digits.trim_end_matches('0');
        let decimals = if trimmed.len() < 2 { &digits[..2] } else { trimmed };
        format!("{sign}{}.{decimals}", micros / 1_000_000)
    }
}

impl fmt::Display for Micros {
    /// Writes the amount as [`Usd`] does, with its sign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        if f.alternate() {
            f.pad(&format!("{sign}{:#}", self.absolute()))
        } else {
            f.pad(&format!("{sign}{}", self.absolute()))
        }
    }
}

impl Serialize for Micros {
    /// Writes the number of dollars.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_exact_as_a_decimal_and_short_for_people() {
        for (micros, decimal, words) in [
            (0, "0.00", "$0.00"),
            (1, "0.000001", "$0.00"),
            (-1_500_000, "-1.50", "-$1.50"),
            (12_345_678_901, "12345.678901", "$12,345.68"),
            (51_200, "0.0512", "$0.0512"),
        ] {
            assert_eq!(
                (Micros(micros).decimal().as_str(), format!("{:#}", Micros(micros)).as_str()),
                (decimal, words)
            );
        }
    }

    #[test]
    fn a_time_costs_its_price_rounded_half_up() {
        assert_eq!(Micros::of(4_000_000, 3_600_000), Micros(4_000_000));
        assert_eq!((Micros::of(1, 1_799_999), Micros::of(1, 1_800_000)), (Micros(0), Micros(1)));
        assert_eq!(Micros::of(1_000_000_000_000, 86_400_000), Micros(24_000_000_000_000));
    }
}
