//! Changes of nodes, pods and NodeClaims that the API server denies, because an admission policy or RBAC forbids them. Both may
//! last for ever.

use std::time::Duration;

use poolwright_core::{EventType, Subject};
use poolwright_terms::Reason;

use super::Executor;
use super::progress::{Progress, failed};
use crate::leader::writer::WriteError;

/// The shortest wait before the next attempt, because a person must change something.
const PERSON_WAIT: Duration = Duration::from_secs(30);

impl Executor {
    /// Returns the result of a denied write of this object, and records an event on it. The write is retried with back-off. `is_vital`
    /// says whether the next actions of its lane must wait for it.
    pub(super) fn denied(
        &self,
        subject: &Subject,
        operation: &str,
        error: WriteError<kube::Error>,
        is_vital: bool,
    ) -> Progress {
        let (wait, why) = match failed(operation, error) {
            Progress::Retry(wait, why) => (wait.max(PERSON_WAIT), why),
            other => return other,
        };
        self.record_event(subject, EventType::Warning, Reason::WriteDenied, &why);
        if is_vital { Progress::Retry(wait, why) } else { Progress::Passed(wait, why) }
    }
}
