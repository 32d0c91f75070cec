//! Ids of AWS accounts, regions and capacity reservations.

use std::fmt;
use std::str::FromStr;

use poolwright_terms::foreign::excerpt;

/// The id of an AWS account: twelve digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountId(String);

/// The code of a region: `us-east-1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region(String);

/// The id of a capacity reservation: `cr-` and hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapacityReservationId(String);

/// The error of parsing one of these ids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The text is not the id of an account.
    #[error("`{0}` is not an AWS account, which is twelve digits")]
    Account(String),
    /// The text is not the code of a region.
    #[error("`{0}` is not the code of an AWS region, which looks like us-east-1")]
    Region(String),
    /// The text is not the id of a capacity reservation.
    #[error("`{0}` is not the id of a capacity reservation, which looks like cr-0123456789abcdef0")]
    Reservation(String),
}

impl FromStr for AccountId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidName::Account(excerpt(text)))
    }
}

impl FromStr for Region {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let parts = text.split('-').collect::<Vec<_>>();
        if text.len() <= 32 && text.bytes().all(allowed) && parts.len() >= 3 && !parts.contains(&"") {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidName::Region(excerpt(text)))
    }
}

impl FromStr for CapacityReservationId {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let digits = text.strip_prefix("cr-").unwrap_or_default();
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if (8..=32).contains(&digits.len()) && digits.bytes().all(is_hex) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidName::Reservation(excerpt(text)))
    }
}

macro_rules! text_of {
    ($($name:ident),*) => {$(
        impl $name {
            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )*};
}

text_of!(AccountId, Region, CapacityReservationId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_aws_writes_them() {
        assert_eq!("123456789012".parse::<AccountId>().unwrap().to_string(), "123456789012");
        for region in ["us-east-1", "us-gov-west-1", "ap-southeast-7", "eusc-de-east-1"] {
            assert_eq!(region.parse::<Region>().unwrap().as_str(), region);
        }
        let id = "cr-0123456789abcdef0";
        assert_eq!(id.parse::<CapacityReservationId>().unwrap().as_str(), id);
    }

    #[test]
    fn other_texts_are_refused_and_not_repeated_whole() {
        let long = "9".repeat(5000);
        for text in ["", "12345678901", "12345678901x", "١٢٣٤٥٦٧٨٩٠١٢", &long] {
            let error = text.parse::<AccountId>().unwrap_err().to_string();
            assert!(error.len() < 200, "{error}");
        }
        for text in ["", "us-east", "us--1", "US-EAST-1", "us-east-1\n", "-us-east-1", &long] {
            assert!(text.parse::<Region>().is_err(), "{text}");
        }
        for text in ["", "cr-", "cr-123", "cr-0123456789ABCDEF0", "i-0123456789abcdef0", &long] {
            assert!(text.parse::<CapacityReservationId>().is_err(), "{text}");
        }
    }
}
