//! Fields of the kinds of other projects that their operators do not have: a misspelt field would leave its default in force in
//! silence.

mod known;

use poolwright_api::strict::UNKNOWN_FIELD;
use poolwright_api::{FieldProblem, key_segment, meant};
use serde_json::Value;

use super::objects::{Object, group};
use super::refusals::Problems;
use known::Level;

/// A field that is not listed at its level.
struct Unlisted {
    path: String,
    /// The listed field that its author probably had in mind.
    meant: Option<&'static str>,
}

impl Object {
    /// Returns a problem for each field of a kind of another project that is probably misspelt.
    pub(super) fn misspelt_fields(&self) -> Problems {
        let problem = |Unlisted { path, meant }| {
            meant.map(|meant| FieldProblem::new(path, UNKNOWN_FIELD, format!("did you mean `{meant}`?")))
        };
        self.unlisted_fields().into_iter().filter_map(problem).collect()
    }

    /// Returns a note for each other field that is not listed. A newer version of its operator may have it.
    pub(super) fn unread_fields(&self) -> Vec<String> {
        let unread = self.unlisted_fields().into_iter().filter(|unlisted| unlisted.meant.is_none());
        unread.map(|unlisted| self.ignored(&unlisted.path)).collect()
    }

    /// Returns the note on a field that is not read.
    pub(super) fn ignored(&self, path: &str) -> String {
        format!("{}: {path}: this version does not know the field, and ignores it", self.name())
    }

    fn unlisted_fields(&self) -> Vec<Unlisted> {
        let mut found = Vec::new();
        if let Some(level) = known::spec_of(group(&self.api_version), &self.kind) {
            add_unlisted("spec", &self.value["spec"], level, &mut found);
        }
        found
    }
}

/// Adds the fields of a map, or of each map of a list, that are not listed at their level.
fn add_unlisted(path: &str, value: &Value, level: &Level, found: &mut Vec<Unlisted>) {
    for (at, item) in value.as_array().into_iter().flatten().enumerate() {
        add_unlisted(&format!("{path}[{at}]"), item, level, found);
    }
    for (field, inner) in value.as_object().into_iter().flatten() {
        let path = format!("{path}{}", key_segment(field));
        // A null counts as absent.
        if !inner.is_null() && !level.has(field) {
            let meant = meant(field, level.fields.iter().copied());
            found.push(Unlisted { path, meant });
        } else if let Some(below) = level.below(field) {
            add_unlisted(&path, inner, below, found);
        }
    }
}
