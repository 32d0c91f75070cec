//! The health of the interruption queue, as a condition of node classes.
//!
//! An error that a person must fix sets the condition to false at once. Other errors do so only after two minutes, the length of
//! a spot warning; until then the condition keeps its status.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_contract::{ConditionOutcome, NodeClassCondition, ProviderError};

use crate::reason::AwsReason;

/// The type of the condition.
const KIND: &str = "InterruptionQueueReady";
/// How long calls must fail before the condition becomes false: the length of a spot warning. A provider that reads nothing for
/// so long has missed a warning.
const SILENT_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// A gap between two calls after which earlier failures do not count, because another replica was the leader meanwhile. It is
/// longer than all attempts of one call.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// The consequence, which is part of the message.
const FALLBACK: &str = "Until this is fixed, Poolwright finds interruptions only by polling EC2 once a minute; launches are not \
                         affected";

/// The results of the last calls to the queue.
pub(crate) struct QueueHealth {
    /// The name or URL of the queue, as configured.
    queue: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The result of the last receive call; `None` before the first.
    read: Option<Result<(), ReadFailure>>,
    /// The error of the last delete call, if a person must fix it.
    delete_error: Option<ProviderError>,
}

/// A series of failed receive calls.
struct ReadFailure {
    error: ProviderError,
    since: Timestamp,
    /// The time of the last failure.
    last: Timestamp,
}

impl QueueHealth {
    pub fn new(queue: String) -> Self {
        Self { queue, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the result of a receive call.
    pub fn record_receive<T>(&self, result: &Result<T, ProviderError>, now: Timestamp) {
        let mut state = self.state();
        let since = match &state.read {
            Some(Err(before)) if now.duration_since(before.last) < STALE_AFTER => before.since,
            _ => now,
        };
        let trouble = |error: &ProviderError| ReadFailure { error: error.clone(), since, last: now };
        state.read = Some(result.as_ref().map(|_| ()).map_err(trouble));
    }

    /// Records the result of a delete call.
    pub fn record_delete(&self, result: &Result<(), ProviderError>) {
        let error = result.as_ref().err();
        self.state().delete_error = error.filter(|error| matches!(error, ProviderError::Invalid(_))).cloned();
    }

    /// Returns the condition at the time `now`.
    pub fn condition(&self, now: Timestamp) -> NodeClassCondition {
        let (outcome, reason, message) = self.describe(now);
        NodeClassCondition { kind: KIND, outcome, reason: reason.into(), message }
    }

    fn describe(&self, now: Timestamp) -> (ConditionOutcome, AwsReason, String) {
        let queue = &self.queue;
        let state = self.state();
        match (&state.read, &state.delete_error) {
            (None, _) => (
                ConditionOutcome::NoAnswer,
                AwsReason::NoAnswer,
                format!("the interruption queue `{queue}` has not been read yet"),
            ),
            (Some(Err(ReadFailure { error: ProviderError::Invalid(why), .. })), _) => (
                ConditionOutcome::False,
                AwsReason::InterruptionQueueUnreadable,
                format!("the interruption queue `{queue}` cannot be read: {why}. {FALLBACK}"),
            ),
            (Some(Err(ReadFailure { error, since, last })), _)
                if now.duration_since(*since) >= SILENT_AFTER && now.duration_since(*last) < STALE_AFTER =>
            {
                (
                    ConditionOutcome::False,
                    AwsReason::InterruptionQueueSilent,
                    format!(
                        "the interruption queue `{queue}` has not been read since {since:.0}: {error}. Check the network and the \
                     permissions (poolwright check --provider aws checks both). {FALLBACK}"
                    ),
                )
            }
            (Some(Err(ReadFailure { error, .. })), _) => {
                (ConditionOutcome::NoAnswer, AwsReason::NoAnswer, error.to_string())
            }
            (Some(Ok(())), Some(error)) => (
                ConditionOutcome::False,
                AwsReason::InterruptionQueueUndeletable,
                format!(
                    "the interruption queue `{queue}` is read, but handled messages cannot be deleted from it: {error}. SQS delivers each message \
                     again until it moves to the dead-letter queue"
                ),
            ),
            (Some(Ok(())), None) => (
                ConditionOutcome::True,
                AwsReason::InterruptionQueueRead,
                format!("the interruption queue `{queue}` is read"),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).expect("a time")
    }

    fn invalid() -> ProviderError {
        ProviderError::Invalid("there is no SQS queue `events`".to_owned())
    }

    fn lost() -> ProviderError {
        ProviderError::Transient("no route".to_owned())
    }

    #[test]
    fn a_lasting_queue_problem_is_reported_at_once_until_a_read_succeeds() {
        let health = QueueHealth::new("events".to_owned());
        assert_eq!(health.condition(at(0)).outcome, ConditionOutcome::NoAnswer);
        health.record_receive::<()>(&Err(invalid()), at(0));
        let said = health.condition(at(0));
        assert_eq!((said.kind, said.outcome), ("InterruptionQueueReady", ConditionOutcome::False));
        assert!(
            said.message.contains("no SQS queue `events`") && said.message.contains(FALLBACK),
            "{said:?}"
        );
        health.record_receive(&Ok(()), at(1));
        assert_eq!(health.condition(at(1)).outcome, ConditionOutcome::True);
    }

    #[test]
    fn an_unreadable_queue_is_reported_after_the_length_of_a_spot_warning() {
        let health = QueueHealth::new("events".to_owned());
        health.record_receive(&Ok(()), at(0));
        health.record_receive::<()>(&Err(lost()), at(10));
        health.record_receive::<()>(&Err(lost()), at(100));
        assert_eq!(health.condition(at(129)).outcome, ConditionOutcome::NoAnswer, "what was known stands");
        let said = health.condition(at(130));
        assert_eq!(
            (said.outcome, said.reason),
            (ConditionOutcome::False, AwsReason::InterruptionQueueSilent.into())
        );
        assert!(said.message.contains("since 2027-01-15T08:00:10Z: transient: no route"), "{said:?}");
        health.record_receive(&Ok(()), at(140));
        health.record_receive::<()>(&Err(lost()), at(150));
        assert_eq!(health.condition(at(200)).outcome, ConditionOutcome::NoAnswer, "another silence");
        // Another replica listens for an hour.
        assert_eq!(
            health.condition(at(3800)).outcome,
            ConditionOutcome::NoAnswer,
            "nobody was deaf meanwhile"
        );
        health.record_receive::<()>(&Err(lost()), at(3810));
        assert_eq!(health.condition(at(3820)).outcome, ConditionOutcome::NoAnswer, "it counts from now");
    }

    #[test]
    fn denied_deletions_are_reported_and_lost_calls_are_not() {
        let health = QueueHealth::new("events".to_owned());
        health.record_receive(&Ok(()), at(0));
        health.record_delete(&Err(lost()));
        assert_eq!(health.condition(at(0)).outcome, ConditionOutcome::True);
        health.record_delete(&Err(ProviderError::Invalid("add sqs:DeleteMessage to the policy".to_owned())));
        let said = health.condition(at(0));
        assert_eq!(
            (said.outcome, said.reason),
            (ConditionOutcome::False, AwsReason::InterruptionQueueUndeletable.into())
        );
        assert!(said.message.contains("sqs:DeleteMessage"), "{said:?}");
        health.record_delete(&Ok(()));
        assert_eq!(health.condition(at(0)).outcome, ConditionOutcome::True);
    }
}
