//! The documents of texts in YAML or JSON.

use std::fmt;

use poolwright_api::{FieldProblem, key_segment};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::DuplicateKeyPolicy;

/// What to do about a template of Helm.
pub(super) const RENDER: &str =
    "it looks like a template: render it with `helm template`, and give the result to -f";

/// Returns whether a text has actions of Helm in it. Templates of other programs are in double braces, too, but begin otherwise.
pub(super) fn is_template(text: &str) -> bool {
    let is_action = |action: &str| action.starts_with(['-', '.', '$', '/']) || action.starts_with("include ");
    text.split("{{").skip(1).any(|action| is_action(action.trim_start()))
}

/// One document of a text.
pub(super) struct Document {
    /// Its value, with the last of keys that are there twice.
    pub value: Value,
    /// The paths of these keys.
    twice: Vec<String>,
}

impl Document {
    /// Returns a problem for each key that is there twice.
    pub fn problems(&self) -> Vec<FieldProblem> {
        let problem = |path: &String| {
            let path = path.strip_prefix('.').unwrap_or(path);
            FieldProblem::new(path, "duplicate key", "write each key once")
        };
        self.twice.iter().map(problem).collect()
    }
}

/// The documents of a text, which have each key once; empty ones are skipped.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, FieldProblem> {
    let all = read(text)?;
    match all.iter().flat_map(Document::problems).next() {
        Some(problem) => Err(problem),
        None => Ok(all.into_iter().map(|document| document.value).collect()),
    }
}

/// The documents of a text, also those with keys that are there twice; empty ones are skipped.
pub(super) fn read(text: &str) -> Result<Vec<Document>, FieldProblem> {
    // JSON is YAML, but a JSON parser is many times faster, and large lists are usually JSON.
    if text.trim_start().starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Document>();
        if let Ok(documents) = stream.collect::<Result<Vec<_>, _>>() {
            return Ok(documents);
        }
    }
    let error = match yaml::<Value>(text, DuplicateKeyPolicy::Error) {
        Ok(values) => {
            let whole = |value: Value| Document { value, twice: Vec::new() };
            return Ok(values.into_iter().map(whole).collect());
        }
        // The library's advice is for programs that call it.
        Err(error) => error.to_string().replace(", set DuplicateKeyPolicy in Options if acceptable", ""),
    };
    let is_duplicate = error.contains("duplicate mapping key");
    // The other documents and keys may have problems, too. The parser hides duplicates among keys that are numbers.
    if is_duplicate
        && let Ok(documents) = yaml::<Document>(text, DuplicateKeyPolicy::LastWins)
        && documents.iter().any(|document| !document.twice.is_empty())
    {
        return Ok(documents);
    }
    let remedy = if is_template(text) {
        RENDER
    } else if is_duplicate {
        "write each key once"
    } else {
        "correct the syntax"
    };
    Err(FieldProblem::new("", format!("not readable as YAML or JSON: {error}"), remedy))
}

/// Reads the documents of a text in YAML.
fn yaml<'de, T: Deserialize<'de>>(
    text: &'de str,
    duplicate_keys: DuplicateKeyPolicy,
) -> Result<Vec<T>, serde_saphyr::Error> {
    // Keeps the limits against maliciously nested aliases, and lifts those on size, because a cluster has many pods.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
            // The limit on replayed events already bounds aliases, and a long file may use one anchor for each of its objects.
            enforce_alias_anchor_ratio: false,
        },
        duplicate_keys: duplicate_keys,
        // kubectl reads `0400` as the mode that it means.
        legacy_octal_numbers: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// Parsers otherwise keep the last of two keys and say nothing.
impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

fn simple(value: impl Into<Value>) -> Document {
    Document { value: value.into(), twice: Vec::new() }
}

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(simple(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(simple(Value::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Document, D::Error> {
        Document::deserialize(from)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Document, E> {
        Ok(simple(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Document, E> {
        Ok(simple(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Document, E> {
        Ok(simple(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Document, E> {
        Ok(simple(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Document, E> {
        Ok(simple(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Document, A::Error> {
        let (mut all, mut twice) = (Vec::new(), Vec::new());
        while let Some(Document { value, twice: below }) = items.next_element()? {
            twice.extend(below.into_iter().map(|path| format!("[{}]{path}", all.len())));
            all.push(value);
        }
        Ok(Document { value: all.into(), twice })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Document, A::Error> {
        let (mut all, mut twice) = (Map::new(), Vec::new());
        while let Some((key, Document { value, twice: below })) = entries.next_entry::<String, Document>()? {
            twice.extend(below.into_iter().map(|path| format!("{}{path}", key_segment(&key))));
            if all.contains_key(&key) {
                twice.push(key_segment(&key));
            }
            all.insert(key, value);
        }
        Ok(Document { value: all.into(), twice })
    }
}
