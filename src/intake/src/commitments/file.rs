//! Reads the file: each entry by itself, so that a field of one which cannot be read does not hide what is wrong with the others.

use std::collections::{BTreeMap, BTreeSet};

use poolwright_api::{FieldProblem, strict};
use poolwright_catalog::UsdPerHour;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Commitments;

/// What to do about a file that is none of commitments.
const AS_IN: &str = "write the lists `commitments` and `reservations` as in docs/cli/plan.md";

/// The name in messages of an entry without a name, which is a problem.
pub(super) const NAMELESS: &str = "without a name";

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    commitments: Vec<Entry>,
    #[serde(default)]
    reservations: Vec<Reservation>,
}

/// A commitment: money per hour that you pay in any case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Entry {
    pub name: String,
    pub usd_per_hour: Amount,
    #[serde(default)]
    pub discount_percent: Option<Amount>,
    #[serde(default)]
    pub rates: BTreeMap<String, Amount>,
    #[serde(default)]
    pub covers: Covers,
}

/// The offerings that a commitment covers. An absent field restricts nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Covers {
    #[serde(default)]
    pub instance_types: BTreeSet<String>,
    #[serde(default)]
    pub families: BTreeSet<String>,
    #[serde(default)]
    pub regions: BTreeSet<String>,
    #[serde(default)]
    pub providers: BTreeSet<String>,
}

/// Reserved nodes, which you pay for in any case.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Reservation {
    #[serde(default)]
    pub name: Option<String>,
    pub instance_type: String,
    #[serde(default)]
    pub zone: Option<String>,
    pub count: u32,
}

/// A decimal, written as a number or a string. Anything else is told where it is used.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Amount(Value);

impl Amount {
    /// Returns the value in millionths.
    ///
    /// # Errors
    ///
    /// It is no plain decimal number, or below zero.
    pub fn read(&self) -> Result<UsdPerHour, String> {
        let text = match &self.0 {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.parse().map_err(|error| format!("{error}; write a plain decimal number, such as 12.5"))
    }
}

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part<T> {
    /// Its place in the list.
    pub at: usize,
    /// Whether it was read as it is written. Otherwise it lacks the fields that cannot be read, which serves to judge the others.
    pub is_whole: bool,
    pub read: T,
}

/// Reads a file of commitments and reservations. `source` is its name, for messages.
///
/// # Errors
///
/// What cannot be read, each problem with its place.
pub fn commitments(source: &str, text: &str) -> Result<Commitments, Vec<String>> {
    let (read, problems) = readable_commitments(source, text);
    if problems.is_empty() { Ok(read) } else { Err(problems) }
}

/// Reads such a file as [`commitments`] does. If there are problems, also returns what can be read, so that the caller can look for
/// problems of other kinds at once.
pub fn readable_commitments(source: &str, text: &str) -> (Commitments, Vec<String>) {
    let read = |entries, reservations| Commitments { source: source.to_owned(), entries, reservations };
    let nothing = |problem: String| (read(Vec::new(), Vec::new()), vec![problem]);
    if text.trim().is_empty() {
        return nothing(format!("{source}: the file is empty; {AS_IN}"));
    }
    let options = serde_saphyr::options! { with_snippet: false };
    let first = match serde_saphyr::from_str_with_options::<File>(text, options) {
        Ok(file) => return (read(whole(file.commitments), whole(file.reservations)), Vec::new()),
        Err(error) => format!("{source}: {error}; {AS_IN}"),
    };
    let options = serde_saphyr::options! { with_snippet: false };
    let Ok(mut value) = serde_saphyr::from_str_with_options::<Value>(text, options) else {
        return nothing(first);
    };
    let mut wrong = Vec::new();
    let needed = [("name", json!(NAMELESS)), ("usdPerHour", json!(1))];
    let entries = parts("commitments", &mut value, &needed, &mut wrong);
    let needed = [("instanceType", json!("")), ("count", json!(0))];
    let reservations = parts("reservations", &mut value, &needed, &mut wrong);
    wrong.extend(problems_of::<File>(&value));
    let told = |problem: &FieldProblem| {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("{source}: {place}{}; {}", problem.cause, problem.next_step)
    };
    // The error of the reader has the line of a single problem.
    let problems = if wrong.len() < 2 { vec![first] } else { wrong.iter().map(told).collect() };
    (read(entries, reservations), problems)
}

fn whole<T>(all: Vec<T>) -> Vec<Part<T>> {
    all.into_iter().enumerate().map(|(at, read)| Part { at, is_whole: true, read }).collect()
}

/// Takes a list out of a file, and reads each of its entries. `needed` are the fields that each must have, with what stands for one
/// that is missing. Adds the problems of fields that cannot be read.
fn parts<T: DeserializeOwned>(
    list: &str,
    file: &mut Value,
    needed: &[(&str, Value)],
    wrong: &mut Vec<FieldProblem>,
) -> Vec<Part<T>> {
    let Some(Value::Array(items)) = file.get_mut(list) else { return Vec::new() };
    let mut parts = Vec::new();
    for (at, mut item) in std::mem::take(items).into_iter().enumerate() {
        let lacks = |item: &Value, field: &str| item.is_object() && item[field].is_null();
        let stand_in = |item: &mut Value| {
            for (field, value) in needed {
                if lacks(item, field) {
                    item[*field] = value.clone();
                }
            }
        };
        let missing = needed.iter().filter(|(field, _)| lacks(&item, field));
        let missing =
            missing.map(|(field, _)| FieldProblem::new("", format!("missing field `{field}`"), "add it"));
        let mut found: Vec<FieldProblem> = missing.collect();
        stand_in(&mut item);
        found.extend(problems_of::<T>(&item));
        for problem in &found {
            strict::remove(&mut item, &problem.path);
        }
        stand_in(&mut item);
        if let Ok(read) = strict::read(&item) {
            parts.push(Part { at, is_whole: found.is_empty(), read });
        }
        let placed = |problem: FieldProblem| {
            let dot = if problem.path.is_empty() || problem.path.starts_with('[') { "" } else { "." };
            FieldProblem { path: format!("{list}[{at}]{dot}{}", problem.path), ..problem }
        };
        wrong.extend(found.into_iter().map(placed));
    }
    parts
}

/// Returns the fields of a value that cannot be read.
fn problems_of<T: DeserializeOwned>(value: &Value) -> Vec<FieldProblem> {
    let read = |value: &Value| strict::read::<T>(value).err().unwrap_or_default();
    let mut all = strict::all_problems(value, read(value), read);
    // The reader's own words for a field that is listed with its path.
    all.retain(|one| !one.cause.starts_with("unknown field `"));
    all
}
