//! Bodies of requests.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The body of a request: text, or an object from the same process, which needs no text.
#[derive(Clone, Copy)]
pub(super) enum Sent<'b> {
    Text(&'b [u8]),
    Object(&'b Value),
}

impl Sent<'_> {
    /// Returns whether there is no body.
    pub fn is_empty(self) -> bool {
        matches!(self, Self::Text([]))
    }

    pub fn object(self) -> serde_json::Result<Value> {
        match self {
            Self::Text(text) => serde_json::from_slice(text),
            Self::Object(object) => Ok(object.clone()),
        }
    }

    pub fn read<T: DeserializeOwned>(self) -> serde_json::Result<T> {
        match self {
            Self::Text(text) => serde_json::from_slice(text),
            Self::Object(object) => serde_json::from_value(object.clone()),
        }
    }
}
