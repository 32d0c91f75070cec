//! The result of an action.

use std::time::Duration;

use super::status::is_of_policy;
use crate::leader::writer::WriteError;

/// The outcome of one attempt at an action.
#[derive(Debug)]
pub enum Progress {
    /// Done; the next action of the lane may run.
    Done,
    /// Nothing to do: the object does not exist, or is as it should be.
    NothingToDo,
    /// In progress; repeat after this time.
    Again(Duration),
    /// Failed; retry with back-off, after at least this time.
    Retry(Duration, String),
    /// Failed; retry with back-off, after at least this time. The next action of the lane may run without it.
    Passed(Duration, String),
    /// We do not lead.
    NotLeading,
}

impl Progress {
    /// Creates a failure that is retried after the shortest wait.
    pub fn retry(why: impl std::fmt::Display) -> Self {
        Self::Retry(Duration::ZERO, why.to_string())
    }

    /// Returns the label of the outcome in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NothingToDo => "nothing-to-do",
            Self::Again(_) => "again",
            Self::Retry(..) | Self::Passed(..) => "retry",
            Self::NotLeading => "not-leading",
        }
    }
}

/// Returns the result for a failed write of a Kubernetes object.
pub fn failed(operation: &str, error: WriteError<kube::Error>) -> Progress {
    match error {
        WriteError::NotLeading => Progress::NotLeading,
        WriteError::TimedOut(limit) => Progress::retry(format!("{operation}: no answer within {limit:?}")),
        WriteError::Failed(error) => refused(operation, &error),
    }
}

/// Returns the result for an error of the API server.
pub fn refused(operation: &str, error: &kube::Error) -> Progress {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Progress::NothingToDo,
        // What a policy forbids, no role allows.
        kube::Error::Api(status) if status.is_invalid() || is_of_policy(&status.message) => {
            Progress::Retry(Duration::from_secs(30), format!("{operation}: {}", status.message))
        }
        kube::Error::Api(status) if status.is_forbidden() => Progress::Retry(
            Duration::from_secs(30),
            format!("{operation}: {}; check the controller's ClusterRole (deploy/rbac.yaml)", status.message),
        ),
        other => Progress::retry(format!("{operation}: {other}")),
    }
}
