//! Which fields of an object a snapshot keeps. Whatever is not named is dropped, so that nothing gets into a snapshot unnoticed.
//!
//! The notation is a list of words. `replicas` keeps a number or a text, `spec { ... }` keeps what the braces name. `name:pod` also
//! says what the text means, `labels:labels` keeps a map, and `spec:@pod` or `@meta` takes the fields of a [`FRAGMENTS`] entry. Lists
//! are not mentioned: the fields are those of their elements.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::SplitWhitespace;

use serde_json::{Map, Value};

use super::fragments::FRAGMENTS;

/// What is kept of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// These fields of an object.
    Object(BTreeMap<&'static str, Shape>),
    /// The value.
    Value(Meaning),
}

/// What a kept value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A number, a switch, or a word of Kubernetes or Poolwright.
    Plain,
    /// The name of the object itself, which is of a kind with this word for aliases.
    Own(&'static str),
    /// The name of something, with the word for its aliases.
    Name(&'static str),
    /// A pod, as NodeClaims name it.
    PodKey,
    /// A map of labels.
    Labels,
    /// The key of a label, or of a taint.
    Key,
    /// Values of the label whose key stands beside them.
    Values,
    /// A map of amounts, by resource.
    Amounts,
    /// A map of numbers of pods, by value of the label [`TASK`].
    Tasks,
    /// A sentence of Poolwright.
    Text,
    /// Only that it is there: its content is dropped.
    Mark,
    /// A script, of which only that it is there is kept, as [`SCRIPT`].
    Script,
    /// The specification or the status of a node class, without its tags, and with [`SCRIPT`] instead of what its nodes run at their
    /// start.
    Class,
}

/// The label by which Volcano knows the task of a pod.
const TASK: &str = "volcano.sh/task-spec";

/// What stands for a script, which may have secrets. It is a comment in every format of user data.
const SCRIPT: &str = "#!/bin/sh\n# A snapshot has no user data.\n";

/// Fields of node classes with names of things in an account at a cloud.
const NAMES_IN_CLASSES: [&str; 9] =
    ["id", "name", "role", "instanceProfile", "owner", "ownerID", "kmsKeyID", "snapshotID", "ssmParameter"];

impl Shape {
    /// Reads the notation. `own` is the word for aliases of the objects.
    pub fn read(text: &'static str, own: &'static str) -> Self {
        Self::Object(fields(&mut text.split_whitespace().peekable(), own))
    }
}

type Fields = BTreeMap<&'static str, Shape>;

fn fields(words: &mut Peekable<SplitWhitespace<'static>>, own: &'static str) -> Fields {
    let mut all = Fields::new();
    while let Some(word) = words.next() {
        if word == "}" {
            break;
        }
        if let Some(name) = word.strip_prefix('@') {
            for (name, shape) in fragment(name, own) {
                add(&mut all, name, shape);
            }
            continue;
        }
        let (name, meaning) = word.split_once(':').unwrap_or((word, ""));
        let shape = if let Some(name) = meaning.strip_prefix('@') {
            Shape::Object(fragment(name, own))
        } else if words.peek() == Some(&"{") {
            words.next();
            Shape::Object(fields(words, own))
        } else {
            Shape::Value(meaning_of(meaning, own))
        };
        add(&mut all, name, shape);
    }
    all
}

/// Adds a field. If it is there already, it gets the fields of both.
fn add(all: &mut Fields, name: &'static str, shape: Shape) {
    if let (Some(Shape::Object(there)), Shape::Object(more)) = (all.get_mut(name), &shape) {
        for (&name, shape) in more {
            add(there, name, shape.clone());
        }
        return;
    }
    all.insert(name, shape);
}

fn fragment(name: &str, own: &'static str) -> Fields {
    let found = FRAGMENTS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.expect("a fragment that a kind names is in the list");
    fields(&mut text.split_whitespace().peekable(), own)
}

fn meaning_of(word: &'static str, own: &'static str) -> Meaning {
    match word {
        "" => Meaning::Plain,
        "own" => Meaning::Own(own),
        "podkey" => Meaning::PodKey,
        "labels" => Meaning::Labels,
        "key" => Meaning::Key,
        "values" => Meaning::Values,
        "amounts" => Meaning::Amounts,
        "tasks" => Meaning::Tasks,
        "text" => Meaning::Text,
        "mark" => Meaning::Mark,
        "script" => Meaning::Script,
        "whole" => Meaning::Class,
        prefix => Meaning::Name(prefix),
    }
}

/// Returns what is kept of a value; `None` if nothing is.
pub fn kept(value: &Value, shape: &Shape) -> Option<Value> {
    match (shape, value) {
        (Shape::Value(Meaning::Class), value) => Some(class(value)),
        (_, Value::Array(all)) => Some(all.iter().filter_map(|one| kept(one, shape)).collect()),
        (Shape::Object(fields), Value::Object(map)) => {
            let fields = map.iter().filter_map(|(name, value)| {
                let value = kept(value, fields.get(name.as_str())?)?;
                Some((name.clone(), value))
            });
            Some(Value::Object(fields.collect()))
        }
        (Shape::Value(Meaning::Labels | Meaning::Amounts | Meaning::Tasks), Value::Object(map)) => {
            let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
            let pairs = map.iter().filter(|(_, value)| is_scalar(value));
            Some(Value::Object(pairs.map(|(name, value)| (name.clone(), value.clone())).collect()))
        }
        (Shape::Value(Meaning::Mark), Value::Object(_)) => Some(Value::Object(Map::new())),
        (Shape::Value(Meaning::Mark), _) => Some(Value::String(String::new())),
        (Shape::Value(Meaning::Script), Value::String(_)) => Some(Value::String(SCRIPT.to_owned())),
        (Shape::Object(_), _) | (Shape::Value(_), Value::Object(_)) => None,
        (Shape::Value(_), scalar) => Some(scalar.clone()),
    }
}

fn class(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("tags");
        if let Some(script) = fields.get_mut("userData") {
            *script = kept(script, &Shape::Value(Meaning::Script)).unwrap_or_default();
        }
    }
    value
}

/// What a text of an object means to who renames it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The name of the object itself.
    Own(&'static str),
    /// A name, with the word for its aliases.
    Name(&'static str),
    /// A pod, as NodeClaims name it.
    PodKey,
    /// The key of a label.
    Key,
    /// A value of the label with this key.
    Value(&'a str),
    /// A sentence.
    Text,
}

/// Gives the texts of a value that [`kept`] returned to `on`, and writes what it returns instead. `key` is the key beside the value.
pub fn rewrite<F>(value: &mut Value, shape: &Shape, key: &str, on: &mut F)
where
    F: FnMut(Part<'_>, &str) -> Option<String>,
{
    match (shape, value) {
        (Shape::Value(Meaning::Class), value) => rewrite_class(value, on),
        (_, Value::Array(all)) => all.iter_mut().for_each(|one| rewrite(one, shape, key, on)),
        (Shape::Object(fields), Value::Object(map)) => {
            let key = map.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
            for (name, value) in map.iter_mut() {
                if let Some(shape) = fields.get(name.as_str()) {
                    rewrite(value, shape, &key, on);
                }
            }
        }
        (Shape::Value(Meaning::Labels), Value::Object(map)) => rewrite_labels(map, on),
        (Shape::Value(Meaning::Tasks), Value::Object(map)) => {
            for (task, least) in std::mem::take(map) {
                let task = on(Part::Value(TASK), &task).unwrap_or(task);
                map.insert(task, least);
            }
        }
        (Shape::Value(meaning), Value::String(text)) => {
            let part = match *meaning {
                Meaning::Own(word) => Part::Own(word),
                Meaning::Name(word) => Part::Name(word),
                Meaning::PodKey => Part::PodKey,
                Meaning::Key => Part::Key,
                Meaning::Values => Part::Value(key),
                Meaning::Text => Part::Text,
                Meaning::Plain
                | Meaning::Labels
                | Meaning::Amounts
                | Meaning::Tasks
                | Meaning::Mark
                | Meaning::Script
                | Meaning::Class => return,
            };
            if let Some(new) = on(part, text) {
                *text = new;
            }
        }
        _ => {}
    }
}

fn rewrite_labels<F>(map: &mut Map<String, Value>, on: &mut F)
where
    F: FnMut(Part<'_>, &str) -> Option<String>,
{
    for (label, mut value) in std::mem::take(map) {
        if let Some(new) = value.as_str().and_then(|text| on(Part::Value(&label), text)) {
            value = new.into();
        }
        let label = on(Part::Key, &label).unwrap_or(label);
        map.insert(label, value);
    }
}

fn rewrite_class<F>(value: &mut Value, on: &mut F)
where
    F: FnMut(Part<'_>, &str) -> Option<String>,
{
    match value {
        Value::Array(all) => all.iter_mut().for_each(|one| rewrite_class(one, on)),
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                let part = match name.as_str() {
                    "message" => Some(Part::Text),
                    name if NAMES_IN_CLASSES.contains(&name) => Some(Part::Name("resource")),
                    _ => None,
                };
                match (part, value) {
                    (Some(part), Value::String(text)) => {
                        if let Some(new) = on(part, text) {
                            *text = new;
                        }
                    }
                    (_, Value::Object(tags)) if name == "tags" => rewrite_labels(tags, on),
                    (_, value) => rewrite_class(value, on),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_kept_in_lists_and_objects_alike() {
        let shape = Shape::read(
            "metadata { name:own } spec { list { a } labels:labels is:mark of:mark run:script deep }",
            "x",
        );
        let object = json!({"metadata": {"name": "n", "annotations": {"a": "secret"}}, "status": "secret",
            "spec": {"run": "secret", "list": [{"a": 1, "b": "secret"}], "labels": {"k": "v", "odd": {"b": "secret"}},
                "is": "secret", "of": {"b": "secret"}, "deep": {"b": "secret"}, "more": ["secret"]}});
        let expected = json!({"metadata": {"name": "n"},
            "spec": {"list": [{"a": 1}], "labels": {"k": "v"}, "is": "", "of": {}, "run": SCRIPT}});
        assert_eq!(kept(&object, &shape), Some(expected));
    }

    #[test]
    fn a_node_class_keeps_that_its_nodes_run_a_script_and_not_the_script() {
        let shape = Shape::read("spec:whole", "class");
        let class = json!({"spec": {"role": "r", "userData": "secret", "tags": {"k": "secret"}}});
        assert_eq!(kept(&class, &shape), Some(json!({"spec": {"role": "r", "userData": SCRIPT}})));
    }

    #[test]
    fn texts_are_shown_with_what_they_mean() {
        let shape =
            Shape::read("metadata { name:own } to { key:key values:values } l:labels free:text kept", "x");
        let mut object = json!({"metadata": {"name": "n"}, "to": [{"key": "k", "values": ["v", "w"]}],
            "l": {"k2": "v2"}, "free": "words", "kept": "plain"});
        let mut seen = Vec::new();
        rewrite(&mut object, &shape, "", &mut |part, text| {
            seen.push(format!("{part:?} {text}"));
            (part == Part::Key).then(|| text.to_uppercase())
        });
        seen.sort();
        let expected = [
            "Key k",
            "Key k2",
            "Own(\"x\") n",
            "Text words",
            "Value(\"k\") v",
            "Value(\"k\") w",
            "Value(\"k2\") v2",
        ];
        assert_eq!(seen, expected);
        assert_eq!((&object["to"][0]["key"], &object["l"]), (&json!("K"), &json!({"K2": "v2"})));
    }
}
