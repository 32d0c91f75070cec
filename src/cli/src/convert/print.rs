//! Prints the result: manifests as YAML, notes as tables.

use std::collections::BTreeMap;

use poolwright_provider_contract::karpenter::{Note, Outcome};
use poolwright_terms::one_line;
use serde::Serialize;

use crate::print::{TableLayout, plain, text};

/// Formats the manifests as YAML, one document each.
///
/// # Errors
///
/// An object cannot be written, which is a bug. The error is a sentence.
pub fn yaml<T: Serialize>(manifests: &[T]) -> Result<String, String> {
    let mut text = String::new();
    for manifest in manifests {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(manifest).map_err(|error| error.to_string())?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Formats the notes as a table for each object. Fields without a counterpart come first, then changed
/// fields. Kept fields follow only with `with_kept`; otherwise they are only counted.
pub fn notes_table(notes: &[Note], with_kept: bool, layout: TableLayout) -> String {
    let mut objects: Vec<&str> = Vec::new();
    let mut by_object: BTreeMap<&str, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        let of = by_object.entry(&note.object).or_default();
        if of.is_empty() {
            objects.push(&note.object);
        }
        of.push(note);
    }
    let mut parts = Vec::new();
    for object in objects {
        let mut notes = by_object.remove(object).unwrap_or_default();
        let count = |outcome: Outcome| notes.iter().filter(|note| note.outcome == outcome).count();
        let counts = [Outcome::Kept, Outcome::Changed, Outcome::NotPossible]
            .map(|what| format!("{} {}", count(what), what.as_str()));
        let mut part = format!("{}: {}\n", one_line(object), counts.join(", "));
        notes.sort_by_key(|note| note.outcome);
        let shown: Vec<_> =
            notes.into_iter().filter(|note| with_kept || note.outcome != Outcome::Kept).collect();
        if !shown.is_empty() {
            part.push_str(&table(&shown, layout));
            part.push('\n');
        }
        parts.push(part);
    }
    parts.join("\n")
}

fn table(notes: &[&Note], layout: TableLayout) -> String {
    let mut table = plain(layout);
    table.set_header(["RESULT", "FIELD"]);
    for note in notes {
        let field = if note.field.is_empty() { "the object as a whole" } else { &note.field };
        let text = format!("{}\n{}", one_line(field), one_line(&note.sentence));
        table.add_row([note.outcome.as_str().to_owned(), text]);
    }
    text(table)
}
