//! Amounts of a resource in the API: a quantity as text, or a plain integer.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::int_or_text;

/// A quantity such as `8`, `1500m` or `64Gi`, kept as written. Integers are accepted too, as everywhere in Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Amount(pub String);

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Amount {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        int_or_text::read(
            deserializer,
            "an integer or a quantity in quotes, such as 8 or \"64Gi\"",
            |text: &str| Self(text.to_owned()),
            |number| Some(Self(number.to_string())),
        )
    }
}

impl JsonSchema for Amount {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "maxLength": 40, "x-kubernetes-int-or-string": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_text_are_amounts_and_fractions_must_be_quoted() {
        let read = |json: &str| serde_json::from_str::<Amount>(json);
        assert_eq!(read("8").unwrap(), Amount::from("8"));
        assert_eq!(read("\"64Gi\"").unwrap(), Amount::from("64Gi"));
        let error = read("12.5").unwrap_err().to_string();
        assert!(error.contains("in quotes"), "{error}");
    }
}
