//! Reads an object from JSON and reports unknown fields as problems.
//!
//! Kubernetes types in Rust ignore unknown fields, so a misspelt `resources` would plan a pod without a GPU. Every struct tells
//! its deserializer its fields. This one notes all other fields, and suggests the nearest known name.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use crate::problem::{FieldProblem, key_segment};

/// The similarity above which a known name is suggested, from 0 (nothing in common) to 1 (equal).
const SIMILAR: f64 = 0.75;

/// The cause of the problem of an unknown field.
pub const UNKNOWN_FIELD: &str = "unknown field";

/// Reads a `T`, or returns all problems: every unknown field, and the first value of a wrong type.
pub fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Vec<FieldProblem>> {
    let sink = RefCell::new(Vec::new());
    let tracked = Tracked { value, path: String::new(), sink: &sink };
    let result = T::deserialize(tracked);
    let mut problems = sink.into_inner();
    match result {
        Ok(read) if problems.is_empty() => Ok(read),
        Ok(_) => Err(problems),
        Err(error) => {
            let next_step = error.next_step.unwrap_or_else(|| next_step(&error.message).to_owned());
            problems.push(FieldProblem::new(error.path.unwrap_or_default(), error.message, next_step));
            Err(problems)
        }
    }
}

/// Returns all problems of an object whose `first` problems are known: also those that `judge` finds in it without the fields that
/// cannot be read. What such a rest lacks is no problem, and neither is what contains a field with a problem: one of these fields
/// may be the cause.
pub fn all_problems(
    object: &Value,
    first: Vec<FieldProblem>,
    mut judge: impl FnMut(&Value) -> Vec<FieldProblem>,
) -> Vec<FieldProblem> {
    let (mut all, mut rest) = (first.clone(), object.clone());
    let mut found = first;
    loop {
        let before = rest.clone();
        // What lacks a field cannot be read either.
        let bad =
            found.iter().filter(|one| is_unreadable(&one.cause) || one.cause.starts_with(MISSING_FIELD));
        bad.for_each(|one| remove(&mut rest, removable(&one.path)));
        if rest == before {
            return all;
        }
        found = judge(&rest);
        let is_told = |path: &str| all.iter().any(|known| is_within(&known.path, path));
        let is_new = |one: &&FieldProblem| !is_absence(&one.cause) && !is_told(&one.path);
        let new: Vec<FieldProblem> = found.iter().filter(is_new).cloned().collect();
        all.extend(new);
    }
}

/// Returns the path of the list of an item, because the places of the other items must not change, and any other path as it is.
fn removable(path: &str) -> &str {
    let item = path.strip_suffix(']').and_then(|path| path.rsplit_once('['));
    item.filter(|(_, place)| place.bytes().all(|byte| byte.is_ascii_digit())).map_or(path, |(list, _)| list)
}

/// Returns whether a path is that of a field, or of something in it.
fn is_within(path: &str, field: &str) -> bool {
    let rest = path.strip_prefix(field);
    rest.is_some_and(|rest| field.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns whether a problem with this cause is that a field is unknown, or of a wrong type.
fn is_unreadable(cause: &str) -> bool {
    const BEGIN: [&str; 4] = ["invalid type: ", "invalid value: ", "invalid length ", "unknown variant `"];
    cause == UNKNOWN_FIELD
        || cause.ends_with(NOT_A_NAME)
        || BEGIN.iter().any(|begin| cause.starts_with(begin))
}

/// Returns whether a problem with this cause is that something is missing.
fn is_absence(cause: &str) -> bool {
    cause == "missing"
        || cause.starts_with(MISSING_FIELD)
        || cause.starts_with(NO_VOLUME)
        || cause.contains("at least one container")
}

/// The beginning of the cause of the problem of a container that uses a volume which its pod does not have.
pub const NO_VOLUME: &str = "the pod has no volume";

/// The beginning of the cause of the problem of an object that lacks a field. It is that of serde.
const MISSING_FIELD: &str = "missing field";

/// The end of the cause of the problem of a value that is no name, where one of several names belongs.
const NOT_A_NAME: &str = "is not a name";

/// The beginning of the message about a whole number that its type does not have.
const OUT_OF_RANGE: &str = "invalid value: integer";

/// Returns the remedy for a message of serde.
fn next_step(message: &str) -> &'static str {
    if message.starts_with(MISSING_FIELD) {
        return "add it";
    }
    let is_scalar = ["integer", "floating point", "boolean"].iter().any(|kind| message.contains(kind));
    match message.rsplit_once(", expected ").map_or("", |(_, expected)| expected) {
        "a string" if is_scalar => "write it in quotes",
        "a string" => "write a text",
        "a boolean" => "write true or false",
        "a sequence" => "write a list",
        "a map" => "write a map",
        "i32" if message.starts_with(OUT_OF_RANGE) => "write a whole number from -2147483648 to 2147483647",
        "i32" | "i64" => "write a whole number",
        "u16" | "u32" | "u64" | "usize" => "write a whole number, 0 or more",
        "f64" => "write a number",
        names if names.contains('`') => "write one of these names",
        _ => "correct the value",
    }
}

/// A value, its path, and the list of unknown fields.
struct Tracked<'de, 'a> {
    value: &'de Value,
    path: String,
    sink: &'a RefCell<Vec<FieldProblem>>,
}

/// A value of a wrong type, and its path.
#[derive(Debug)]
struct ReadError {
    path: Option<String>,
    message: String,
    /// The remedy; `None` if it follows from the message.
    next_step: Option<String>,
}

impl ReadError {
    fn at(mut self, path: &str) -> Self {
        self.path.get_or_insert_with(|| path.to_owned());
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ReadError {}

impl de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { path: None, message: message.to_string(), next_step: None }
    }
}

impl<'de> Tracked<'de, '_> {
    /// Reads a map. `fields` are the fields of a struct, `None` for maps with free keys.
    fn map<V: Visitor<'de>>(
        self,
        map: &'de Map<String, Value>,
        fields: Option<&'static [&'static str]>,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let path = self.path.clone();
        let access = Entries { left: map.iter(), next: None, parent: self, fields };
        visitor.visit_map(access).map_err(|error| error.at(&path))
    }
}

impl<'de> Deserializer<'de> for Tracked<'de, '_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let path = self.path.clone();
        let result = match self.value {
            Value::Object(map) => return self.map(map, None, visitor),
            Value::Array(items) => visitor.visit_seq(Items { items: items.iter().enumerate(), parent: self }),
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => visitor.visit_i64(number),
                (None, Some(number)) => visitor.visit_u64(number),
                (None, None) => visitor.visit_f64(number.as_f64().unwrap_or(f64::NAN)),
            },
        };
        result.map_err(|error: ReadError| error.at(&path))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.value {
            Value::Object(map) => self.map(map, Some(fields), visitor),
            _ => self.deserialize_any(visitor).map_err(|mut error| {
                let some = fields.iter().take(3).copied().collect::<Vec<_>>().join(", ");
                error.next_step.get_or_insert_with(|| format!("write a map with fields such as {some}"));
                error
            }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let path = self.path.clone();
        visitor.visit_newtype_struct(self).map_err(|error| error.at(&path))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let path = self.path.clone();
        let result = match self.value {
            Value::String(name) => {
                let name: StrDeserializer<'_, ReadError> = name.as_str().into_deserializer();
                visitor.visit_enum(name)
            }
            Value::Object(map) => {
                let access = Entries { left: map.iter(), next: None, parent: self, fields: None };
                visitor.visit_enum(MapAccessDeserializer::new(access))
            }
            other => Err(ReadError {
                path: None,
                message: format!("`{other}` {NOT_A_NAME}"),
                next_step: Some(format!("write one of {}", variants.join(", "))),
            }),
        };
        result.map_err(|error| error.at(&path))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier
    }
}

struct Entries<'de, 'a> {
    left: serde_json::map::Iter<'de>,
    next: Option<(&'de String, &'de Value)>,
    parent: Tracked<'de, 'a>,
    fields: Option<&'static [&'static str]>,
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.next = self.left.next();
        let Some((key, value)) = self.next else { return Ok(None) };
        // Custom resources read these two separately from their fields.
        let says_its_kind = self.parent.path.is_empty() && matches!(key.as_str(), "apiVersion" | "kind");
        let known = says_its_kind || self.fields.is_none_or(|fields| fields.contains(&key.as_str()));
        // A null counts as absent.
        if !known && !value.is_null() {
            let hint = nearest(key, self.fields.unwrap_or_default());
            self.parent.sink.borrow_mut().push(FieldProblem::new(
                join(&self.parent.path, key),
                UNKNOWN_FIELD,
                hint.map_or_else(
                    || "remove it, or check its spelling and place".to_owned(),
                    |known| format!("did you mean `{known}`?"),
                ),
            ));
        }
        let key: StrDeserializer<'_, ReadError> = key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|error| error.at(&self.parent.path))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let (key, value) = self.next.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        let path = join(&self.parent.path, key);
        seed.deserialize(Tracked { value, path, sink: self.parent.sink })
    }
}

struct Items<'de, 'a> {
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
    parent: Tracked<'de, 'a>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = ReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, ReadError> {
        let Some((at, value)) = self.items.next() else { return Ok(None) };
        let path = format!("{}[{at}]", self.parent.path);
        seed.deserialize(Tracked { value, path, sink: self.parent.sink }).map(Some)
    }
}

/// Removes the field at the path of a problem.
pub fn remove(value: &mut Value, path: &str) {
    match value {
        Value::Object(map) => {
            let keys: Vec<String> = map.keys().cloned().collect();
            for key in keys {
                let segment = key_segment(&key);
                let tails = [segment.as_str(), segment.trim_start_matches('.')];
                let Some(rest) = tails.iter().find_map(|tail| path.strip_prefix(tail)) else { continue };
                if rest.is_empty() {
                    map.remove(&key);
                } else if rest.starts_with(['.', '['])
                    && let Some(inner) = map.get_mut(&key)
                {
                    remove(inner, rest);
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                if let Some(rest) = path.strip_prefix(&format!("[{at}]")) {
                    remove(item, rest);
                }
            }
        }
        _ => {}
    }
}

fn join(path: &str, key: &str) -> String {
    let segment = key_segment(key);
    if path.is_empty() { segment.trim_start_matches('.').to_owned() } else { format!("{path}{segment}") }
}

fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let similarity = |candidate: &str| strsim::jaro_winkler(&name.to_lowercase(), &candidate.to_lowercase());
    known
        .iter()
        .map(|candidate| (*candidate, similarity(candidate)))
        .filter(|(_, similarity)| *similarity >= SIMILAR)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(candidate, _)| candidate)
        .or_else(|| abbreviated(name, known))
}

/// Returns the only known name that a name abbreviates, such as `count` for `cnt`: it leaves out less than half of the letters, and
/// not the first one.
fn abbreviated(name: &str, known: &[&'static str]) -> Option<&'static str> {
    let is_short_for = |candidate: &&&'static str| {
        let mut letters = candidate.chars();
        name.len() > 2
            && 2 * name.len() > candidate.len()
            && candidate.chars().next() == name.chars().next()
            && name.chars().all(|letter| letters.any(|one| one == letter))
    };
    let mut all = known.iter().filter(is_short_for);
    all.next().filter(|_| all.next().is_none()).copied()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_abbreviation_of_one_known_field_is_recognized() {
        assert_eq!(nearest("cnt", &["instanceType", "zone", "count"]), Some("count"));
        assert_eq!(nearest("cnt", &["count", "coint"]), None, "it may mean either");
        assert_eq!(nearest("unt", &["count"]), None, "another letter comes first");
    }

    fn problems(value: &Value) -> Vec<(String, String, String)> {
        let problems = read::<Pod>(value).expect_err("the pod has problems");
        problems.into_iter().map(|problem| (problem.path, problem.cause, problem.next_step)).collect()
    }

    #[test]
    fn a_misspelt_field_is_named_with_its_path_and_the_nearest_name() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {
            "contianers": [{"name": "a"}],
            "containers": [{"name": "a", "resource": {"limits": {"nvidia.com/gpu": 1}}}],
        }});
        let unknown = |path: &str, hint: &str| (path.into(), "unknown field".into(), hint.into());
        assert_eq!(
            problems(&pod),
            [
                unknown("spec.containers[0].resource", "did you mean `resources`?"),
                unknown("spec.contianers", "did you mean `containers`?"),
            ]
        );
    }

    #[test]
    fn a_value_of_a_wrong_type_is_named_with_its_path() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": 7}]}});
        let [(path, cause, next_step)] = problems(&pod).try_into().unwrap();
        assert_eq!(path, "spec.containers[0].name");
        assert!(cause.contains("expected a string"), "{cause}");
        assert_eq!(next_step, "write it in quotes");
    }

    #[test]
    fn the_next_step_fits_the_type_that_is_expected() {
        let next_step = |spec: Value| {
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": spec});
            let [(_, _, next_step)] = problems(&pod).try_into().unwrap();
            next_step
        };
        let of_container =
            |field: &str, value: Value| next_step(json!({"containers": [{"name": "a", field: value}]}));
        assert_eq!(of_container("image", json!(["a"])), "write a text");
        assert_eq!(of_container("tty", json!("yes")), "write true or false");
        assert_eq!(of_container("args", json!("run")), "write a list");
        assert!(of_container("resources", json!("2")).starts_with("write a map with fields such as "));
        assert_eq!(next_step(json!({"containers": [], "priority": "high"})), "write a whole number");
        assert_eq!(
            next_step(json!({"containers": [], "priority": 3_000_000_000_i64})),
            "write a whole number from -2147483648 to 2147483647"
        );
        assert_eq!(next_step(json!({"containers": [], "nodeSelector": "gpu"})), "write a map");
        let missing = read::<crate::NodePool>(&json!({"metadata": {"name": "a"}, "spec": {}}));
        let [missing] = missing.unwrap_err().try_into().unwrap();
        assert_eq!((missing.path.as_str(), missing.next_step.as_str()), ("spec", "add it"));
    }

    #[test]
    fn an_unknown_field_can_be_removed_by_its_path() {
        let mut pod = json!({"spec": {"future.io/field": {"a": 1}, "containers": [{"name": "a"}, {"name": "b", "more": [1]}]}});
        for problem in read::<Pod>(&pod).unwrap_err() {
            remove(&mut pod, &problem.path);
        }
        assert_eq!(pod, json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}));
    }

    #[test]
    fn what_is_wrong_beside_unreadable_fields_is_found_in_the_same_round() {
        let pool = json!({"metadata": {"name": "a"}, "spec": {"weigth": 3, "weight": "high", "replicas": [1],
            "template": {"spec": {"nodeClassRef": {"group": "poolwright.dev", "kind": "KwokNodeClass", "name": "a"},
                "requirements": [{"key": "a", "operator": 5}]}}}});
        let judge = |pool: &Value| match read::<crate::NodePool>(pool) {
            Ok(_) => vec![FieldProblem::new("spec.limits.cpu", "no quantity", "write one")],
            Err(found) => found,
        };
        let found = all_problems(&pool, judge(&pool), judge);
        let mut paths: Vec<&str> = found.iter().map(|problem| problem.path.as_str()).collect();
        paths.sort_unstable();
        let operator = "spec.template.spec.requirements[0].operator";
        assert_eq!(
            paths,
            ["spec.limits.cpu", "spec.replicas", operator, "spec.weight", "spec.weigth"],
            "and not that a requirement lacks its operator: {found:?}"
        );
    }

    #[test]
    fn free_keys_numbers_as_quantities_and_nulls_are_no_problem() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"labels": {"anything": "goes"}, "creationTimestamp": null, "nonsense": null},
            "spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": 0.5, "nvidia.com/gpu": 2}}}]},
        });
        let pod: Pod = read(&pod).unwrap();
        let limits = pod.spec.unwrap().containers[0].resources.clone().unwrap().limits.unwrap();
        assert_eq!((limits["cpu"].0.as_str(), limits["nvidia.com/gpu"].0.as_str()), ("0.5", "2"));
    }
}
