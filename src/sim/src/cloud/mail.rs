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
    // late, and one in five comes twice.
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
        all.push(warning.clone().heard_from(arrives));
        if dice.per_mille(200) {
            all.push(warning.heard_from(arrives + span(dice, 100, LATE.1)));
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
