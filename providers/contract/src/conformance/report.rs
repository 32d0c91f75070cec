//! The results of the cases.

use std::fmt;

use crate::{LaunchError, ProviderError};

/// The reason why a case failed, in one sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        Self(format!("a call failed that should not: {error}"))
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self(format!("a launch failed that should not: {error}"))
    }
}

/// The result of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// The name of the case, which reads as a sentence.
    pub name: &'static str,
    /// Whether the case passed.
    pub outcome: Result<(), Failure>,
}

/// The results of all cases, in the order in which they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The results.
    pub cases: Vec<CaseResult>,
}

impl Report {
    /// Returns whether there are cases and all of them passed.
    pub fn passed(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(|case| case.outcome.is_ok())
    }

    /// Returns the names of the cases that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.cases.iter().filter(|case| case.outcome.is_err()).map(|case| case.name).collect()
    }
}

impl fmt::Display for Report {
    /// Prints one line for each case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CaseResult { name, outcome } in &self.cases {
            let sentence = name.replace('_', " ");
            match outcome {
                Ok(()) => writeln!(f, "ok      {sentence}")?,
                Err(failure) => writeln!(f, "FAILED  {sentence}: {failure}")?,
            }
        }
        let failed = self.failed().len();
        write!(f, "{} cases passed, {failed} failed", self.cases.len() - failed)
    }
}

/// Fails the case with a message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::conformance::Failure(format!($($message)+)));
        }
    };
}
pub(super) use ensure;
