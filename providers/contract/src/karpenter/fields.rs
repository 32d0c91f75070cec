//! A reader of the fields of one object. It tracks which fields were read, and reports the rest as unknown.

use std::collections::BTreeMap;

use serde_json::Value;

use super::report::Report;

/// The unread fields of one object of a document.
pub struct Fields<'a> {
    path: String,
    left: BTreeMap<&'a str, &'a Value>,
}

impl<'a> Fields<'a> {
    /// Starts to read `value`, the object at `path`. It reports a problem if the value is not an object.
    pub fn of(path: impl Into<String>, value: &'a Value, report: &mut Report) -> Option<Self> {
        let path = path.into();
        let Some(object) = value.as_object() else {
            report.problem(path, wrong(value, "an object"), "write its fields below it, indented");
            return None;
        };
        Some(Self { path, left: object.iter().map(|(key, value)| (key.as_str(), value)).collect() })
    }

    /// Returns the path of a field.
    pub fn path(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Takes a field. An empty value stays for [`Fields::finish`].
    pub fn take(&mut self, key: &str) -> Option<&'a Value> {
        if is_empty(self.left.get(key)?) { None } else { self.left.remove(key) }
    }

    /// Takes a field, even if its value is an empty list or object.
    pub fn take_even_empty(&mut self, key: &str) -> Option<&'a Value> {
        if self.left.get(key)?.is_null() { None } else { self.left.remove(key) }
    }

    /// Takes a field that holds an object.
    pub fn object(&mut self, key: &str, report: &mut Report) -> Option<Self> {
        let value = self.take(key)?;
        Self::of(self.path(key), value, report)
    }

    /// Takes a field that holds a list, and returns the entries with their paths.
    pub fn list(&mut self, key: &str, report: &mut Report) -> Vec<(String, &'a Value)> {
        let Some(value) = self.take(key) else { return Vec::new() };
        let path = self.path(key);
        let Some(entries) = value.as_array() else {
            report.problem(path, wrong(value, "a list"), "begin each entry with `- `");
            return Vec::new();
        };
        entries.iter().enumerate().map(|(at, entry)| (format!("{path}[{at}]"), entry)).collect()
    }

    /// Takes a field that holds a list of strings.
    pub fn texts(&mut self, key: &str, report: &mut Report) -> Vec<String> {
        let entries = self.list(key, report);
        entries.into_iter().filter_map(|(path, entry)| text(path, entry, report)).collect()
    }

    /// Takes a field that holds a string.
    pub fn text(&mut self, key: &str, report: &mut Report) -> Option<String> {
        let value = self.take(key)?;
        text(self.path(key), value, report)
    }

    /// Takes a required field that holds a string.
    pub fn needed_text(&mut self, key: &str, report: &mut Report) -> Option<String> {
        let Some(value) = self.take(key) else {
            report.problem(self.path(key), "missing", "add it; Karpenter requires it too");
            return None;
        };
        text(self.path(key), value, report)
    }

    /// Takes a field that holds an integer.
    pub fn number(&mut self, key: &str, report: &mut Report) -> Option<i64> {
        let value = self.take(key)?;
        let number = value.as_i64();
        if number.is_none() {
            report.problem(
                self.path(key),
                wrong(value, "a whole number"),
                "write a whole number without quotes",
            );
        }
        number
    }

    /// Takes all remaining fields, with their keys, paths and values.
    pub fn rest(self) -> Vec<(String, String, &'a Value)> {
        let Self { path, left } = self;
        left.into_iter().map(|(key, value)| (key.to_owned(), join(&path, key), value)).collect()
    }

    /// Reports all remaining fields as unknown.
    pub fn finish(self, report: &mut Report) {
        for (key, path, value) in self.rest() {
            if is_empty(value) {
                report.changed(path, "Left out, because it is empty.");
            } else {
                report.unknown(path, unknown(&key));
            }
        }
    }
}

/// Says what to do about an unknown field.
fn unknown(key: &str) -> String {
    let instead = match key {
        "kubelet" => {
            "Set the kubelet's settings in the node class, as in Karpenter 1.x, or in the image or the user data."
        }
        _ => "Check the spelling. If Karpenter has the field, leave it out or keep this pool in Karpenter.",
    };
    format!("Poolwright has no field for `{key}`. {instead}")
}

/// Reads a string. It rejects unquoted numbers and booleans, as the API server does.
pub fn text(path: String, value: &Value, report: &mut Report) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    let next = match value {
        Value::Number(_) => format!("write it in quotes: \"{value}\""),
        // The reader has lost the word that the user wrote.
        Value::Bool(true) => boolean("true", "y, yes and on", "\"true\" or \"yes\""),
        Value::Bool(false) => boolean("false", "n, no and off", "\"false\" or \"N\""),
        _ => "write one text".to_owned(),
    };
    report.problem(path, wrong(value, "a text"), next);
    None
}

/// Says how to write a text that YAML reads as true or false.
fn boolean(read: &str, also: &str, such_as: &str) -> String {
    format!("write what you wrote in quotes, such as {such_as}: YAML reads {also} as {read}, too")
}

fn wrong(value: &Value, wanted: &str) -> String {
    let found = match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("{found} where {wanted} belongs")
}

/// Returns whether a value is null, an empty list or an empty object.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(entries) => entries.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Joins a path and a key: `spec.limits.cpu`, `spec.limits["nvidia.com/gpu"]`.
pub fn join(path: &str, key: &str) -> String {
    let plain =
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    match (plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

/// Returns the rest of the path of a field that is at or below another one; empty for the field itself.
pub fn below<'f>(field: &'f str, above: &str) -> Option<&'f str> {
    let rest = field.strip_prefix(above)?;
    (above.is_empty() || rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// Writes a path without the quotes of keys, because API servers write none.
pub fn plain(path: &str) -> String {
    path.replace("[\"", ".").replace("\"]", "")
}
