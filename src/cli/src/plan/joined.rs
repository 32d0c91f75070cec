//! Notes of one kind about many objects, as one.

use std::collections::BTreeMap;

use crate::not_sold::{NAMED, first_of};

/// Joins notes that say the same of more objects of one kind than one note names. Such a note comes where the first of them was.
pub fn joined(notes: Vec<String>) -> Vec<String> {
    let mut alike: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for note in &notes {
        if let Some((kind, name, said)) = parts(note) {
            alike.entry((kind.to_owned(), said.to_owned())).or_default().push(name.to_owned());
        }
    }
    alike.retain(|_, names| names.len() > NAMED);
    let mut all = Vec::new();
    for note in notes {
        let key = parts(&note).map(|(kind, _, said)| (kind.to_owned(), said.to_owned()));
        let Some(key) = key.filter(|key| alike.contains_key(key)) else {
            all.push(note);
            continue;
        };
        // The others of a kind find no names any more.
        let names = alike.get_mut(&key).map(std::mem::take).unwrap_or_default();
        if !names.is_empty() {
            let shown: Vec<&str> = names.iter().map(String::as_str).collect();
            let (kind, said) = key;
            all.push(format!("each of {} {kind} objects ({}): {said}", names.len(), first_of(&shown)));
        }
    }
    all
}

/// Splits a note about one object into its kind, its name and what is said of it; `None` for other notes.
fn parts(note: &str) -> Option<(&str, &str, &str)> {
    let (object, said) = note.split_once(": ")?;
    let (kind, name) = object.split_once(' ')?;
    let is_kind = kind.starts_with(|first: char| first.is_ascii_uppercase())
        && kind.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_kind && !name.contains(' ')).then_some((kind, name, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_many_objects_of_one_kind_is_said_once_with_their_number_and_a_few_names() {
        let says = |kind: &str, name: &str, said: &str| format!("{kind} ml/{name}: {said}");
        let counts = "its pods in the manifest count instead";
        let mut notes = vec![says("Pod", "p", "spec: it is broken; the object is left out")];
        notes.extend(["a", "b", "c", "d", "e"].map(|name| says("ReplicaSet", name, counts)));
        notes.extend(["x", "y"].map(|name| says("Job", name, counts)));
        notes.push("the oldest price: unknown".to_owned());
        let expected = [
            "Pod ml/p: spec: it is broken; the object is left out".to_owned(),
            format!("each of 5 ReplicaSet objects (ml/a, ml/b, ml/c and 2 more): {counts}"),
            says("Job", "x", counts),
            says("Job", "y", counts),
            "the oldest price: unknown".to_owned(),
        ];
        assert_eq!(joined(notes), expected);
    }
}
