//! The documents and objects of manifests, before they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use poolwright_api::{FieldProblem, meant};
use poolwright_terms::{GROUP, one_line};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::WrittenObject;
use super::kinds::{KINDS, is_cluster_scoped};
use crate::error::{IntakeError, OfObject, object_name};

/// The annotation of a Deployment and its ReplicaSets with their number in its history.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// The documents of a text; empty ones are skipped.
pub(crate) fn documents(text: &str) -> Result<Vec<Value>, FieldProblem> {
    // JSON is YAML, but a JSON parser is many times faster, and large lists are usually JSON.
    if text.trim_start().starts_with('{') {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Unique>();
        // The YAML parser names the line of a key that is there twice.
        if let Ok(documents) = stream.map(|read| read.map(|read| read.0)).collect::<Result<Vec<_>, _>>() {
            return Ok(documents);
        }
    }
    // Keeps the limits against maliciously nested aliases, and lifts those on size, because a cluster has many pods.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: usize::MAX,
            max_nodes: usize::MAX,
            max_documents: usize::MAX,
            max_total_scalar_bytes: usize::MAX,
        },
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        // The library's advice is for programs that call it.
        let error = error.to_string().replace(", set DuplicateKeyPolicy in Options if acceptable", "");
        let remedy = if error.contains("duplicate mapping key") {
            "write each key once"
        } else {
            "correct the syntax"
        };
        FieldProblem::new("", format!("not readable as YAML or JSON: {error}"), remedy)
    })
}

/// One object of a manifest.
#[derive(Clone)]
pub(super) struct Object {
    pub file: String,
    /// Its place in the file, for messages about objects without a name.
    pub place: String,
    pub kind: String,
    pub api_version: String,
    pub value: Value,
    /// The stored object of the same name, if this one is written and counts instead.
    pub replaced: Option<Value>,
}

/// Splits lists into their objects.
pub(super) fn flatten(
    mut value: Value,
    place: &str,
    of: Option<(&str, &str)>,
    into: &mut Vec<Object>,
    errors: &mut Vec<IntakeError>,
) {
    if value.is_null() {
        return;
    }
    let mut problem =
        |path: &str, cause: &str, next: &str| errors.push(FieldProblem::new(path, cause, next).of(place));
    let Some(fields) = value.as_object_mut() else {
        return problem("", "not an object", "write apiVersion, kind, metadata and spec");
    };
    // Items of a typed list may omit the kind and version of the list.
    if let Some((api_version, kind)) = of {
        fields.entry("apiVersion").or_insert_with(|| api_version.into());
        fields.entry("kind").or_insert_with(|| kind.into());
    }
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) else {
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
        return problem("", "apiVersion or kind is missing", &next);
    };
    if (api_version.as_str(), kind.as_str()) == ("v1", "Status") {
        let cause = answer(fields);
        return problem("", &cause, "fetch the objects again");
    }
    if (api_version.as_str(), kind.as_str()) == ("v1", "List") {
        match fields.get("items") {
            Some(Value::Array(_)) => {}
            Some(Value::Null) => return,
            Some(_) => return problem("items", "it is no list", "write a list of objects"),
            None => return problem("items", "missing", "add the objects of the list, or remove it"),
        }
    }
    let item_kind = kind.strip_suffix("List").filter(|_| fields.get("items").is_some_and(Value::is_array));
    let Some(item_kind) = item_kind else {
        // An empty text says nothing: the object has no UID and no version.
        if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            meta.retain(|field, value| {
                !(["uid", "resourceVersion"].contains(&field.as_str()) && *value == "")
            });
        }
        let (file, place) = (String::new(), place.to_owned());
        into.push(Object { file, place, kind, api_version, value, replaced: None });
        return;
    };
    let items = fields.get_mut("items").map(Value::take);
    let of = (!item_kind.is_empty()).then_some((api_version.as_str(), item_kind));
    let Some(Value::Array(items)) = items else { return };
    for (at, item) in items.into_iter().enumerate() {
        flatten(item, &format!("{place}, item {}", at + 1), of, into, errors);
    }
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

pub(super) fn meta<'a>(value: &'a Value, field: &str) -> Option<&'a str> {
    value.get("metadata")?.get(field)?.as_str().filter(|text| !text.is_empty())
}

pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl Object {
    /// Whether it is a node class of some cloud. The cloud's crate reads it. Any other unknown kind of our group counts as one, so
    /// that the caller, who knows the clouds, reports it.
    pub(super) fn is_node_class(&self) -> bool {
        group(&self.api_version) == GROUP && KINDS.iter().all(|(kind, ..)| *kind != self.kind)
    }

    /// Returns it as written, if it is of our own group and no API server has stored it.
    pub(super) fn written(&self) -> Option<WrittenObject> {
        let is_written = group(&self.api_version) == GROUP && !self.is_stored();
        let object =
            || WrittenObject { file: self.file.clone(), name: self.name(), object: self.value.clone() };
        is_written.then(object)
    }

    pub(super) fn name(&self) -> String {
        let namespace = meta(&self.value, "namespace").or(self.is_namespaced().then_some("default"));
        match meta(&self.value, "name").or_else(|| meta(&self.value, "generateName")) {
            Some(name) => object_name(&self.kind, namespace, Some(name)),
            None => one_line(&format!("{} ({})", self.kind, self.place)).into_owned(),
        }
    }

    /// Returns whether it has a namespace. Unknown kinds count as such.
    pub(super) fn is_namespaced(&self) -> bool {
        !is_cluster_scoped(&self.api_version, &self.kind) && !self.is_node_class()
    }

    /// Returns whether an API server has stored the object: it then has a UID and a version.
    pub(super) fn is_stored(&self) -> bool {
        meta(&self.value, "uid").or(meta(&self.value, "resourceVersion")).is_some()
    }

    /// Returns whether no API server has an object of this name, as far as the files show.
    pub(super) fn is_new(&self) -> bool {
        !self.is_stored() && self.replaced.is_none()
    }

    /// Returns whether it is a pod that waits for no node: it has one, or it has ended.
    pub(super) fn is_placed_pod(&self) -> bool {
        let has_node = self.value["spec"]["nodeName"].as_str().is_some_and(|node| !node.is_empty());
        let has_ended = matches!(self.value["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        self.kind == "Pod" && (has_node || has_ended)
    }

    /// Its namespace, or `default`.
    pub(super) fn namespace(&self) -> &str {
        meta(&self.value, "namespace").unwrap_or("default")
    }

    /// Returns whether a server printed it with the same content as another.
    fn equals(&self, other: &Self) -> bool {
        let bare = |object: &Self| {
            let mut value = object.value.clone();
            if let Some(meta) = value["metadata"].as_object_mut() {
                meta.remove("managedFields");
            }
            value
        };
        bare(self) == bare(other)
    }

    fn version(&self) -> Option<u64> {
        meta(&self.value, "resourceVersion")?.parse().ok()
    }
}

/// Names the objects that only have the beginning of a name as an API server would: no two alike.
pub(super) fn number_generated(objects: &mut [Object]) {
    let of =
        |object: &Object, name: &str| (object.kind.clone(), object.namespace().to_owned(), name.to_owned());
    let names = objects.iter().filter_map(|object| Some(of(object, meta(&object.value, "name")?)));
    let mut names: BTreeSet<_> = names.collect();
    // The numbers up to these are taken.
    let mut last: BTreeMap<_, u64> = BTreeMap::new();
    for object in objects {
        if meta(&object.value, "name").is_some() {
            continue;
        }
        let Some(begin) = meta(&object.value, "generateName").map(str::to_owned) else { continue };
        let number = last.entry(of(object, &begin)).or_default();
        let name = loop {
            *number += 1;
            // The first keeps the beginning as its name.
            let name = if *number == 1 { begin.clone() } else { format!("{begin}{number}") };
            if names.insert(of(object, &name)) {
                break name;
            }
        };
        if name != begin {
            object.value["metadata"]["name"] = name.into();
        }
    }
}

/// Removes objects that are there a second time. Returns notes, and a problem for each object that its author wrote twice. Of two
/// versions that a server printed, the newer counts. A written object counts instead of the stored one, as if it were applied.
pub(super) fn once(objects: &mut Vec<Object>) -> (Vec<String>, Vec<IntakeError>) {
    let mut seen: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut kept: Vec<Object> = Vec::new();
    let (mut equal, mut notes, mut replaced) = (Vec::new(), Vec::new(), Vec::new());
    let mut twice: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for object in std::mem::take(objects) {
        let has_name = meta(&object.value, "name").or_else(|| meta(&object.value, "generateName")).is_some();
        let key = (group(&object.api_version).to_owned(), object.name());
        let Some(first) = seen.get(&key).copied().filter(|_| has_name && object.is_read()) else {
            seen.insert(key, kept.len());
            kept.push(object);
            continue;
        };
        let known = &mut kept[first];
        if known.is_stored() != object.is_stored() {
            // The API server refuses most changes of a pod.
            let takes_stored = object.kind == "Pod";
            let which = if takes_stored { "stored" } else { "written" };
            let is_changed = known.value["spec"]["template"] != object.value["spec"]["template"];
            let stays = if is_changed && !takes_stored {
                ", and its pods that are there keep the old template: a rollout of the new one is not planned"
            } else {
                ""
            };
            notes.push(format!("{}: it is there stored and written; the {which} one counts{stays}", key.1));
            let other =
                if object.is_stored() == takes_stored { std::mem::replace(known, object) } else { object };
            if !takes_stored {
                known.replaced = Some(other.value.clone());
                replaced.push(other);
            }
        } else if !object.is_stored() {
            twice.entry(key.1).or_insert_with(|| [known.file.clone()].into()).insert(object.file);
        } else if known.equals(&object) {
            equal.push(key.1);
        } else {
            let is_newer = object.version() > known.version();
            let which = if is_newer { "the newer" } else { "the first" };
            notes.push(format!("{}: it is there more than once, with differences; {which} counts", key.1));
            if is_newer {
                *known = object;
            }
        }
    }
    without_controllers_of(&replaced, &mut kept);
    *objects = kept;
    if let Some((first, more)) = equal.split_first() {
        let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
        notes.push(format!("{first}{more}: the same is there more than once, and counts once"));
    }
    let problem = || FieldProblem::new("", "it is there more than once", "remove one or rename it");
    let of = |(name, files): (String, BTreeSet<String>)| {
        let file = files.into_iter().collect::<Vec<_>>().join(" and ");
        IntakeError { file: Some(file), ..problem().of(name) }
    };
    (notes, twice.into_iter().map(of).collect())
}

/// Removes the controllers between replaced objects and their pods, such as ReplicaSets. Their numbers are those of before.
fn without_controllers_of(replaced: &[Object], objects: &mut Vec<Object>) {
    if replaced.is_empty() {
        return;
    }
    let mut by_owner: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, object) in objects.iter().enumerate().filter(|(_, object)| object.kind != "Pod") {
        let references = object.value["metadata"]["ownerReferences"].as_array();
        let controllers = references.into_iter().flatten().filter(|one| one["controller"] == true);
        for uid in controllers.filter_map(|one| one["uid"].as_str()) {
            by_owner.entry(uid).or_default().push(at);
        }
    }
    let mut gone: BTreeSet<usize> = BTreeSet::new();
    let mut open: Vec<&str> = replaced.iter().filter_map(|owner| meta(&owner.value, "uid")).collect();
    while let Some(uid) = open.pop() {
        for at in by_owner.get(uid).into_iter().flatten() {
            if gone.insert(*at) {
                open.extend(meta(&objects[*at].value, "uid"));
            }
        }
    }
    let mut at = 0;
    objects.retain(|_| {
        at += 1;
        !gone.contains(&(at - 1))
    });
}

/// A JSON value without keys that are there twice. Parsers otherwise keep the last.
struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Unique, E> {
        Ok(Unique(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Unique, A::Error> {
        let mut all = Vec::new();
        while let Some(Unique(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Unique(all.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Unique, A::Error> {
        let mut all = Map::new();
        while let Some((key, Unique(value))) = entries.next_entry::<String, Unique>()? {
            if all.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            all.insert(key, value);
        }
        Ok(Unique(all.into()))
    }
}
