//! A strict JSON parser. It rejects objects with duplicate keys, because they are ambiguous.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use poolwright_terms::foreign::excerpt;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::problem::Unreadable;

/// An object.
pub(super) type Object = BTreeMap<String, Json>;

/// A JSON value without the content of numbers and booleans, which events do not use.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Null,
    /// A number or a boolean.
    Other,
    Text(String),
    List(Vec<Self>),
    Object(Object),
}

/// Parses a JSON object. It skips a byte order mark.
pub(super) fn object(text: &str) -> Result<Object, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let problem = |cause: String| Unreadable::NotJson { cause, excerpt: excerpt(text) };
    // serde_json limits the depth to 128.
    match serde_json::from_str(text).map_err(|error| problem(error.to_string()))? {
        Json::Object(object) => Ok(object),
        _ => Err(problem("it is a JSON value of another type".to_owned())),
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E: de::Error>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Json, E> {
        Ok(Json::Other)
    }
    fn visit_u64<E: de::Error>(self, _: u64) -> Result<Json, E> {
        Ok(Json::Other)
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Other)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }
    fn visit_string<E: de::Error>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value()?;
            match object.entry(key) {
                Entry::Vacant(free) => free.insert(value),
                Entry::Occupied(taken) => {
                    return Err(de::Error::custom(format_args!(
                        "the key `{}` occurs twice",
                        excerpt(taken.key())
                    )));
                }
            };
        }
        Ok(Json::Object(object))
    }
}
