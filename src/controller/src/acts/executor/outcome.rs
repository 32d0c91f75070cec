//! What became of an action.

use std::time::Duration;

use crate::leader::writer::WriteError;

/// What became of an action.
#[derive(Debug)]
pub enum Outcome {
    /// Done; whatever follows from it may be done next.
    Done,
    /// There was nothing to do (any more): the object is gone, or is as it should be.
    NothingToDo,
    /// It goes on; ask again after this time.
    Again(Duration),
    /// It did not work now; it is tried again after a wait that grows and is at least this long.
    Retry(Duration, String),
    /// We do not lead.
    NotLeading,
}

impl Outcome {
    /// Tried again after the shortest wait.
    pub fn retry(why: impl std::fmt::Display) -> Self {
        Self::Retry(Duration::ZERO, why.to_string())
    }

    /// Its label in metrics.
    pub fn label(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::NothingToDo => "nothing-to-do",
            Self::Again(_) => "again",
            Self::Retry(..) => "retry",
            Self::NotLeading => "not-leading",
        }
    }
}

/// What a failed write of a Kubernetes object means.
pub fn failed(what: &str, error: WriteError<kube::Error>) -> Outcome {
    match error {
        WriteError::NotLeading => Outcome::NotLeading,
        WriteError::TimedOut(limit) => Outcome::retry(format!("{what}: no answer within {limit:?}")),
        WriteError::Failed(error) => refused(what, &error),
    }
}

/// What an error of the API server means.
pub fn refused(what: &str, error: &kube::Error) -> Outcome {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Outcome::NothingToDo,
        kube::Error::Api(status) if status.is_forbidden() => Outcome::Retry(
            Duration::from_secs(30),
            format!("{what}: {}; check the controller's ClusterRole (deploy/rbac.yaml)", status.message),
        ),
        kube::Error::Api(status) if status.is_invalid() => {
            Outcome::Retry(Duration::from_secs(30), format!("{what}: {}", status.message))
        }
        other => Outcome::retry(format!("{what}: {other}")),
    }
}
