//! The interruption queue of the cloud. It delivers late, repeats messages, and drops acknowledged ones.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_contract::{Interruption, InterruptionMessage, instance_of};
use poolwright_terms::InterruptionKind;

use crate::accidents::span;
use crate::dice::Dice;

/// Milliseconds from a notice to its delivery.
const ARRIVES: (u64, u64) = (200, 3_000);
/// The same for a late message.
const LATE: (u64, u64) = (10_000, 200_000);
/// Milliseconds between two deadlines of the same interruption.
const DIFFERS: (u64, u64) = (5_000, 60_000);
/// How long before its deadline a second copy arrives at the latest, if that deadline is earlier than in the first.
const AHEAD: Duration = Duration::from_secs(30);
/// Time until an unacknowledged message is delivered again.
const AGAIN: Duration = Duration::from_secs(20);

/// A message of the interruption queue.
#[derive(Clone, Debug)]
pub struct Mail {
    /// The notice in the message.
    pub interruption: Interruption,
    /// The provider id of the machine.
    pub provider_id: String,
    /// When it is delivered next.
    due: Duration,
    /// When it was acknowledged.
    pub given_back: Option<Duration>,
}

impl Mail {
    /// Makes a message that the instance is reclaimed at `ends`. The cloud decides and delivers it at `told`.
    pub(super) fn warning(
        provider_id: &str,
        (told, ends): (Duration, Duration),
        at: &impl Fn(Duration) -> Timestamp,
    ) -> Self {
        Self {
            interruption: Interruption {
                instance: instance_of(provider_id).to_owned(),
                kind: InterruptionKind::Reclaim,
                noticed: at(told),
                deadline: Some(at(ends)),
                message: "so says the cloud".to_owned(),
            },
            provider_id: provider_id.to_owned(),
            due: told,
            given_back: None,
        }
    }

    /// Makes a message that an interruption is likely (rebalance recommendation).
    fn hint(provider_id: &str, said: Duration, at: &impl Fn(Duration) -> Timestamp) -> Self {
        let warning = Self::warning(provider_id, (said, said), at);
        let interruption =
            Interruption { kind: InterruptionKind::Rebalance, deadline: None, ..warning.interruption };
        Self { interruption, ..warning }
    }

    fn heard_from(self, due: Duration) -> Self {
        Self { due, ..self }
    }
}

/// Returns the messages about an instance that is reclaimed at `ends`. The cloud decides so at `told`.
pub(super) fn about(
    provider_id: &str,
    (told, ends): (Duration, Duration),
    at: impl Fn(Duration) -> Timestamp,
    dice: &mut Dice,
) -> Vec<Mail> {
    let mut all = Vec::new();
    // One interruption in three has a hint before or at the same time. Of the notices, one in eight is never sent, one in six is
    // late, and one in five comes twice. Half of these name another deadline then, earlier or later.
    if dice.per_mille(333) {
        let ahead = span(dice, 0, 600_000);
        let said = told.saturating_sub(ahead);
        let arrives = said + span(dice, ARRIVES.0, LATE.1);
        all.push(Mail::hint(provider_id, said, &at).heard_from(arrives));
    }
    if !dice.per_mille(125) {
        let way = if dice.per_mille(167) { LATE } else { ARRIVES };
        let arrives = told + span(dice, way.0, way.1);
        let warning = Mail::warning(provider_id, (told, ends), &at);
        all.push(warning.heard_from(arrives));
        if dice.per_mille(200) {
            let again = arrives + span(dice, 100, LATE.1);
            let (by, is_earlier) = (span(dice, DIFFERS.0, DIFFERS.1), dice.per_mille(500));
            // A deadline that is almost over leaves nothing to decide.
            let earlier = Some(ends.saturating_sub(by)).filter(|at| is_earlier && again + AHEAD <= *at);
            let other = earlier.unwrap_or(ends + by);
            let second = if dice.per_mille(500) { other } else { ends };
            all.push(Mail::warning(provider_id, (told, second), &at).heard_from(again));
        }
    }
    all
}

/// Returns the message that the cloud ends an instance at `ends` for another reason. It decides so at `told`.
pub(super) fn announcement(
    kind: InterruptionKind,
    provider_id: &str,
    (told, ends): (Duration, Duration),
    at: impl Fn(Duration) -> Timestamp,
    dice: &mut Dice,
) -> Mail {
    let warning = Mail::warning(provider_id, (told, ends), &at);
    let interruption = Interruption { kind, ..warning.interruption };
    Mail { interruption, due: told + span(dice, ARRIVES.0, LATE.1), ..warning }
}

/// Returns when the next message is due.
pub(super) fn next(mail: &[Mail]) -> Option<Duration> {
    mail.iter().filter(|one| one.given_back.is_none()).map(|one| one.due).min()
}

/// Returns the messages that are due now.
pub(super) fn hear(mail: &mut [Mail], now: Duration) -> Vec<InterruptionMessage> {
    let mut heard = Vec::new();
    for (number, one) in mail.iter_mut().enumerate() {
        if one.given_back.is_none() && one.due <= now {
            one.due = now + AGAIN;
            let receipt = Some(number.to_string());
            heard.push(InterruptionMessage { receipt, interruptions: vec![one.interruption.clone()] });
        }
    }
    heard
}

/// Gives each message the latest deadline of all about its instance.
pub(super) fn put_off(mail: &[Mail], heard: &mut [InterruptionMessage]) {
    for one in heard.iter_mut().flat_map(|message| &mut message.interruptions) {
        let about = mail.iter().filter(|other| other.interruption.instance == one.instance);
        let latest = about.filter_map(|other| other.interruption.deadline).max();
        one.deadline = one.deadline.and(latest);
    }
}

/// Drops acknowledged messages.
pub(super) fn give_back(mail: &mut [Mail], receipts: &[String], now: Duration) {
    for one in receipts.iter().filter_map(|text| text.parse::<usize>().ok()) {
        if let Some(one) = mail.get_mut(one) {
            one.given_back.get_or_insert(now);
        }
    }
}

/// Converts world time to calendar time.
pub(super) fn calendar(now: (Timestamp, Duration)) -> impl Fn(Duration) -> Timestamp {
    move |then| {
        let signed = |length| SignedDuration::try_from(length).unwrap_or_default();
        now.0.checked_add(signed(then)).and_then(|at| at.checked_sub(signed(now.1))).unwrap_or(now.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn some_second_copies_of_a_notice_name_an_earlier_deadline_and_some_a_later_one() {
        let (told, ends) = (Duration::from_mins(5), Duration::from_mins(7));
        let mut found = BTreeSet::new();
        for number in 0..1_000 {
            let at = calendar((Timestamp::UNIX_EPOCH, Duration::ZERO));
            let all = about("sim://z/i-1", (told, ends), at, &mut Dice::nth(1, "mail", number));
            let deadlines: Vec<_> = all.iter().filter_map(|one| one.interruption.deadline).collect();
            if let [first, second] = deadlines[..] {
                found.insert(second.cmp(&first));
            }
        }
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
