//! The interruption queue of the cloud. It delivers late, repeats messages, and forgets those that were acknowledged.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use poolwright_provider_contract::{Interruption, InterruptionMessage, instance_of};
use poolwright_terms::InterruptionKind;

use crate::accidents::span;
use crate::dice::Dice;

/// From something that is said to somebody who can hear it.
const ARRIVES: (u64, u64) = (200, 3_000);
/// The same, where it is late.
const LATE: (u64, u64) = (10_000, 200_000);
/// From one that was told and not given back to the next time.
const AGAIN: Duration = Duration::from_secs(20);

/// A notice on its way.
#[derive(Clone, Debug)]
pub struct Mail {
    /// What it says.
    pub said: Interruption,
    /// The provider id of the machine.
    pub provider_id: String,
    /// When it can be heard next.
    due: Duration,
    /// When it was given back.
    pub given_back: Option<Duration>,
}

impl Mail {
    /// That a machine is taken back at a time, which is certain since another, and can be heard from then on.
    pub(super) fn warning(
        provider_id: &str,
        (told, ends): (Duration, Duration),
        at: &impl Fn(Duration) -> Timestamp,
    ) -> Self {
        Self {
            said: Interruption {
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

    /// That it is likely to be.
    fn hint(provider_id: &str, said: Duration, at: &impl Fn(Duration) -> Timestamp) -> Self {
        let warning = Self::warning(provider_id, (said, said), at);
        let said = Interruption { kind: InterruptionKind::Rebalance, deadline: None, ..warning.said };
        Self { said, ..warning }
    }

    fn heard_from(self, due: Duration) -> Self {
        Self { due, ..self }
    }
}

/// What is said of a machine that is taken back at a time, and since when that is certain.
pub(super) fn about(
    provider_id: &str,
    (told, ends): (Duration, Duration),
    at: impl Fn(Duration) -> Timestamp,
    dice: &mut Dice,
) -> Vec<Mail> {
    let mut all = Vec::new();
    // One in three is hinted at before, or at the same time; one in eight is never told of; one in six late, and one in five twice.
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

/// When the next of these can be heard.
pub(super) fn next(mail: &[Mail]) -> Option<Duration> {
    mail.iter().filter(|one| one.given_back.is_none()).map(|one| one.due).min()
}

/// What can be heard now.
pub(super) fn hear(mail: &mut [Mail], now: Duration) -> Vec<InterruptionMessage> {
    let mut heard = Vec::new();
    for (number, one) in mail.iter_mut().enumerate() {
        if one.given_back.is_none() && one.due <= now {
            one.due = now + AGAIN;
            let receipt = Some(number.to_string());
            heard.push(InterruptionMessage { receipt, interruptions: vec![one.said.clone()] });
        }
    }
    heard
}

/// These do not come again.
pub(super) fn give_back(mail: &mut [Mail], receipts: &[String], now: Duration) {
    for one in receipts.iter().filter_map(|text| text.parse::<usize>().ok()) {
        if let Some(one) = mail.get_mut(one) {
            one.given_back.get_or_insert(now);
        }
    }
}

/// A time of the calendar from one of the world.
pub(super) fn calendar(now: (Timestamp, Duration)) -> impl Fn(Duration) -> Timestamp {
    move |then| {
        let signed = |length| SignedDuration::try_from(length).unwrap_or_default();
        now.0.checked_add(signed(then)).and_then(|at| at.checked_sub(signed(now.1))).unwrap_or(now.0)
    }
}
