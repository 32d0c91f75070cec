//! What became of each field, and what is wrong with a document.

use std::fmt;

/// What became of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Nothing here does what the field does; the sentence says what to do instead.
    NotPossible,
    /// It is written differently, or means something slightly different here.
    Changed,
    /// It is written as it was and means the same.
    Kept,
}

impl Outcome {
    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotPossible => "not possible",
            Self::Changed => "changed",
            Self::Kept => "kept",
        }
    }
}

/// What became of one field of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// `NodePool/gpu`.
    pub object: String,
    /// `spec.disruption.consolidationPolicy`; empty for the object as a whole.
    pub field: String,
    /// Kept, changed or not possible.
    pub what: Outcome,
    /// What became of it and, where it is not possible, what to do instead.
    pub sentence: String,
}

/// Why a document is not converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// Which document of the file, from 1; documents of comments only do not count.
    pub document: usize,
    /// `NodePool/gpu`; empty where the document does not say.
    pub object: String,
    /// Where in the object; empty for the object as a whole.
    pub field: String,
    /// What is wrong.
    pub cause: String,
    /// What to do about it.
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

/// What is said about one object while it is read.
#[derive(Debug, Default)]
pub struct Report {
    file: String,
    document: usize,
    object: String,
    /// What became of each field, so far.
    pub notes: Vec<Note>,
    /// What is wrong, so far.
    pub problems: Vec<Problem>,
}

impl Report {
    /// Nothing yet, about this object of this document.
    pub fn new(file: &str, document: usize, object: String) -> Self {
        Self { file: file.to_owned(), document, object, ..Self::default() }
    }

    /// Notes a field that is written as it was.
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

    /// Notes the outcome of a field.
    pub fn note(&mut self, field: impl Into<String>, what: Outcome, sentence: impl Into<String>) {
        let (field, sentence) = (field.into(), sentence.into());
        self.notes.push(Note { object: self.object.clone(), field, what, sentence });
    }

    /// Adds a problem, for which the document is left out.
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
