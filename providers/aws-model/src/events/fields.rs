//! Reads the fields of a JSON object and checks their presence, type and value.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use poolwright_terms::foreign::excerpt;

use super::problem::Unreadable;
use super::strict::{Json, Object};

/// Reads an optional string. Null counts as absent.
pub(super) fn text<'a>(object: &'a Object, field: &'static str) -> Result<Option<&'a str>, Unreadable> {
    match object.get(field) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Text(text)) => Ok(Some(text)),
        Some(_) => Err(Unreadable::WrongType { field, expected: "a text" }),
    }
}

/// Reads a required string.
pub(super) fn needed<'a>(object: &'a Object, field: &'static str) -> Result<&'a str, Unreadable> {
    text(object, field)?.ok_or(Unreadable::Missing { field })
}

/// Reads a required object.
pub(super) fn object<'a>(object: &'a Object, field: &'static str) -> Result<&'a Object, Unreadable> {
    match object.get(field) {
        None | Some(Json::Null) => Err(Unreadable::Missing { field }),
        Some(Json::Object(inner)) => Ok(inner),
        Some(_) => Err(Unreadable::WrongType { field, expected: "an object" }),
    }
}

/// Reads a list of objects. An absent field counts as an empty list.
pub(super) fn objects<'a>(object: &'a Object, field: &'static str) -> Result<Vec<&'a Object>, Unreadable> {
    let wrong = Unreadable::WrongType { field, expected: "a list of objects" };
    match object.get(field) {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::List(items)) => items
            .iter()
            .map(|item| if let Json::Object(inner) = item { Ok(inner) } else { Err(wrong.clone()) })
            .collect(),
        Some(_) => Err(wrong),
    }
}

/// Reads a required string and parses it.
pub(super) fn parsed<T: std::str::FromStr>(
    object: &Object,
    field: &'static str,
    expected: &'static str,
) -> Result<T, Unreadable> {
    let found = needed(object, field)?;
    found.parse().map_err(|_| bad(field, found, expected))
}

/// Makes the error for an invalid value.
pub(super) fn bad(field: &'static str, found: &str, expected: &'static str) -> Unreadable {
    Unreadable::BadValue { field, found: excerpt(found), expected }
}

/// Parses a time in the format of EventBridge: RFC 3339.
pub(super) fn time(field: &'static str, found: &str) -> Result<Timestamp, Unreadable> {
    // A longer text contains the name of a time zone, which AWS never sends.
    let plain = found.len() <= 35 && !found.contains('[');
    let read = if plain { found.parse().ok() } else { None };
    read.ok_or_else(|| bad(field, found, "a time such as 2026-08-21T12:00:00Z"))
}

/// Parses a time in the format of EventBridge, or of AWS Health: `Sat, 22 Aug 2026 12:00:00 GMT`. It ignores the day of the week,
/// which is wrong in AWS's own example.
pub(super) fn time_of_either_form(field: &'static str, found: &str) -> Result<Timestamp, Unreadable> {
    if found.as_bytes().first().is_some_and(u8::is_ascii_digit) && found.contains('T') {
        return time(field, found);
    }
    let expected = "a time such as Sat, 22 Aug 2026 12:00:00 GMT";
    let date = found.split_once(", ").map_or(found, |(_, date)| date);
    if found.len() > 40 {
        return Err(bad(field, found, expected));
    }
    rfc2822::DateTimeParser::new().parse_timestamp(date).map_err(|_| bad(field, found, expected))
}

/// Returns the message inside an SNS envelope; `None` if the object is not an SNS envelope. Source:
/// <https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html>.
pub(super) fn wrapped_by_sns(object: &Object) -> Result<Option<&str>, Unreadable> {
    let is_sns = text(object, "Type").is_ok_and(|kind| kind == Some("Notification"));
    if is_sns && !object.contains_key("detail") { needed(object, "Message").map(Some) } else { Ok(None) }
}
