//! Exact Kubernetes quantities: `1500m`, `2Gi`, `1e3`.
//!
//! Grammar: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>.

use std::fmt;

use crate::resources::ResourceName;

/// An exact amount, held as billionths: `digits * 10^exponent`, or that times a power of two.
///
/// Like Kubernetes, it rounds anything finer than one billionth up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity {
    nanos: i128,
}

/// The reason why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    #[error("`{0}` is no quantity; write a number with an optional suffix, such as 500m, 2, 1.5 or 16Gi")]
    Malformed(String),
    /// The number has a suffix that does not exist.
    #[error("`{text}` has the unknown suffix `{suffix}`; use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei")]
    UnknownSuffix {
        /// The text.
        text: String,
        /// The suffix.
        suffix: String,
    },
    /// The amount is more than 2^63 - 1 units.
    #[error("`{0}` is too large; a quantity is below 2^63")]
    TooLarge(String),
    /// The amount is below zero, which is invalid here.
    #[error("`{0}` is negative; an amount is zero or more")]
    Negative(String),
}

const NANO: i128 = 1_000_000_000;
/// The maximum of Kubernetes: 2^63 - 1 units.
const MOST: i128 = (i64::MAX as i128) * NANO;

impl Quantity {
    /// Creates a quantity from whole units.
    pub fn units(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANO }
    }

    /// Returns the amount in thousandths, rounded up (towards plus infinity).
    pub fn milli_ceil(self) -> i128 {
        ceil_div(self.nanos, NANO / 1000)
    }

    /// Returns the amount in whole units, rounded up.
    pub fn units_ceil(self) -> i128 {
        ceil_div(self.nanos, NANO)
    }

    /// Returns whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }
}

impl fmt::Display for Quantity {
    /// Writes the amount as a plain decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.nanos < 0 { "-" } else { "" };
        let (whole, fraction) = (self.nanos.abs() / NANO, self.nanos.abs() % NANO);
        if fraction == 0 {
            return f.pad(&format!("{sign}{whole}"));
        }
        let digits = format!("{fraction:09}");
        f.pad(&format!("{sign}{whole}.{}", digits.trim_end_matches('0')))
    }
}

/// Parses a quantity.
pub fn parse(text: &str) -> Result<Quantity, QuantityError> {
    let malformed = || QuantityError::Malformed(text.to_owned());
    let too_large = || QuantityError::TooLarge(text.to_owned());
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(malformed());
    }
    let scale = Scale::of(suffix).ok_or_else(|| {
        if suffix.chars().all(char::is_alphabetic) {
            QuantityError::UnknownSuffix { text: text.to_owned(), suffix: suffix.to_owned() }
        } else {
            malformed()
        }
    })?;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Quantity { nanos: 0 });
    }
    // The value is `digits * 10^power * 2^shift` billionths.
    let (power, shift) = match scale {
        Scale::Ten(exponent) => (exponent + 9 - fraction.len() as i64, 0),
        Scale::Two(shift) => (9 - fraction.len() as i64, shift),
    };
    let nanos = scaled(digits, power, shift).filter(|nanos| *nanos <= MOST).ok_or_else(too_large)?;
    Ok(Quantity { nanos: if negative { -nanos } else { nanos } })
}

/// Parses a resource amount in the unit of [`crate::ResourceList`]: thousandths for `cpu`, whole units for all others,
/// rounded up.
pub fn amount(resource: &str, text: &str) -> Result<u64, QuantityError> {
    let quantity = parse(text)?;
    if quantity.is_negative() {
        return Err(QuantityError::Negative(text.to_owned()));
    }
    let units = if resource == ResourceName::CPU { quantity.milli_ceil() } else { quantity.units_ceil() };
    u64::try_from(units).map_err(|_| QuantityError::TooLarge(text.to_owned()))
}

enum Scale {
    Ten(i64),
    Two(u32),
}

impl Scale {
    fn of(suffix: &str) -> Option<Self> {
        Some(match suffix {
            "n" => Self::Ten(-9),
            "u" => Self::Ten(-6),
            "m" => Self::Ten(-3),
            "" => Self::Ten(0),
            "k" => Self::Ten(3),
            "M" => Self::Ten(6),
            "G" => Self::Ten(9),
            "T" => Self::Ten(12),
            "P" => Self::Ten(15),
            "E" => Self::Ten(18),
            "Ki" => Self::Two(10),
            "Mi" => Self::Two(20),
            "Gi" => Self::Two(30),
            "Ti" => Self::Two(40),
            "Pi" => Self::Two(50),
            "Ei" => Self::Two(60),
            _ => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
                if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
                    return None;
                }
                // A larger exponent is out of range anyway.
                let size: i64 = digits.parse().unwrap_or(i64::MAX).min(1_000_000);
                Self::Ten(if exponent.starts_with('-') { -size } else { size })
            }
        })
    }
}

/// Returns `digits * 10^power * 2^shift`, rounded up; `None` when that is far out of range. `digits` has no leading zero.
fn scaled(digits: &str, power: i64, shift: u32) -> Option<i128> {
    if power >= 0 {
        let mantissa: i128 = digits.parse().ok()?;
        let factor = 10i128.checked_pow(u32::try_from(power).ok()?)?;
        return mantissa.checked_mul(factor)?.checked_mul(1i128 << shift);
    }
    // In a long fraction, digits beyond all powers of two here (60 bits) and one billionth can only round up.
    let keep = usize::try_from((digits.len() as i64 + power + 20).max(0)).ok()?.min(digits.len());
    let (head, tail) = digits.split_at(keep);
    let lost = tail.bytes().any(|digit| digit != b'0');
    let power = power + tail.len() as i64;
    let mantissa: i128 = if head.is_empty() { 0 } else { head.parse().ok()? };
    if power >= 0 {
        let factor = 10i128.checked_pow(u32::try_from(power).ok()?)?;
        return mantissa.checked_mul(factor)?.checked_mul(1i128 << shift)?.checked_add(i128::from(lost));
    }
    let Some(divisor) = u32::try_from(-power).ok().and_then(|places| 10i128.checked_pow(places)) else {
        return Some(1);
    };
    let product = mantissa.checked_mul(1i128 << shift)?;
    let (quotient, remainder) = (product / divisor, product % divisor);
    quotient.checked_add(i128::from(remainder != 0 || lost))
}

fn ceil_div(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(value.rem_euclid(by) != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn nanos(text: &str) -> i128 {
        parse(text).unwrap_or_else(|error| panic!("{error}")).nanos
    }

    #[test]
    fn every_suffix_means_what_kubernetes_says() {
        for (text, expected) in [
            ("1", NANO),
            ("+1", NANO),
            ("-1", -NANO),
            ("1.", NANO),
            (".5", NANO / 2),
            ("001.50", NANO * 3 / 2),
            ("1n", 1),
            ("1u", 1_000),
            ("1500m", NANO * 3 / 2),
            ("2k", 2_000 * NANO),
            ("2M", 2_000_000 * NANO),
            ("1G", 1_000_000_000 * NANO),
            ("1T", 1_000_000_000_000 * NANO),
            ("1P", 1_000_000_000_000_000 * NANO),
            ("1E", 1_000_000_000_000_000_000 * NANO),
            ("1e3", 1_000 * NANO),
            ("1E3", 1_000 * NANO),
            ("1e-3", NANO / 1_000),
            ("1E+2", 100 * NANO),
            ("1Ki", 1_024 * NANO),
            ("0.5Gi", (1 << 29) * NANO),
            ("7Ei", (7 << 60) * NANO),
            ("0", 0),
            ("0e999999999999", 0),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn amounts_are_rounded_up_to_what_the_scheduler_counts() {
        assert_eq!(amount("cpu", "0.0001"), Ok(1));
        assert_eq!(amount("cpu", "2"), Ok(2000));
        assert_eq!(amount("cpu", "1e-30"), Ok(1));
        assert_eq!(amount("memory", "1.5"), Ok(2));
        assert_eq!(amount("memory", "100m"), Ok(1));
        assert_eq!(amount("memory", "16Gi"), Ok(16 << 30));
        assert_eq!(amount("nvidia.com/gpu", "8"), Ok(8));
        assert_eq!(nanos("0.1234567891"), 123_456_790);
        assert_eq!(nanos("-0.1234567891"), -123_456_790, "away from zero, as Kubernetes does");
    }

    #[test]
    fn an_invalid_quantity_is_rejected_with_the_reason() {
        let malformed = |text: &str| Err(QuantityError::Malformed(text.to_owned()));
        for text in ["", "-", "+", ".", "1..2", "1.2.3", " 1", "1 ", "--1", "0x10", "1e1.5", "1,5"] {
            assert_eq!(parse(text), malformed(text), "{text:?}");
        }
        for (text, suffix) in [("1ki", "ki"), ("1K", "K"), ("1e", "e"), ("1Gib", "Gib"), ("5GB", "GB")] {
            let expected = QuantityError::UnknownSuffix { text: text.into(), suffix: suffix.into() };
            assert_eq!(parse(text), Err(expected));
        }
        for text in ["8Ei", "10E", "1e30", "9223372036854775808", "1e999999999999999999999"] {
            assert_eq!(parse(text), Err(QuantityError::TooLarge(text.to_owned())));
        }
        assert_eq!(amount("memory", "-1"), Err(QuantityError::Negative("-1".to_owned())));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+]?[0-9.]{0,30}[a-zA-Z]{0,3}[-+]?[0-9]{0,25}") {
            let _ = parse(&text);
        }

        #[test]
        fn a_printed_quantity_parses_to_the_same_value(nanos in -MOST..=MOST) {
            let quantity = Quantity { nanos };
            prop_assert_eq!(parse(&quantity.to_string()), Ok(quantity));
        }

        #[test]
        fn equal_amounts_are_equal_however_they_are_written(units in 0u64..1 << 40) {
            let plain = parse(&units.to_string());
            prop_assert_eq!(&plain, &parse(&format!("{units}000m")));
            prop_assert_eq!(&plain, &parse(&format!("{units}e0")));
            prop_assert_eq!(&plain, &parse(&format!("{units}.000")));
            prop_assert_eq!(parse(&format!("{units}Ki")), parse(&(units * 1024).to_string()));
            prop_assert_eq!(parse(&format!("{units}k")), parse(&format!("{units}E3")));
        }

        #[test]
        fn rounding_up_is_never_too_little_nor_one_too_much(nanos in 0..=MOST) {
            let quantity = Quantity { nanos };
            prop_assert!(quantity.units_ceil() * NANO >= nanos && (quantity.units_ceil() - 1) * NANO < nanos);
            prop_assert!(quantity.milli_ceil() * NANO >= nanos * 1000);
            prop_assert!((quantity.milli_ceil() - 1) * NANO < nanos * 1000);
        }
    }
}
