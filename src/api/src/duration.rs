//! Durations in the API: `90s`, `5m`, `1h30m`, and `Never` for fields that allow it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use jiff::SignedDuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// The pattern of [`DurationText`]. At most nine digits for each part, so that no sum overflows.
pub(crate) const PATTERN: &str = "^([0-9]{1,9}(ms|s|m|h))+$";
/// The pattern of [`ExpiryText`].
pub(crate) const PATTERN_OR_NEVER: &str = "^(([0-9]{1,9}(ms|s|m|h))+|Never)$";
/// The pattern of [`IdleText`].
pub(crate) const PATTERN_OR_AUTO: &str = "^(([0-9]{1,9}(ms|s|m|h))+|Never|auto)$";
/// The maximum length. Longer texts are no meaningful durations.
const MAX_LENGTH: usize = 40;

/// The error for a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a duration; write whole numbers with h, m, s or ms, such as `90s`, `5m` or `1h30m`")]
pub struct DurationError {
    /// The text.
    pub text: String,
}

/// Parses `90s`, `5m`, `1h30m`, `250ms`.
pub fn parse_duration(text: &str) -> Result<SignedDuration, DurationError> {
    let error = || DurationError { text: text.to_owned() };
    if text.is_empty() || text.len() > MAX_LENGTH {
        return Err(error());
    }
    let mut total = SignedDuration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if !(1..=9).contains(&digits) {
            return Err(error());
        }
        let (number, unit) = rest.split_at(digits);
        let number: i64 = number.parse().map_err(|_| error())?;
        // `ms` comes before `m`, as in the pattern.
        let (unit, part) = [
            ("ms", SignedDuration::from_millis(number)),
            ("s", SignedDuration::from_secs(number)),
            ("m", SignedDuration::from_mins(number)),
            ("h", SignedDuration::from_hours(number)),
        ]
        .into_iter()
        .find_map(|(name, part)| unit.strip_prefix(name).map(|left| (left, part)))
        .ok_or_else(error)?;
        total = total.checked_add(part).ok_or_else(error)?;
        rest = unit;
    }
    Ok(total)
}

/// Formats a duration in whole milliseconds: `1h30m`; `90s` becomes `1m30s`, zero is `0s`. Negative durations become `0s`,
/// because the API has none.
pub fn format_duration(duration: SignedDuration) -> String {
    let millis = duration.as_millis().max(0);
    let parts = [
        (millis / 3_600_000, "h"),
        (millis / 60_000 % 60, "m"),
        (millis / 1000 % 60, "s"),
        (millis % 1000, "ms"),
    ];
    let mut text = String::new();
    for (number, unit) in parts {
        if number > 0 {
            // Writing to a String cannot fail.
            let _ = write!(text, "{number}{unit}");
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

/// A duration as text: `90s`, `5m`, `1h30m`. It is kept as written, so that an invalid one is reported as a problem of its object
/// and does not make the object unreadable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DurationText(pub String);

impl DurationText {
    /// Returns the parsed duration.
    pub fn parse(&self) -> Result<SignedDuration, DurationError> {
        parse_duration(&self.0)
    }
}

impl From<SignedDuration> for DurationText {
    fn from(duration: SignedDuration) -> Self {
        Self(format_duration(duration))
    }
}

impl From<&str> for DurationText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for DurationText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN, "maxLength": MAX_LENGTH })
    }
}

/// A duration, or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// After this time.
    After(SignedDuration),
    /// Never.
    Never,
}

/// A duration as text, or `Never`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExpiryText(pub String);

impl ExpiryText {
    /// The text for never.
    pub const NEVER: &'static str = "Never";

    /// Returns the parsed value.
    pub fn parse(&self) -> Result<Expiry, DurationError> {
        if self.0 == Self::NEVER { Ok(Expiry::Never) } else { parse_duration(&self.0).map(Expiry::After) }
    }
}

impl From<&str> for ExpiryText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Display for ExpiryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl JsonSchema for ExpiryText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DurationOrNever".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN_OR_NEVER, "maxLength": MAX_LENGTH })
    }
}

/// The time that a node may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// This time.
    After(SignedDuration),
    /// No limit.
    Never,
    /// The time that costs least.
    Auto,
}

/// A duration as text, `Never` or `auto`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdleText(pub String);

impl IdleText {
    /// The text for the time that costs least.
    pub const AUTO: &'static str = "auto";

    /// Returns the parsed value.
    pub fn parse(&self) -> Result<Idle, DurationError> {
        match self.0.as_str() {
            ExpiryText::NEVER => Ok(Idle::Never),
            Self::AUTO => Ok(Idle::Auto),
            text => parse_duration(text).map(Idle::After),
        }
    }
}

impl From<&str> for IdleText {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl JsonSchema for IdleText {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "DurationNeverOrAuto".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": PATTERN_OR_AUTO, "maxLength": MAX_LENGTH })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse_duration("90s"), Ok(SignedDuration::from_secs(90)));
        assert_eq!(parse_duration("5m"), Ok(SignedDuration::from_mins(5)));
        assert_eq!(parse_duration("1h30m"), Ok(SignedDuration::from_mins(90)));
        assert_eq!(parse_duration("250ms"), Ok(SignedDuration::from_millis(250)));
        assert_eq!(parse_duration("0s"), Ok(SignedDuration::ZERO));
    }

    #[test]
    fn an_invalid_duration_is_rejected_with_a_hint() {
        for text in
            ["", "5", "m", "5 m", "-5m", "1.5h", "5d", "Never", "1234567890s", "5m5", &"1h".repeat(30)]
        {
            let error = parse_duration(text).expect_err(text);
            assert!(error.to_string().contains("such as `90s`"), "{error}");
        }
    }

    #[test]
    fn never_is_a_value_only_where_something_may_be_left_undone() {
        assert_eq!(ExpiryText::from("Never").parse(), Ok(Expiry::Never));
        assert_eq!(ExpiryText::from("5m").parse(), Ok(Expiry::After(SignedDuration::from_mins(5))));
        assert!(ExpiryText::from("never").parse().is_err());
        assert!(ExpiryText::from("auto").parse().is_err());
    }

    #[test]
    fn the_time_of_an_empty_node_is_a_duration_never_or_auto() {
        assert_eq!(IdleText::from("Never").parse(), Ok(Idle::Never));
        assert_eq!(IdleText::from("auto").parse(), Ok(Idle::Auto));
        assert_eq!(IdleText::from("90s").parse(), Ok(Idle::After(SignedDuration::from_secs(90))));
        assert!(IdleText::from("Auto").parse().is_err());
    }

    proptest! {
        #[test]
        fn a_duration_written_is_the_duration_read(millis in 0i64..10_000_000_000) {
            let duration = SignedDuration::from_millis(millis);
            prop_assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,60}") {
            let _ = parse_duration(&text);
        }
    }
}
