//! The problems of a user's input: all of them together, each with its place and a remedy.

use std::fmt;

use poolwright_catalog::{CsvProblem, CsvProblems};
use poolwright_terms::one_line;

/// All problems of one kind of input. As an error it is never empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a list with one problem.
    pub fn one(problem: impl fmt::Display) -> Self {
        Self(vec![problem.to_string()])
    }

    /// Creates a list of these problems.
    pub fn all(problems: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        Self(problems.into_iter().map(|problem| problem.to_string()).collect())
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: impl fmt::Display) {
        self.0.push(problem.to_string());
    }

    /// Adds a problem about a cell, a column or a line of a CSV file.
    pub fn csv(
        &mut self,
        file: &str,
        line: u64,
        column: Option<&str>,
        cause: String,
        remedy: impl Into<String>,
    ) {
        self.push(CsvProblem {
            file: file.to_owned(),
            line,
            column: column.map(str::to_owned),
            cause,
            remedy: remedy.into(),
        });
    }

    /// Adds the problems of another input.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns the number of problems.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there is no problem.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `value` if there is no problem, otherwise the problems.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl From<CsvProblems> for Problems {
    fn from(problems: CsvProblems) -> Self {
        Self(problems.iter().map(ToString::to_string).collect())
    }
}

/// The most problems that are printed. A wrong separator must not scroll the first problem out of sight.
const SHOWN: usize = 50;

impl fmt::Display for Problems {
    /// Writes `3 problems` and one indented line for each. A name in a problem cannot begin a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} problem{}", if count == 1 { "" } else { "s" })?;
        for problem in self.0.iter().take(SHOWN) {
            write!(f, "\n  {}", one_line(problem))?;
        }
        if count > SHOWN {
            write!(f, "\n  ... and {} more", count - SHOWN)?;
        }
        Ok(())
    }
}
