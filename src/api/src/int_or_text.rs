//! Reads values that are an integer or text, as `IntOrString` of Kubernetes.

use std::fmt;

use serde::de::{self, Deserializer, Unexpected};

/// Reads a value from text or a number. `expected` says in errors what is allowed. `of_number` returns `None` for other numbers.
pub(crate) fn read<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
    of_text: fn(&str) -> T,
    of_number: fn(i128) -> Option<T>,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Visitor { expected, of_text, of_number })
}

struct Visitor<T> {
    expected: &'static str,
    of_text: fn(&str) -> T,
    of_number: fn(i128) -> Option<T>,
}

impl<T> Visitor<T> {
    fn number<E: de::Error>(&self, number: i128, written: Unexpected<'_>) -> Result<T, E> {
        (self.of_number)(number).ok_or_else(|| E::invalid_value(written, &self.expected))
    }
}

impl<T> de::Visitor<'_> for Visitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        Ok((self.of_text)(text))
    }
    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.number(number.into(), Unexpected::Signed(number))
    }
    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.number(number.into(), Unexpected::Unsigned(number))
    }
}
