//! Whether the queue of interruptions is heard: what the last questions to it came to, in the words of a condition of node classes.
//!
//! What is wrong for good is said at once. What AWS does not answer is said once it has lasted as long as a warning does: what was
//! known before stands until then.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_contract::{ClassCondition, Holds, ProviderError};

/// The type of the condition.
const KIND: &str = "InterruptionQueueReady";
/// As long as EC2 warns before it takes a spot instance back: whoever hears nothing for so long has missed one.
const DEAF_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Who has asked nothing for so long has not been deaf, but had nothing to do with it: another replica listened. Longer than all attempts
/// of one question take.
const NOT_ASKED: SignedDuration = SignedDuration::from_mins(5);
/// What it means for whoever reads it.
const MEANWHILE: &str = "Until then what EC2 shows of instances once a minute is all that is known of interruptions; nodes are \
                         launched all the same";

/// What the last questions came to.
pub(crate) struct Reception {
    /// The queue as it is configured.
    queue: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the last one came to; `None` before the first.
    read: Option<Result<(), Trouble>>,
    /// Why messages cannot be deleted, where they cannot.
    undeletable: Option<ProviderError>,
}

/// Why the queue is not read, and since when.
struct Trouble {
    error: ProviderError,
    since: Timestamp,
    /// When it was last found.
    last: Timestamp,
}

impl Reception {
    pub fn new(queue: String) -> Self {
        Self { queue, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue was asked, and this came of it.
    pub fn asked<T>(&self, came: &Result<T, ProviderError>, now: Timestamp) {
        let mut state = self.state();
        let since = match &state.read {
            Some(Err(before)) if now.duration_since(before.last) < NOT_ASKED => before.since,
            _ => now,
        };
        let trouble = |error: &ProviderError| Trouble { error: error.clone(), since, last: now };
        state.read = Some(came.as_ref().map(|_| ()).map_err(trouble));
    }

    /// Messages were to be deleted, and this came of it.
    pub fn deleted(&self, came: &Result<(), ProviderError>) {
        let error = came.as_ref().err();
        self.state().undeletable = error.filter(|error| matches!(error, ProviderError::Invalid(_))).cloned();
    }

    /// What there is to say of it now.
    pub fn condition(&self, now: Timestamp) -> ClassCondition {
        let (holds, reason, message) = self.words(now);
        ClassCondition { kind: KIND, holds, reason: reason.to_owned(), message }
    }

    fn words(&self, now: Timestamp) -> (Holds, &'static str, String) {
        let queue = &self.queue;
        let state = self.state();
        match (&state.read, &state.undeletable) {
            (None, _) => {
                (Holds::NoAnswer, "NoAnswer", format!("the interruption queue `{queue}` was not read yet"))
            }
            (Some(Err(Trouble { error: ProviderError::Invalid(why), .. })), _) => (
                Holds::No,
                "InterruptionQueueUnreadable",
                format!("the interruption queue `{queue}` cannot be read: {why}. {MEANWHILE}"),
            ),
            (Some(Err(Trouble { error, since, last })), _)
                if now.duration_since(*since) >= DEAF_AFTER && now.duration_since(*last) < NOT_ASKED =>
            {
                (
                    Holds::No,
                    "InterruptionQueueSilent",
                    format!(
                        "the interruption queue `{queue}` has not been read since {since:.0}: {error}. See to the network and the \
                     permissions (poolwright check --provider aws looks at both). {MEANWHILE}"
                    ),
                )
            }
            (Some(Err(Trouble { error, .. })), _) => (Holds::NoAnswer, "NoAnswer", error.to_string()),
            (Some(Ok(())), Some(error)) => (
                Holds::No,
                "InterruptionQueueUndeletable",
                format!(
                    "the interruption queue `{queue}` is read, and what is dealt with cannot be deleted from it: {error}. Each message \
                     comes again until it is a dead letter"
                ),
            ),
            (Some(Ok(())), None) => {
                (Holds::Yes, "InterruptionQueueRead", format!("the interruption queue `{queue}` is read"))
            }
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
    fn what_a_person_must_mend_is_said_at_once_and_is_over_when_the_queue_is_read_again() {
        let reception = Reception::new("events".to_owned());
        assert_eq!(reception.condition(at(0)).holds, Holds::NoAnswer);
        reception.asked::<()>(&Err(invalid()), at(0));
        let said = reception.condition(at(0));
        assert_eq!((said.kind, said.holds), ("InterruptionQueueReady", Holds::No));
        assert!(
            said.message.contains("no SQS queue `events`") && said.message.contains(MEANWHILE),
            "{said:?}"
        );
        reception.asked(&Ok(()), at(1));
        assert_eq!(reception.condition(at(1)).holds, Holds::Yes);
    }

    #[test]
    fn silence_is_said_once_it_is_as_long_as_a_warning_and_counts_from_its_first_moment() {
        let reception = Reception::new("events".to_owned());
        reception.asked(&Ok(()), at(0));
        reception.asked::<()>(&Err(lost()), at(10));
        reception.asked::<()>(&Err(lost()), at(100));
        assert_eq!(reception.condition(at(129)).holds, Holds::NoAnswer, "what was known stands");
        let said = reception.condition(at(130));
        assert_eq!((said.holds, said.reason.as_str()), (Holds::No, "InterruptionQueueSilent"));
        assert!(said.message.contains("since 2027-01-15T08:00:10Z: transient: no route"), "{said:?}");
        reception.asked(&Ok(()), at(140));
        reception.asked::<()>(&Err(lost()), at(150));
        assert_eq!(reception.condition(at(200)).holds, Holds::NoAnswer, "another silence");
        // Another replica listens for an hour.
        assert_eq!(reception.condition(at(3800)).holds, Holds::NoAnswer, "nobody was deaf meanwhile");
        reception.asked::<()>(&Err(lost()), at(3810));
        assert_eq!(reception.condition(at(3820)).holds, Holds::NoAnswer, "it counts from now");
    }

    #[test]
    fn a_queue_that_is_read_and_not_deleted_from_is_said_and_a_call_that_was_lost_is_not() {
        let reception = Reception::new("events".to_owned());
        reception.asked(&Ok(()), at(0));
        reception.deleted(&Err(lost()));
        assert_eq!(reception.condition(at(0)).holds, Holds::Yes);
        reception.deleted(&Err(ProviderError::Invalid("add sqs:DeleteMessage to the policy".to_owned())));
        let said = reception.condition(at(0));
        assert_eq!((said.holds, said.reason.as_str()), (Holds::No, "InterruptionQueueUndeletable"));
        assert!(said.message.contains("sqs:DeleteMessage"), "{said:?}");
        reception.deleted(&Ok(()));
        assert_eq!(reception.condition(at(0)).holds, Holds::Yes);
    }
}
