//! What came of the cases.

use std::fmt;

use crate::{LaunchError, ProviderError};

/// Why a case failed, in a sentence.
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

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseResult {
    /// Its name, a sentence.
    pub name: &'static str,
    /// What came of it.
    pub outcome: Result<(), Failure>,
}

/// All cases, in the order they ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The cases.
    pub cases: Vec<CaseResult>,
}

impl Report {
    /// Whether there were cases and each passed.
    pub fn passed(&self) -> bool {
        !self.cases.is_empty() && self.cases.iter().all(|case| case.outcome.is_ok())
    }

    /// The names of the cases that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.cases.iter().filter(|case| case.outcome.is_err()).map(|case| case.name).collect()
    }
}

impl fmt::Display for Report {
    /// One line for each case.
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
