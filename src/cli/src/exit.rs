//! How a command ends: every exit code in one place, and which errors lead to which.

use std::fmt;
use std::io;
use std::process::ExitCode;

use poolwright_controller::causes;

/// How a command that did its work ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitStatus {
    /// All is well.
    Done,
    /// The plan leaves pods out and the user asked to be told by exit code.
    PodsLeftOut,
    /// The simulator found a world in which a rule was broken.
    RuleBroken,
    /// `check` found something that is not as it should be.
    SomethingWrong,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub enum Failure {
    /// What the user handed in cannot be used: a flag, a file, an object.
    BadInput(String),
    /// Anything else: the cluster cannot be reached, a file cannot be written.
    Other(anyhow::Error),
    /// Nobody reads our output any more (`poolwright plan | head`): nothing went wrong.
    ReaderGone,
}

impl Failure {
    /// What the user handed in cannot be used.
    pub fn bad_input(message: impl fmt::Display) -> Self {
        Self::BadInput(message.to_string())
    }

    /// From an error while writing to standard output.
    pub fn writing(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::Other(anyhow::Error::new(error).context("cannot write to standard output"))
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Other(error)
    }
}

/// The exit code; says on standard error what went wrong, if anything did.
///
/// | code | meaning |
/// |---|---|
/// | 0 | done; also when the plan leaves pods out |
/// | 1 | failed: cluster not reachable, file not writable, ... |
/// | 2 | bad usage or bad input (also what the argument parser exits with) |
/// | 3 | `--fail-on-unplaced`, and the plan or the solution leaves pods out |
/// | 4 | `simulate fuzz`, and a rule was broken |
/// | 5 | `check`, and something is wrong |
pub fn code(result: Result<ExitStatus, Failure>) -> ExitCode {
    match result {
        Ok(ExitStatus::Done) | Err(Failure::ReaderGone) => ExitCode::SUCCESS,
        Ok(ExitStatus::PodsLeftOut) => ExitCode::from(3),
        Ok(ExitStatus::RuleBroken) => ExitCode::from(4),
        Ok(ExitStatus::SomethingWrong) => ExitCode::from(5),
        Err(Failure::BadInput(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Failure::Other(error)) => {
            eprintln!("error: {}", causes(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_pipe_is_not_a_failure_and_a_full_disk_is() {
        let gone = Failure::writing(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(gone, Failure::ReaderGone));
        let full = Failure::writing(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(full, Failure::Other(_)));
    }
}
