//! What is wrong with what a user handed in: all of it at once, each with its place and what to do.

use std::fmt;

use poolwright_catalog::{CsvProblem, CsvProblems};

/// Everything wrong with one kind of input; never empty when it is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<String>);

impl Problems {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One problem.
    pub fn one(problem: impl fmt::Display) -> Self {
        Self(vec![problem.to_string()])
    }

    /// Adds one.
    pub fn push(&mut self, problem: impl fmt::Display) {
        self.0.push(problem.to_string());
    }

    /// Adds one about a cell, a column or a line of a CSV file.
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

    /// Adds those of another input.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether all is well.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` when all is well, else the problems.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl From<CsvProblems> for Problems {
    fn from(problems: CsvProblems) -> Self {
        Self(problems.iter().map(ToString::to_string).collect())
    }
}

/// How many are printed; a wrong separator should not scroll the first problem out of sight.
const SHOWN: usize = 50;

impl fmt::Display for Problems {
    /// `3 problems` and one indented line for each.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        write!(f, "{count} problem{}", if count == 1 { "" } else { "s" })?;
        for problem in self.0.iter().take(SHOWN) {
            write!(f, "\n  {}", problem.replace('\n', "\n  "))?;
        }
        if count > SHOWN {
            write!(f, "\n  ... and {} more", count - SHOWN)?;
        }
        Ok(())
    }
}
