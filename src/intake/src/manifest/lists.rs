//! The objects of documents: lists are taken apart. What a server printed is never refused whole: what is no object is left out
//! there.

use poolwright_api::{FieldProblem, meant};
use serde_json::{Map, Value};

use super::Manifest;
use super::objects::{Object, has_name, is_stored};
use super::texts::{self, Document};
use crate::error::{IntakeError, OfObject};

/// What documents have.
#[derive(Default)]
pub(super) struct Split {
    /// The objects.
    pub objects: Vec<Object>,
    /// What is wrong with the rest.
    pub errors: Vec<IntakeError>,
    /// The same of what stands beside objects that a server printed. Only that is left out.
    pub left_out: Vec<IntakeError>,
}

impl Split {
    /// Takes the documents of a file apart.
    pub fn of(file: &str, documents: Vec<Document>) -> Self {
        let values = || documents.iter().map(|document| &document.value);
        // Beside a written object, something broken is probably written, too.
        let is_dump = values().any(shows_a_server) && !values().any(has_written);
        let mut split = Self::default();
        for (at, document) in documents.into_iter().enumerate() {
            let (place, before) = (format!("document {}", at + 1), split.objects.len());
            let problems = document.problems();
            split.add(document.value, &place, None, is_dump);
            let name = match &split.objects[before..] {
                [object] => object.name(),
                _ => place,
            };
            split.errors.extend(problems.into_iter().map(|problem| problem.of(name.as_str())));
        }
        // Nothing can be planned from the rest of such a file.
        if split.objects.is_empty() {
            split.errors.append(&mut split.left_out);
        }
        split.objects.iter_mut().for_each(|object| file.clone_into(&mut object.file));
        let errors = split.errors.iter_mut().chain(&mut split.left_out);
        errors.for_each(|error| error.file = Some(file.to_owned()));
        split
    }

    /// Adds the objects of a value. `of` is the version and kind of the items of a typed list, and `is_printed` says whether a server
    /// printed what stands around the value.
    pub fn add(&mut self, mut value: Value, place: &str, of: Option<(&str, &str)>, is_printed: bool) {
        if value.is_null() {
            return;
        }
        let is_printed = is_printed || shows_a_server(&value);
        let Some(fields) = value.as_object_mut() else {
            let next = "write apiVersion, kind, metadata and spec";
            return self.tell(place, FieldProblem::new("", "not an object", next), is_printed);
        };
        // Items of a typed list may omit the kind and version of the list.
        if let Some((api_version, kind)) = of {
            fields.entry("apiVersion").or_insert_with(|| api_version.into());
            fields.entry("kind").or_insert_with(|| kind.into());
        }
        let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
        let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
            return self.tell(place, untyped(fields), is_printed);
        };
        if (api_version.as_str(), kind.as_str()) == ("v1", "Status") {
            // What the server did not print is missing, whatever else it printed.
            return self.tell(place, FieldProblem::new("", answer(fields), "fetch the objects again"), false);
        }
        let item_kind = kind.strip_suffix("List");
        match fields.get("items") {
            Some(Value::Null) if item_kind.is_some() => return,
            Some(Value::Array(_)) => {}
            items if (api_version.as_str(), kind.as_str()) == ("v1", "List") => {
                let (cause, next) = match items {
                    Some(_) => ("it is no list", "write a list of objects"),
                    None => ("missing", "add the objects of the list, or remove it"),
                };
                return self.tell(place, FieldProblem::new("items", cause, next), is_printed);
            }
            _ => {}
        }
        let Some(item_kind) = item_kind.filter(|_| fields.get("items").is_some_and(Value::is_array)) else {
            // An empty text says nothing: the object has no UID and no version.
            if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
                meta.retain(|field, value| {
                    !(["uid", "resourceVersion"].contains(&field.as_str()) && *value == "")
                });
            }
            let is_rest = is_printed && !has_name(&value);
            let (file, place) = (String::new(), place.to_owned());
            self.objects.push(Object { file, place, kind, api_version, value, replaced: None, is_rest });
            return;
        };
        let items = fields.get_mut("items").map(Value::take);
        let of = (!item_kind.is_empty()).then_some((api_version.as_str(), item_kind));
        let Some(Value::Array(items)) = items else { return };
        for (at, item) in items.into_iter().enumerate() {
            self.add(item, &format!("{place}, item {}", at + 1), of, is_printed);
        }
    }

    fn tell(&mut self, place: &str, problem: FieldProblem, is_printed: bool) {
        let into = if is_printed { &mut self.left_out } else { &mut self.errors };
        into.push(problem.of(place));
    }

    /// Notes what is left out. Nobody knows whether it makes pods, so it counts as something that is not read.
    pub fn note_left_out(left_out: Vec<IntakeError>, manifest: &mut Manifest) {
        for IntakeError { file, object: place, path, cause, .. } in left_out {
            // Other files have such places, too.
            let name = file.map_or_else(|| place.clone(), |file| format!("{place} of {file}"));
            let path = if path.is_empty() { path } else { format!("{path}: ") };
            manifest.notes.push(format!("{name}: {path}{cause}; it is left out"));
            manifest.left_out.insert(name.clone());
            manifest.unread.push(name);
        }
    }
}

/// Returns whether an API server has stored an object, or at least one of a list.
fn shows_a_server(value: &Value) -> bool {
    let mut items = value["items"].as_array().into_iter().flatten();
    is_stored(value) || items.any(shows_a_server)
}

/// Returns whether there is an object that has a name, and that no API server has stored.
fn has_written(value: &Value) -> bool {
    match value["items"].as_array() {
        Some(items) => items.iter().any(has_written),
        None => has_name(value) && !is_stored(value),
    }
}

/// Says that an object lacks its version or kind.
fn untyped(fields: &Map<String, Value>) -> FieldProblem {
    let misspelt = |key: &'static str| {
        let alike = |other: &&String| *other != key && meant(other, [key]).is_some();
        let written = fields.keys().find(alike).filter(|_| !fields.contains_key(key))?;
        Some(format!("`{key}` instead of `{written}`"))
    };
    let slips: Vec<String> = ["apiVersion", "kind"].into_iter().filter_map(misspelt).collect();
    let next = match slips.join(", and ") {
        none if none.is_empty() => "write both, such as `apiVersion: v1` and `kind: Pod`".to_owned(),
        slips => format!("write {slips}"),
    };
    FieldProblem::new("", "apiVersion or kind is missing", next)
}

/// Returns what is wrong with an answer of an API server that has no objects, such as that of a failed request.
fn answer(status: &Map<String, Value>) -> String {
    let text = |key: &str| status.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("status") == Some("Success") {
        return "it is the answer of a request, not an object".to_owned();
    }
    let why = match (text("reason"), text("message")) {
        (Some(reason), Some(message)) => format!(" ({reason}: {message})"),
        (Some(one), None) | (None, Some(one)) => format!(" ({one})"),
        (None, None) => String::new(),
    };
    format!("it is the answer of a failed request{why}, not an object")
}

/// Puts the objects of a text that name no namespace into this one, as `kubectl apply -n` does. `has_namespace` says of a version and
/// a kind whether its objects have one. Returns `None` if the text cannot be read.
pub fn in_namespace(
    text: &str,
    namespace: &str,
    has_namespace: impl Fn(&str, &str) -> bool,
) -> Option<String> {
    let mut documents = texts::documents(text).ok()?;
    for document in &mut documents {
        put(document, ("", ""), namespace, &has_namespace);
    }
    // Such a text is read as JSON, which is fast.
    let between = if documents.iter().all(Value::is_object) { "\n" } else { "\n---\n" };
    Some(documents.iter().map(Value::to_string).collect::<Vec<_>>().join(between))
}

/// Does the same with a value. `of` are the version and kind that it has if it names none.
fn put(value: &mut Value, of: (&str, &str), namespace: &str, has_namespace: &dyn Fn(&str, &str) -> bool) {
    let text = |field: &str, usual: &str| value[field].as_str().unwrap_or(usual).to_owned();
    let (api_version, kind) = (text("apiVersion", of.0), text("kind", of.1));
    let names_none = value["metadata"]["namespace"].as_str().is_none_or(str::is_empty);
    if let Some(item) = kind.strip_suffix("List")
        && let Some(items) = value.get_mut("items").and_then(Value::as_array_mut)
    {
        let of = if item.is_empty() { ("", "") } else { (api_version.as_str(), item) };
        for item in items {
            put(item, of, namespace, has_namespace);
        }
    } else if names_none
        && has_namespace(&api_version, &kind)
        && let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}
