//! The report of a conversion: the outcome for each field, and the problems of a document.

use std::fmt;

use super::fields::{below, plain};
use super::places::Places;

/// The outcome for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Poolwright has no counterpart of the field. The sentence says what to do instead.
    NotPossible,
    /// The field is written differently, or has a slightly different meaning in Poolwright.
    Changed,
    /// The field is unchanged and has the same meaning.
    Kept,
}

impl Outcome {
    /// Returns the outcome as the command prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotPossible => "not possible",
            Self::Changed => "changed",
            Self::Kept => "kept",
        }
    }
}

/// The outcome for one field of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The object: `NodePool/gpu`.
    pub object: String,
    /// The field: `spec.disruption.consolidationPolicy`; empty for the whole object.
    pub field: String,
    /// Whether the field was kept or changed, or has no counterpart.
    pub outcome: Outcome,
    /// An explanation, with what to do instead if the field has no counterpart.
    pub sentence: String,
}

/// A problem that prevents the conversion of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The name of the file.
    pub file: String,
    /// The number of the document in the file, starting at 1. Documents that contain only comments do not count.
    pub document: usize,
    /// The object: `NodePool/gpu`; empty if the document does not name one.
    pub object: String,
    /// The field; empty for the whole object.
    pub field: String,
    /// The cause of the problem.
    pub cause: String,
    /// The next step for the user.
    pub next_step: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: document {}: ", self.file, self.document)?;
        for part in [&self.object, &self.field].into_iter().filter(|part| !part.is_empty()) {
            write!(f, "{part}: ")?;
        }
        write!(f, "{}", self.cause)?;
        if self.next_step.is_empty() { Ok(()) } else { write!(f, "; {}", self.next_step) }
    }
}

/// Collects the notes and problems of one object.
#[derive(Debug, Default)]
pub struct Report {
    file: String,
    document: usize,
    object: String,
    /// The outcomes of the fields so far.
    pub notes: Vec<Note>,
    /// The problems so far.
    pub problems: Vec<Problem>,
    /// Where the fields of a converted node class come from, if not from a field of the same path.
    pub places: Places,
    /// The fields that do not exist, with what to do about each. They have notes, too.
    unknown: Vec<(String, String)>,
    /// The number of problems when the source was read; `None` until then.
    of_source: Option<usize>,
}

impl Report {
    /// Makes an empty report for an object of a document.
    pub fn new(file: &str, document: usize, object: String) -> Self {
        Self { file: file.to_owned(), document, object, ..Self::default() }
    }

    /// Notes a field that is unchanged.
    pub fn kept(&mut self, field: impl Into<String>, sentence: impl Into<String>) {
        self.note(field, Outcome::Kept, sentence);
    }

    /// Notes a field that is written differently.
    pub fn changed(&mut self, field: impl Into<String>, sentence: impl Into<String>) {
        self.note(field, Outcome::Changed, sentence);
    }

    /// Notes a field that has no counterpart.
    pub fn not_possible(&mut self, field: impl Into<String>, sentence: impl Into<String>) {
        self.note(field, Outcome::NotPossible, sentence);
    }

    /// Notes a field that does not exist. The sentence names it, and then says what to do.
    pub fn unknown(&mut self, field: impl Into<String>, sentence: impl Into<String>) {
        let (field, sentence) = (field.into(), sentence.into());
        self.unknown.push((field.clone(), sentence.clone()));
        self.not_possible(field, sentence);
    }

    /// Makes problems of the fields that do not exist. The notes of an object with problems are not shown, and a misspelt field
    /// may be one of the causes.
    pub fn unknown_too(&mut self) {
        for (field, sentence) in std::mem::take(&mut self.unknown) {
            let (cause, next) = sentence.split_once(". ").unwrap_or((&sentence, "leave it out"));
            self.problem(field, cause, next);
        }
    }

    /// Notes the outcome of a field.
    pub fn note(&mut self, field: impl Into<String>, outcome: Outcome, sentence: impl Into<String>) {
        let (field, sentence) = (field.into(), sentence.into());
        self.notes.push(Note { object: self.object.clone(), field, outcome, sentence });
    }

    /// Says that the source is read: later problems are those of the result. Only the first call counts.
    pub fn end_of_source(&mut self) {
        self.of_source.get_or_insert(self.problems.len());
    }

    /// Returns whether the source has a problem at a field or above it. Then something else stands in the result where the user
    /// wrote the field, and a problem of the result there says nothing about the source.
    pub fn is_replaced(&self, field: &str) -> bool {
        let of_source = &self.problems[..self.of_source.unwrap_or(self.problems.len())];
        of_source.iter().any(|one| below(&plain(field), &plain(&one.field)).is_some())
    }

    /// Returns whether a problem with this cause is known, or one at this field or below it.
    pub fn is_told(&self, field: &str, cause: &str) -> bool {
        let is_at = |one: &Problem| below(&plain(&one.field), &plain(field)).is_some();
        self.problems.iter().any(|one| one.cause == cause || is_at(one))
    }

    /// Adds a problem. A document with problems is not converted.
    pub fn problem(
        &mut self,
        field: impl Into<String>,
        cause: impl Into<String>,
        next_step: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.file.clone(),
            document: self.document,
            object: self.object.clone(),
            field: field.into(),
            cause: cause.into(),
            next_step: next_step.into(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_the_source_stands_for_all_fields_below_it_however_their_keys_are_quoted() {
        let mut report = Report::new("file.yaml", 1, "NodePool/gpu".to_owned());
        report.problem("spec.limits[\"nvidia.com/gpu\"]", "no quantity", "write one");
        report.end_of_source();
        report.problem("spec.template", "too large", "split it");
        for (field, is_replaced, is_told) in [
            ("spec.limits.nvidia.com/gpu", true, true),
            ("spec.limits[\"nvidia.com/gpu\"]", true, true),
            ("spec.limits", false, true),
            ("spec.limits.cpu", false, false),
            ("spec.template.spec", false, false),
            ("spec.template", false, true),
            ("spec.temp", false, false),
        ] {
            assert_eq!(report.is_replaced(field), is_replaced, "{field}");
            assert_eq!(report.is_told(field, "another cause"), is_told, "{field}");
        }
        assert!(report.is_told("spec.weight", "too large"));
    }
}
