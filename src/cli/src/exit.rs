//! The exit codes of all commands, and the errors that lead to them.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use poolwright_controller::causes;
use poolwright_terms::foreign::each_line;
use poolwright_terms::one_line;

use crate::reach;

/// The outcome of a command that did its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// No problem.
    Done,
    /// The plan leaves pods out, and the user asked for an exit code in that case.
    PodsLeftOut,
    /// The simulator found a world in which a rule was broken.
    RuleBroken,
    /// `check` found a problem.
    SomethingWrong,
    /// `what-if` found a difference.
    Different,
    /// `what-if` found that the cost rises by more than the user allows, or cannot tell.
    AboveLimit,
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The user's input cannot be used: a flag, a file or an object.
    BadInput(String),
    /// Any other error, such as a cluster that cannot be reached or a file that cannot be written.
    Other(anyhow::Error),
    /// The reader of our output is gone (`poolwright plan | head`). This is no error.
    ReaderGone,
}

impl Failure {
    /// Creates an error about the user's input.
    pub fn bad_input(message: impl fmt::Display) -> Self {
        Self::BadInput(message.to_string())
    }

    /// Converts an error of writing to standard output.
    pub fn writing(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Other(anyhow::Error::new(error).context("cannot write to standard output"))
        }
    }
}

/// Returns what became of the last writing of a command that has its exit code already. The code stays if the reader is gone.
pub fn unless_gone(written: io::Result<()>) -> Result<(), Failure> {
    match written.map_err(Failure::writing) {
        Err(Failure::ReaderGone) => Ok(()),
        other => other,
    }
}

/// A flag that cannot be used, found by code that also returns other errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadFlag(pub String);

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<BadFlag>() {
            Some(flag) => Self::bad_input(flag),
            None => Self::Other(error),
        }
    }
}

/// Returns the exit code, and prints the error to standard error if there is one.
///
/// | code | meaning |
/// |---|---|
/// | 0 | done; also when the plan leaves pods out |
/// | 1 | failed: cluster not reachable, file not writable, ... |
/// | 2 | bad usage or bad input (also what the argument parser exits with) |
/// | 3 | `--fail-on-unplaced`, and the plan or the solution leaves pods out, or lacks pods that were refused or not read |
/// | 4 | `debug fuzz`, and a rule was broken |
/// | 5 | `check`, and something is wrong |
/// | 6 | `what-if --fail-above`, and the cost rises by more, or by an unknown amount |
///
/// For `what-if`, see [`code_of_comparison`].
pub fn code(result: Result<ExitStatus, Failure>) -> ExitCode {
    match result {
        Ok(ExitStatus::Done) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Ok(ExitStatus::Different) => ExitCode::from(1),
        Ok(ExitStatus::PodsLeftOut) => ExitCode::from(3),
        Ok(ExitStatus::RuleBroken) => ExitCode::from(4),
        Ok(ExitStatus::SomethingWrong) => ExitCode::from(5),
        Ok(ExitStatus::AboveLimit) => ExitCode::from(6),
        Err(Failure::BadInput(message)) => {
            tell(&message);
            ExitCode::from(2)
        }
        Err(Failure::Other(error)) => {
            tell_causes(&error);
            ExitCode::FAILURE
        }
    }
}

/// Returns the exit code of a command that compares, and prints the error to standard error if there is one. The codes are those of
/// `kubectl diff`: 0 no difference, 1 a difference, 2 an error of any kind. Code 6 is that of [`code`].
pub fn code_of_comparison(result: Result<ExitStatus, Failure>) -> ExitCode {
    match result {
        Err(Failure::Other(error)) => {
            tell_causes(&error);
            ExitCode::from(2)
        }
        other => code(other),
    }
}

/// Prints an error that is not about the input, with its causes and the next step.
fn tell_causes(error: &anyhow::Error) {
    let told = causes(error.as_ref());
    let told = match reach::next_step(error.as_ref()) {
        Some(next) => format!("{}; {next}", told.trim_end_matches('.')),
        None => told,
    };
    tell(&one_line(&told));
}

/// Prints an error. Nobody may read standard error any more, and then there is nothing to do.
fn tell(error: &str) {
    let _ = writeln!(io::stderr(), "error: {}", each_line(error));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_flag_is_bad_input_in_any_context() {
        let flag = BadFlag("--kubeconfig F: there is no such file; check the path".to_owned());
        let failure = Failure::from(anyhow::Error::new(flag.clone()).context("cannot read the cluster"));
        assert!(matches!(failure, Failure::BadInput(message) if message == flag.0));
    }

    #[test]
    fn a_closed_pipe_is_not_a_failure_and_a_full_disk_is() {
        let gone = Failure::writing(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(gone, Failure::ReaderGone));
        let full = Failure::writing(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, Failure::Other(_)));
        assert!(unless_gone(Err(io::Error::from(io::ErrorKind::BrokenPipe))).is_ok());
        assert!(unless_gone(Err(io::Error::from(io::ErrorKind::StorageFull))).is_err());
    }
}
