//! The number of units of a buffer in the API: an integer, or `auto`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::int_or_text;

/// The pattern of a word in [`Units`].
pub(crate) const PATTERN: &str = "^auto$";

/// A number of units, or a word for one. It is kept as written, so that an unknown word is reported as a problem of its object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Units {
    /// This number.
    Number(i32),
    /// A word.
    Word(String),
}

impl Units {
    /// The word for as many units as pay.
    pub const AUTO: &'static str = "auto";
}

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        int_or_text::read(
            deserializer,
            "a whole number or auto",
            |text: &str| Self::Word(text.to_owned()),
            |number| i32::try_from(number).ok().map(Self::Number),
        )
    }
}

impl JsonSchema for Units {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Units".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "minimum": 1,
            "maximum": 100,
            "pattern": PATTERN,
            "x-kubernetes-int-or-string": true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_word_are_read_and_written_as_they_are() {
        for (json, units) in [("2", Units::Number(2)), ("\"auto\"", Units::Word("auto".to_owned()))] {
            assert_eq!(serde_json::from_str::<Units>(json).unwrap(), units);
            assert_eq!(serde_json::to_string(&units).unwrap(), json);
        }
        for wrong in ["1.5", "true", "99999999999", "18446744073709551615"] {
            let error = serde_json::from_str::<Units>(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a whole number or auto"), "{error}");
        }
    }
}
