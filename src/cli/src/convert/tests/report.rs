//! The report and the result of every conversion.

use poolwright_api::NodePool;
use serde_json::{Value, json};

use super::super::{Outcome, convert, notes_table, read, yaml};
use super::{FIXTURES, of, read as read_text};
use crate::print::TableLayout;
use crate::source::Source;

/// Collects the paths of all leaf fields, which have no fields below them.
fn leaves(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| {
                leaves(value, &poolwright_provider_contract::karpenter::join(path, key), into);
            });
        }
        Value::Array(entries) if !entries.is_empty() => {
            entries.iter().enumerate().for_each(|(at, value)| leaves(value, &format!("{path}[{at}]"), into));
        }
        _ => into.push(path.to_owned()),
    }
}

fn covers(note: &str, leaf: &str) -> bool {
    leaf.strip_prefix(note)
        .is_some_and(|rest| note.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Returns all objects of the fixtures.
fn objects() -> Vec<Value> {
    FIXTURES.into_iter().flat_map(read::documents).flat_map(|document| document.objects.unwrap()).collect()
}

#[test]
fn every_leaf_field_of_the_fixtures_has_exactly_one_note_that_is_about_it() {
    for object in objects() {
        let converted = of(&object);
        assert_eq!(converted.problems, []);
        let mut all = Vec::new();
        leaves(&object, "", &mut all);
        assert!(!all.is_empty());
        for leaf in all {
            let about: Vec<_> = converted.notes.iter().filter(|note| covers(&note.field, &leaf)).collect();
            let longest = about.iter().map(|note| note.field.len()).max();
            let nearest = about.iter().filter(|note| Some(note.field.len()) == longest).count();
            assert_eq!(nearest, 1, "{leaf}: {about:#?}");
            // A note on a whole object covers the fields that identify it, and no field of a spec.
            let is_karpenters = object["apiVersion"].as_str().unwrap().starts_with("karpenter");
            let wholly = longest == Some(0) && is_karpenters;
            assert!(!wholly || !leaf.starts_with("spec"), "{leaf}");
        }
    }
}

/// Collects the pointers of all objects inside a value.
fn inner_objects(value: &Value, pointer: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            into.push(pointer.to_owned());
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                inner_objects(value, &format!("{pointer}/{key}"), into);
            }
        }
        Value::Array(entries) => {
            entries
                .iter()
                .enumerate()
                .for_each(|(at, value)| inner_objects(value, &format!("{pointer}/{at}"), into));
        }
        _ => {}
    }
}

#[test]
fn an_unknown_field_anywhere_in_a_pool_is_not_possible_and_is_named() {
    let mut tried = 0;
    for object in objects().into_iter().filter(|object| object["kind"] == "NodePool") {
        let mut pointers = Vec::new();
        inner_objects(&object, "", &mut pointers);
        // The keys of these objects are the user's own.
        pointers.retain(|pointer| {
            !["/labels", "/annotations", "/limits"].iter().any(|end| pointer.ends_with(end))
        });
        for pointer in pointers {
            let mut changed = object.clone();
            changed.pointer_mut(&pointer).unwrap()["unheardOf"] = json!("x");
            let converted = of(&changed);
            let found: Vec<_> =
                converted.notes.iter().filter(|note| note.field.ends_with("unheardOf")).collect();
            let [note] = found.as_slice() else { panic!("{pointer}: {:?} {:?}", found, converted.problems) };
            assert_eq!(note.outcome, Outcome::NotPossible);
            assert!(note.sentence.contains("`unheardOf`"), "{}", note.sentence);
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn no_value_of_a_wrong_type_panics_or_leaves_half_a_pool() {
    for object in objects().into_iter().filter(|object| object["kind"] == "NodePool") {
        let mut pointers = Vec::new();
        inner_objects(&object, "", &mut pointers);
        for pointer in pointers {
            for wrong in [json!([1]), json!("text"), json!({"a": {"b": 1}}), json!(true), json!(null)] {
                let mut changed = object.clone();
                *changed.pointer_mut(&pointer).unwrap() = wrong;
                let converted = of(&changed);
                assert!(
                    converted.problems.is_empty()
                        || converted.manifests.is_empty() && converted.notes.is_empty()
                );
            }
        }
    }
}

#[test]
fn converted_pools_read_back_unchanged_and_valid() {
    let sources = FIXTURES.map(|text| Source { name: "f".to_owned(), text: text.to_owned() });
    let converted = convert(&sources);
    assert_eq!(converted.problems, []);
    let names: Vec<_> =
        converted.manifests.iter().map(|pool| pool.metadata.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["gpu", "general", "held", "auto"]);
    let text = yaml(&converted.manifests).unwrap();
    let again: Vec<NodePool> = serde_saphyr::from_multiple(&text).unwrap();
    assert_eq!(again, converted.manifests);
    assert_eq!(poolwright_intake::manifest::parse("f", &text).unwrap().pools.len(), 4);
}

#[test]
fn the_table_is_at_most_80_columns_wide_and_counts_what_it_does_not_show() {
    let notes = read_text(FIXTURES[0]).notes;
    let layout = TableLayout { width: Some(80), wide: false };
    let short = notes_table(&notes, false, layout);
    assert!(short.starts_with("NodePool/gpu: "), "{short}");
    assert!(!short.contains("\nkept "), "{short}");
    for line in short.lines().chain(notes_table(&notes, true, layout).lines()) {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
