//! JSON, read strictly: an object that has a key twice means two things, and is refused.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::problem::Unreadable;
use crate::text::excerpt;

/// An object.
pub(super) type Object = BTreeMap<String, Json>;

/// JSON without what events have no use for: numbers and truth values are there and no more is known of them.
#[derive(Debug, PartialEq)]
pub(super) enum Json {
    Null,
    /// A number or a truth value.
    Other,
    Text(String),
    List(Vec<Self>),
    Object(Object),
}

/// The object that a text is. A byte order mark before it is no part of it.
pub(super) fn object(text: &str) -> Result<Object, Unreadable> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let problem = |cause: String| Unreadable::NotJson { cause, excerpt: excerpt(text) };
    // Depth is bounded by the reader: 128.
    match serde_json::from_str(text).map_err(|error| problem(error.to_string()))? {
        Json::Object(object) => Ok(object),
        _ => Err(problem("it is another JSON value".to_owned())),
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
                        "the key `{}` is there twice",
                        excerpt(taken.key())
                    )));
                }
            };
        }
        Ok(Json::Object(object))
    }
}
