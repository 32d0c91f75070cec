//! Problems of CSV files: the place, the cause and the remedy.

use std::fmt;

use poolwright_terms::foreign::{message, one_line};

/// One problem, which prints as `file:line:column: cause; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvProblem {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The line, counted from 1: the first line of a row that spans several.
    pub line: u64,
    /// The name of the column, if one cell or column is wrong.
    pub column: Option<String>,
    /// The cause.
    pub cause: String,
    /// The remedy.
    pub remedy: String,
}

impl CsvProblem {
    pub(super) fn of_line(file: &str, line: u64, cause: String, remedy: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, column: None, cause, remedy: remedy.into() }
    }

    pub(super) fn of_column(
        file: &str,
        line: u64,
        column: &str,
        cause: String,
        remedy: impl Into<String>,
    ) -> Self {
        Self { column: Some(column.to_owned()), ..Self::of_line(file, line, cause, remedy) }
    }
}

impl fmt::Display for CsvProblem {
    /// Writes one line, whatever the file holds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", one_line(&self.file), self.line)?;
        if let Some(column) = &self.column {
            write!(f, "{}:", one_line(column))?;
        }
        write!(f, " {}; {}", message(&self.cause), message(&self.remedy))
    }
}

impl std::error::Error for CsvProblem {}

/// All problems of a set of CSV files; never empty. It prints one line for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvProblems(Vec<CsvProblem>);

impl CsvProblems {
    pub(super) fn new(problems: Vec<CsvProblem>) -> Self {
        Self(problems)
    }

    /// Iterates over the problems, by file and line.
    pub fn iter(&self) -> std::slice::Iter<'_, CsvProblem> {
        self.0.iter()
    }

    /// Returns the number of problems.
    #[expect(clippy::len_without_is_empty, reason = "there is always at least one")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a> IntoIterator for &'a CsvProblems {
    type Item = &'a CsvProblem;
    type IntoIter = std::slice::Iter<'a, CsvProblem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for CsvProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for CsvProblems {}
