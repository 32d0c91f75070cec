//! The interruption messages of the simulated cloud. Every round of [`crate::cloud`] sets the messages that are due;
//! unacknowledged messages are redelivered.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_contract::{Interruption, InterruptionMessage};
use poolwright_terms::InterruptionKind;
use tokio::sync::Notify;

use crate::record::{Record, State, name_in};

/// The time until an unacknowledged message is redelivered.
const AGAIN: SignedDuration = SignedDuration::from_secs(20);
/// The polling interval for redelivery, and the number of polls before an empty answer.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: usize = 20;

/// The interruption messages.
#[derive(Debug, Default)]
pub(crate) struct Interruptions {
    /// The due interruptions and their last delivery, by receipt. The receipt is the name of the instance.
    due: Mutex<BTreeMap<String, (Interruption, Option<Timestamp>)>>,
    spoken: Notify,
}

/// Returns the due interruption of an instance, with its receipt.
pub(crate) fn due(record: &Record, now: Timestamp) -> Option<(String, Interruption)> {
    let interrupted = record.interruption.as_ref().filter(|one| !one.heard && one.noticed <= now)?;
    let name = name_in(&record.provider_id()).filter(|_| record.state != State::Terminating)?.to_owned();
    let interruption = Interruption {
        instance: name.clone(),
        kind: InterruptionKind::Reclaim,
        noticed: interrupted.noticed,
        deadline: Some(interrupted.ends),
        message: format!("the node class of {} says so (spec.faults.interruptions)", record.claim),
    };
    Some((name, interruption))
}

impl Interruptions {
    /// Replaces the due interruptions.
    pub fn set(&self, all: impl IntoIterator<Item = (String, Interruption)>) {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *due);
        for (receipt, interruption) in all {
            let told = before.get(&receipt).filter(|(said, _)| *said == interruption).and_then(|one| one.1);
            due.insert(receipt, (interruption, told));
        }
        drop(due);
        self.spoken.notify_waiters();
    }

    /// Removes an acknowledged interruption.
    pub fn forget(&self, receipt: &str) {
        self.due.lock().unwrap_or_else(PoisonError::into_inner).remove(receipt);
    }

    /// Waits for the next messages. It returns an empty list after a while.
    pub async fn next(&self, now: impl Fn() -> Timestamp + Send) -> Vec<InterruptionMessage> {
        for _ in 0..LOOKS {
            let spoken = self.spoken.notified();
            let said = self.take(now());
            if !said.is_empty() {
                return said;
            }
            let _ = tokio::time::timeout(LOOK, spoken).await;
        }
        Vec::new()
    }

    fn take(&self, now: Timestamp) -> Vec<InterruptionMessage> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = |told: Option<Timestamp>| told.is_none_or(|told| now.duration_since(told) >= AGAIN);
        let mut said = Vec::new();
        for (receipt, (interruption, told)) in due.iter_mut().filter(|(_, (_, told))| is_due(*told)) {
            *told = Some(now);
            let interruptions = vec![interruption.clone()];
            said.push(InterruptionMessage { receipt: Some(receipt.clone()), interruptions });
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Interrupted;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    fn record(heard: bool) -> Record {
        let interruption = Some(Interrupted { noticed: at(100), ends: at(220), heard });
        Record { interruption, ..crate::record::tests::record() }
    }

    #[test]
    fn an_interruption_is_reported_from_its_time_until_it_is_acknowledged_or_the_instance_ends() {
        assert_eq!(due(&record(false), at(99)), None);
        let (receipt, said) = due(&record(false), at(100)).expect("it is due");
        assert_eq!((receipt.as_str(), said.instance.as_str()), ("i-0f3a-11", "i-0f3a-11"));
        assert_eq!((said.noticed, said.deadline), (at(100), Some(at(220))));
        assert_eq!(due(&record(true), at(100)), None);
        let going = Record { state: State::Terminating, ..record(false) };
        assert_eq!(due(&going, at(100)), None);
    }

    #[test]
    fn an_unacknowledged_interruption_is_reported_again() {
        let interruptions = Interruptions::default();
        interruptions.set(due(&record(false), at(100)));
        assert_eq!(interruptions.take(at(100)).len(), 1);
        interruptions.set(due(&record(false), at(101)));
        assert_eq!(interruptions.take(at(119)).len(), 0);
        assert_eq!(interruptions.take(at(120)).len(), 1);
        interruptions.forget("i-0f3a-11");
        assert_eq!(interruptions.take(at(200)).len(), 0);
    }
}
